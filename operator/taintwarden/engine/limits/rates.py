"""Limits that are rates: all policies together, a policy, and its zones and namespaces.

Every call costs a token, whatever its answer. Calls that are likely to fail cost another one besides, of a quarter of
the rate, so that a server that rejects them gets few; and if they fail, what other pods wait for is returned.
"""

from collections.abc import Callable, Iterable

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.limits.protocol import EVERY_POLICY, EvictionRequest, Freed, Limit, Settlement
from taintwarden.engine.limits.refusal import (
    OVERALL_RATE,
    PER_NAMESPACE,
    PER_ZONE,
    POLICY_RATE,
    RETRY_RATE,
    SHARE,
    Refusal,
)
from taintwarden.engine.limits.zones import Zones, key_of
from taintwarden.engine.model import Instant, MonotonicTime, Policy

MAX_IDLE_BUCKETS = 100
RETRY_PART = 4
"""Calls that are likely to fail get this part of a rate, and at least one call a second."""
RETRIES_PER_SECOND = 5.0
"""The same where there is no rate."""
SHARE_PART = 2
"""A namespace gets this part of a rate while due pods of others wait."""

Named = tuple[str, str, TokenBucket]
"""A bucket with its limit and the key of its refusals."""


def one_second(rate: float) -> int:
    """The burst of a rate without a setting for it: one second's worth."""
    return max(1, int(rate))


class Rates:
    """Token buckets that start empty when this process begins to act.

    Args:
        overall_rate: evictions per second over all policies; None is no cap.
        zones: the pace that the health of a zone sets.
        others_wait: whether due pods of other namespaces than this one wait.
        freed: receives the keys of buckets to which a token was returned.
        max_idle_buckets: with more buckets of zones and namespaces than these, and twice as many as were not full the
            last time, full ones are dropped.

    """

    def __init__(
        self,
        overall_rate: float | None,
        zones: Zones,
        others_wait: Callable[[str], bool],
        freed: Freed,
        *,
        max_idle_buckets: int = MAX_IDLE_BUCKETS,
    ) -> None:
        self.freed = freed
        self._overall_rate = overall_rate
        self._zones = zones
        self._others_wait = others_wait
        self._max_idle_buckets = self._swept_at = max_idle_buckets
        self._began = MonotonicTime(0.0)
        self._overall: TokenBucket | None = None
        self._policies: dict[str, TokenBucket] = {}
        self._keyed: dict[str, TokenBucket] = {}
        self.restart(self._began)

    def restart(self, now: MonotonicTime) -> None:
        """Start acting: what other processes used until now is not known."""
        self._began = now
        rate = self._overall_rate
        self._overall = None if rate is None else TokenBucket(rate, one_second(rate), now)
        self._policies = {name: TokenBucket(bucket.rate, bucket.burst, now) for name, bucket in self._policies.items()}
        self._keyed = {}

    def configure(self, policies: Iterable[Policy], now: MonotonicTime) -> None:
        """Apply changed limits at once. What a bucket has spent remains spent."""
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

    def rehearse(self, request: EvictionRequest) -> None:
        """A dry run uses up what an eviction would."""
        for _, _, bucket in (*self.shared(request), *self.parted(request)):
            bucket.take(request.now.monotonic)

    def shared(self, request: EvictionRequest) -> list[Named]:
        """The buckets that all pods of a policy share, and first those of retries."""
        found = self._of_retries(request) if request.is_retry else []
        own = None if request.is_hard else self._policies.get(request.policy.name)
        if own is not None:
            found.append((POLICY_RATE, "", own))
        if self._overall is not None:
            found.append((OVERALL_RATE, "", self._overall))
        return found

    def _of_retries(self, request: EvictionRequest) -> list[Named]:
        rates = {"": self._overall_rate}
        if not request.is_hard:
            rates[request.policy.name] = request.policy.limits.evictions_per_second
        found = []
        for name, rate in rates.items():
            key = f"retries/{name}"
            part = RETRIES_PER_SECOND if rate is None else max(1.0, rate / RETRY_PART)
            found.append((RETRY_RATE, key, self._bucket(key, part, request.now.monotonic)))
        return found

    def halt(self, request: EvictionRequest) -> Refusal | None:
        """Whether evictions in the pod's zone are halted."""
        if request.is_hard or request.policy.limits.zone_health is None:
            return None
        return self._zones.halted(request.policy.name, request.zone)

    def parted(self, request: EvictionRequest) -> list[Named]:
        """The buckets of the pod's zone and namespace."""
        limits, now = request.policy.limits, request.now.monotonic
        found = self._shares(request)
        if request.is_hard:
            return found
        if limits.zone_health is not None or limits.zone_evictions_per_second is not None:
            key = key_of(request.policy.name, request.zone)
            if limits.zone_evictions_per_second is not None:
                found.append((PER_ZONE, key, self._bucket(key, limits.zone_evictions_per_second, now)))
            pace = self._zones.pace(request.policy.name, request.zone)
            if pace is not None and pace[1]:
                paced = f"{key}/{pace[0]}"
                found.append((pace[0], paced, self._bucket(paced, pace[1], now)))
        if limits.namespace_evictions_per_second is not None:
            key = f"namespace/{request.policy.name}/{request.pod.namespace}"
            found.append((PER_NAMESPACE, key, self._bucket(key, limits.namespace_evictions_per_second, now)))
        return found

    def _shares(self, request: EvictionRequest) -> list[Named]:
        """What one namespace may use of the rates of all, while pods of others wait."""
        if request.is_retry or not self._others_wait(request.pod.namespace):
            return []
        namespace, now = request.pod.namespace, request.now.monotonic
        rates = {"": self._overall_rate}
        if not request.is_hard:
            rates[request.policy.name] = request.policy.limits.evictions_per_second
        keys = {f"share/{name}/{namespace}": rate / SHARE_PART for name, rate in rates.items() if rate is not None}
        return [(SHARE, key, self._bucket(key, rate, now)) for key, rate in keys.items()]

    def _bucket(self, key: str, rate: float, now: MonotonicTime) -> TokenBucket:
        """The bucket of a part of the pods, whose burst is one second's worth."""
        bucket = self._keyed.get(key)
        if bucket is None:
            if len(self._keyed) >= self._swept_at:
                self._keyed = {name: one for name, one in self._keyed.items() if not one.is_full(now)}
                self._swept_at = max(self._max_idle_buckets, 2 * len(self._keyed))
            bucket = self._keyed[key] = TokenBucket(rate, one_second(rate), self._began)
        elif bucket.rate != rate:
            bucket.resize(rate, one_second(rate), now)
        return bucket


class _Spending(Limit):
    """Takes one token of each bucket that concerns a pod, and returns them if no call was made."""

    def __init__(self, rates: Rates, find: Callable[[EvictionRequest], list[Named]]) -> None:
        self._rates = rates
        self._find = find
        self._taken: dict[str, tuple[EvictionRequest, list[Named]]] = {}
        """UID -> the request of the eviction in progress, and the buckets of which it has taken a token."""
        self._last: tuple[EvictionRequest | None, list[Named]] = (None, [])
        """The last request and its buckets: what is admitted is reserved next."""

    def buckets(self, request: EvictionRequest) -> list[Named]:
        """Those that concern a pod."""
        if self._last[0] is not request:
            self._last = (request, self._find(request))
        return self._last[1]

    def reserve(self, request: EvictionRequest) -> None:
        """Take one token of each, until it is known whether they were used."""
        buckets = self.buckets(request)
        self._taken[request.pod.uid] = request, buckets
        for _, _, bucket in buckets:
            bucket.take(request.now.monotonic)

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """What was not sent costs no token, and a retry that did not help only those of retries."""
        del now
        request, buckets = self._taken.pop(uid, (None, ()))
        if request is None or not (
            settlement is Settlement.UNSENT or (request.is_retry and settlement is Settlement.STAYS)
        ):
            return
        for limit, key, bucket in buckets:
            if settlement is Settlement.UNSENT or limit != RETRY_RATE:
                bucket.give_back()
                self._rates.freed.add(key or EVERY_POLICY)


class SharedRates(_Spending):
    """``evictionsPerSecond`` with ``burst``, the cap over all policies, and the rate of retries."""

    def __init__(self, rates: Rates) -> None:
        super().__init__(rates, rates.shared)

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed rates at once."""
        self._rates.configure(policies, now.monotonic)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Whether each of them has a token."""
        return _first_empty(self.buckets(request), request.now.monotonic)


class PartedRates(_Spending):
    """``perZone.evictionsPerSecond``, the pace of an unhealthy zone, ``perNamespace.evictionsPerSecond``, shares."""

    def __init__(self, rates: Rates) -> None:
        super().__init__(rates, rates.parted)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Whether each of them has a token, and the zone is not halted."""
        return self._rates.halt(request) or _first_empty(self.buckets(request), request.now.monotonic)


def _first_empty(buckets: Iterable[Named], now: MonotonicTime) -> Refusal | None:
    for limit, key, bucket in buckets:
        if (at := bucket.available_at(now)) > now:
            return Refusal(limit, at, key)
    return None
