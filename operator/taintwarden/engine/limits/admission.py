"""All limits together: a pod goes when every one admits it."""

from collections.abc import Iterable

import msgspec

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.model import Policy


class Refusal(msgspec.Struct, frozen=True):
    """A limit's answer to a pod that may not go yet: which limit, and when asking again makes sense (monotonic)."""

    limit: str
    until: float


OVERALL_RATE = "overall-rate"
POLICY_RATE = "policy-rate"


class Limiter:
    """The rates of every policy and the cap over all of them.

    Args:
        overall_rate: evictions per second over all policies; None is no cap. Its burst is one second's worth.

    """

    def __init__(self, overall_rate: float | None = None) -> None:
        self._overall = None if overall_rate is None else TokenBucket(overall_rate, max(1, int(overall_rate)))
        self._policies: dict[str, TokenBucket] = {}

    def configure(self, policies: Iterable[Policy], now: float) -> None:
        """Take over changed limits at once. A bucket keeps what it has spent."""
        kept: dict[str, TokenBucket] = {}
        for policy in policies:
            limits = policy.limits
            if limits.evictions_per_second is None:
                continue
            bucket = self._policies.get(policy.name)
            if bucket is None:
                bucket = TokenBucket(limits.evictions_per_second, limits.burst)
            elif (bucket.rate, bucket.burst) != (limits.evictions_per_second, limits.burst):
                bucket.resize(limits.evictions_per_second, limits.burst, now)
            kept[policy.name] = bucket
        self._policies = kept

    def admit(self, policy: str, now: float) -> Refusal | None:
        """Take a token from every limit, or from none and say which one refused."""
        asked = [(POLICY_RATE, self._policies.get(policy)), (OVERALL_RATE, self._overall)]
        for limit, bucket in asked:
            if bucket is not None and (until := bucket.available_at(now)) > now:
                return Refusal(limit, until)
        for _, bucket in asked:
            if bucket is not None:
                bucket.take(now)
        return None
