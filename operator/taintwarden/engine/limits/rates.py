"""Limits on the rate of evictions: of all policies, of one policy, and of its zones and namespaces."""

from collections.abc import Iterable

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.limits.protocol import EvictionRequest, Limit, lane_key
from taintwarden.engine.limits.refusal import (
    NAMESPACE_RATE,
    OVERALL_RATE,
    POLICY_RATE,
    ZONE,
    ZONE_RATE,
    Refusal,
    RefusalScope,
)
from taintwarden.engine.limits.zones import Zones, key_of, zone_of
from taintwarden.engine.model import Instant, MonotonicTime
from taintwarden.engine.policy import Policy
from taintwarden.fields.spec import MAX_RATE

MIN_SWEPT_BUCKETS = 100
"""Minimum number of zone and namespace buckets at which full ones are dropped; later, twice those that remained."""


def default_burst(rate: float) -> int:
    """Return the burst of a rate without a setting for it: the tokens of one second, at least 1."""
    return max(1, int(rate))


class Rates(Limit):
    """Token buckets, which are empty when this process becomes leader.

    Args:
        overall_rate: maximum evictions per second of all policies; None for no limit.
        zones: the health of zones. The rate of an unhealthy zone is reduced.

    """

    def __init__(self, overall_rate: float | None, zones: Zones) -> None:
        self._overall_rate = overall_rate
        self._zones = zones
        self._swept_at = MIN_SWEPT_BUCKETS
        self._began = MonotonicTime(0.0)
        self._overall: TokenBucket | None = None
        self._policies: dict[str, TokenBucket] = {}
        self._keyed: dict[str, TokenBucket] = {}
        self.restart(self._began)

    def restart(self, now: MonotonicTime) -> None:
        """Empty all buckets, since the previous leader may have used their tokens."""
        self._began = now
        rate = self._overall_rate
        self._overall = None if rate is None else TokenBucket(rate, default_burst(rate), now)
        self._policies = {name: TokenBucket(bucket.rate, bucket.burst, now) for name, bucket in self._policies.items()}
        self._keyed = {}

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed limits at once. Tokens that were taken remain taken."""
        kept: dict[str, TokenBucket] = {}
        for policy in policies:
            limits = policy.limits
            if limits.evictions_per_second >= MAX_RATE:
                continue
            wanted = limits.evictions_per_second, limits.burst
            bucket = self._policies.get(policy.name) or TokenBucket(*wanted, now.monotonic)
            if (bucket.rate, bucket.burst) != wanted:
                bucket.resize(*wanted, now.monotonic)
            kept[policy.name] = bucket
        self._policies = kept

    def concerns(self, policy: Policy) -> bool:
        """Return True if a rate applies to the policy."""
        limits = policy.limits
        keyed = limits.per_zone.evictions_per_second, limits.per_namespace.evictions_per_second, limits.zone_health
        return self._overall is not None or policy.name in self._policies or any(one is not None for one in keyed)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod until each bucket that concerns it has a token."""
        now = request.now.monotonic
        for refusal, bucket in self._buckets(request):
            if (at := bucket.available_at(now)) > now:
                return Refusal(refusal.limit, at, refusal.whom, refusal.key, refusal.detail)
        return None

    def reserve(self, request: EvictionRequest) -> None:
        """Take a token from each bucket that concerns the pod. A dry-run eviction takes tokens, too."""
        for _, bucket in self._buckets(request):
            bucket.take(request.now.monotonic)

    def _buckets(self, request: EvictionRequest) -> list[tuple[Refusal, TokenBucket]]:
        """Return the buckets that concern a pod, with refusals. Only the overall rate applies to a hard deadline."""
        found: list[tuple[Refusal, TokenBucket]] = []
        if self._overall is not None:
            found.append((_OVERALL, self._overall))
        if request.is_hard:
            return found
        limits, policy = request.policy.limits, request.policy.name
        if policy in self._policies:
            found.append((_OF_POLICY, self._policies[policy]))
        if (rate := limits.per_zone.evictions_per_second) is not None:
            zone = zone_of(request.labels)
            key = f"zone-rate/{policy}/{zone}"
            bucket = self._bucket(key, rate, request.now.monotonic)
            found.append((Refusal(ZONE_RATE, None, RefusalScope.PODS, key, f"zone {zone}"), bucket))
        if limits.zone_health is not None and self._zones.is_slowed(policy, zone := zone_of(request.labels)):
            key = key_of(policy, zone)
            bucket = self._bucket(key, limits.zone_health.evictions_per_second, request.now.monotonic)
            found.append((Refusal(ZONE, None, RefusalScope.PODS, key, self._zones.describe(policy, zone)), bucket))
        if (rate := limits.per_namespace.evictions_per_second) is not None:
            key = lane_key(request.lane)
            bucket = self._bucket(key, rate, request.now.monotonic)
            found.append((Refusal(NAMESPACE_RATE, None, RefusalScope.LANE, key), bucket))
        return found

    def _bucket(self, key: str, rate: float, now: MonotonicTime) -> TokenBucket:
        """Return the bucket of a zone or namespace. It has the default burst."""
        bucket = self._keyed.get(key)
        if bucket is None:
            if len(self._keyed) >= self._swept_at:
                self._keyed = {name: one for name, one in self._keyed.items() if not one.is_full(now)}
                self._swept_at = max(MIN_SWEPT_BUCKETS, 2 * len(self._keyed))
            bucket = self._keyed[key] = TokenBucket(rate, default_burst(rate), self._began)
        elif bucket.rate != rate:
            bucket.resize(rate, default_burst(rate), now)
        return bucket


_OVERALL, _OF_POLICY = Refusal(OVERALL_RATE), Refusal(POLICY_RATE)
