"""Rates of all policies together, of a policy, and of its zones and namespaces. Each call takes a token."""

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

MAX_IDLE_BUCKETS = 100
"""Number of buckets of zones and namespaces at which full ones are dropped; then, at twice those that are left."""


def one_second(rate: float) -> int:
    """Return the tokens of one second, which are the burst of a rate that has no setting for its burst."""
    return max(1, int(rate))


class Rates(Limit):
    """Token buckets that start empty when this process begins to act.

    Args:
        overall_rate: evictions per second over all policies; None is no cap.
        zones: the health of zones, which may set a rate.

    """

    def __init__(self, overall_rate: float | None, zones: Zones) -> None:
        self._overall_rate = overall_rate
        self._zones = zones
        self._swept_at = MAX_IDLE_BUCKETS
        self._began = MonotonicTime(0.0)
        self._overall: TokenBucket | None = None
        self._policies: dict[str, TokenBucket] = {}
        self._keyed: dict[str, TokenBucket] = {}
        self.restart(self._began)

    def restart(self, now: MonotonicTime) -> None:
        """Empty all buckets, since the tokens that other processes used until now are not known."""
        self._began = now
        rate = self._overall_rate
        self._overall = None if rate is None else TokenBucket(rate, one_second(rate), now)
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
        """Take a token of each bucket that concerns the pod. A rehearsal takes as many as an eviction."""
        for _, bucket in self._buckets(request):
            bucket.take(request.now.monotonic)

    def _buckets(self, request: EvictionRequest) -> list[tuple[Refusal, TokenBucket]]:
        """Return the buckets that concern a pod, each with its refusal. A hard deadline has only the overall rate."""
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
        """Return the bucket of a zone or namespace, whose burst is the tokens of one second."""
        bucket = self._keyed.get(key)
        if bucket is None:
            if len(self._keyed) >= self._swept_at:
                self._keyed = {name: one for name, one in self._keyed.items() if not one.is_full(now)}
                self._swept_at = max(MAX_IDLE_BUCKETS, 2 * len(self._keyed))
            bucket = self._keyed[key] = TokenBucket(rate, one_second(rate), self._began)
        elif bucket.rate != rate:
            bucket.resize(rate, one_second(rate), now)
        return bucket


_OVERALL, _OF_POLICY = Refusal(OVERALL_RATE), Refusal(POLICY_RATE)
