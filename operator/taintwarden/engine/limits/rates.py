"""Token buckets of everything that has a rate: all policies together, a policy, and its zones and namespaces."""

from collections.abc import Iterable

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.model import Policy

MAX_IDLE_BUCKETS = 10_000


def one_second(rate: float) -> int:
    """The burst of a rate that has none of its own: one second's worth."""
    return max(1, int(rate))


class Rates:
    """Buckets that fill from empty when this process begins to act.

    Args:
        overall_rate: evictions per second over all policies; None is no cap.

    """

    def __init__(self, overall_rate: float | None = None) -> None:
        self._overall_rate = overall_rate
        self._began = 0.0
        self.overall: TokenBucket | None = None
        self._policies: dict[str, TokenBucket] = {}
        self._keyed: dict[str, TokenBucket] = {}
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Acting begins now: what others spent until now is not known."""
        self._began = now
        rate = self._overall_rate
        self.overall = None if rate is None else TokenBucket(rate, one_second(rate), now)
        self._policies = {name: TokenBucket(bucket.rate, bucket.burst, now) for name, bucket in self._policies.items()}
        self._keyed = {}

    def configure(self, policies: Iterable[Policy], now: float) -> None:
        """Take over changed limits at once. A bucket keeps what it has spent."""
        kept: dict[str, TokenBucket] = {}
        for policy in policies:
            limits = policy.limits
            if limits.evictions_per_second is None:
                continue
            bucket = self._policies.get(policy.name) or TokenBucket(limits.evictions_per_second, limits.burst, now)
            if (bucket.rate, bucket.burst) != (limits.evictions_per_second, limits.burst):
                bucket.resize(limits.evictions_per_second, limits.burst, now)
            kept[policy.name] = bucket
        self._policies = kept

    def of_policy(self, policy: str) -> TokenBucket | None:
        """The policy's own bucket, None without a limit."""
        return self._policies.get(policy)

    def keyed(self, key: str, rate: float, now: float) -> TokenBucket:
        """The bucket of a zone or namespace under a policy, whose burst is one second's worth."""
        bucket = self._keyed.get(key)
        if bucket is None:
            if len(self._keyed) >= MAX_IDLE_BUCKETS:
                self._keyed = {name: one for name, one in self._keyed.items() if not one.is_full(now)}
            bucket = self._keyed[key] = TokenBucket(rate, one_second(rate), self._began)
        elif bucket.rate != rate:
            bucket.resize(rate, one_second(rate), now)
        return bucket
