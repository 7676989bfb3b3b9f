"""Limits that are rates: all policies together, a policy, and its zones and namespaces."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.limits.protocol import EVERY_POLICY, Freed, Request, Settlement
from taintwarden.engine.limits.refusal import OVERALL_RATE, PER_NAMESPACE, PER_ZONE, POLICY_RATE, Refusal
from taintwarden.engine.limits.zones import Zones, key_of
from taintwarden.engine.model import MonotonicTime, Policy

MAX_IDLE_BUCKETS = 10_000

Named = tuple[str, str, TokenBucket]
"""A bucket with its limit and the key of its refusals."""


def one_second(rate: float) -> int:
    """The burst of a rate without a setting for it: one second's worth."""
    return max(1, int(rate))


class Rates:
    """Token buckets that start empty when this process begins to act.

    A pod that is not evicted costs no token: requests that fail are bounded by their back-off, and must not use up the
    tokens that other pods wait for.

    Args:
        overall_rate: evictions per second over all policies; None is no cap.
        zones: the pace that the health of a zone sets.
        freed: receives the keys of buckets to which a token was returned.

    """

    def __init__(self, overall_rate: float | None, zones: Zones, freed: Freed) -> None:
        self.freed = freed
        self._overall_rate = overall_rate
        self._zones = zones
        self._began = MonotonicTime(0.0)
        self._overall: TokenBucket | None = None
        self._policies: dict[str, TokenBucket] = {}
        self._keyed: dict[str, TokenBucket] = {}
        self.restart(self._began)

    @property
    def has_overall(self) -> bool:
        """Whether there is a cap over all policies."""
        return self._overall is not None

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

    def shared(self, request: Request) -> list[Named]:
        """The buckets that all pods of a policy share."""
        own = None if request.is_hard else self._policies.get(request.policy.name)
        buckets = [] if own is None else [(POLICY_RATE, "", own)]
        return buckets if self._overall is None else [*buckets, (OVERALL_RATE, "", self._overall)]

    def halt(self, request: Request) -> Refusal | None:
        """Whether evictions in the pod's zone are halted."""
        if request.is_hard or request.policy.limits.zone_health is None:
            return None
        return self._zones.halted(request.policy.name, request.zone)

    def parted(self, request: Request) -> list[Named]:
        """The buckets of the pod's zone and namespace."""
        limits, now = request.policy.limits, request.now.monotonic
        if request.is_hard:
            return []
        found: list[Named] = []
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

    def _bucket(self, key: str, rate: float, now: MonotonicTime) -> TokenBucket:
        """The bucket of a zone or namespace under a policy, whose burst is one second's worth."""
        bucket = self._keyed.get(key)
        if bucket is None:
            if len(self._keyed) >= MAX_IDLE_BUCKETS:
                self._keyed = {name: one for name, one in self._keyed.items() if not one.is_full(now)}
            bucket = self._keyed[key] = TokenBucket(rate, one_second(rate), self._began)
        elif bucket.rate != rate:
            bucket.resize(rate, one_second(rate), now)
        return bucket


class _Spending(ABC):
    """Takes one token of each bucket that concerns a pod, and returns them if the pod stays."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._taken: dict[str, list[Named]] = {}
        """UID -> the buckets of which the eviction in progress has taken a token."""
        self._last: tuple[Request | None, list[Named]] = (None, [])
        """The last request and its buckets: what is admitted is reserved next."""

    def buckets(self, request: Request) -> list[Named]:
        """Those that concern a pod."""
        if self._last[0] is not request:
            self._last = (request, self._find(request))
        return self._last[1]

    @abstractmethod
    def _find(self, request: Request) -> list[Named]:
        """Those that concern a pod."""

    def spend(self, request: Request) -> list[Named]:
        """Take one token of each. Returns the buckets."""
        buckets = self.buckets(request)
        for _, _, bucket in buckets:
            bucket.take(request.now.monotonic)
        return buckets

    def reserve(self, request: Request) -> None:
        """Take one token of each, until it is known whether they were used."""
        self._taken[request.pod.uid] = self.spend(request)

    def settle(self, uid: str, settlement: Settlement) -> None:
        """A pod that stays costs no token."""
        buckets = self._taken.pop(uid, ())
        if settlement is Settlement.STAYS:
            for _, key, bucket in buckets:
                bucket.give_back()
                self._rates.freed.add(key or EVERY_POLICY)


class SharedRates(_Spending):
    """``evictionsPerSecond`` with ``burst``, and the cap over all policies."""

    def concerns(self, policy: Policy) -> bool:
        """Whether one of the two is set."""
        return self._rates.has_overall or policy.limits.evictions_per_second is not None

    def _find(self, request: Request) -> list[Named]:
        """Those of the policy and of all policies."""
        return self._rates.shared(request)

    def admit(self, request: Request) -> Refusal | None:
        """Whether both have a token."""
        return _first_empty(self.buckets(request), request.now.monotonic)


class PartedRates(_Spending):
    """``perZone.evictionsPerSecond``, the pace of an unhealthy zone, ``perNamespace.evictionsPerSecond``."""

    def concerns(self, policy: Policy) -> bool:
        """Whether one of them is set."""
        limits = policy.limits
        rates = (limits.zone_evictions_per_second, limits.namespace_evictions_per_second, limits.zone_health)
        return any(one is not None for one in rates)

    def _find(self, request: Request) -> list[Named]:
        """Those of the pod's zone and namespace."""
        return self._rates.parted(request)

    def admit(self, request: Request) -> Refusal | None:
        """Whether each of them has a token, and the zone is not halted."""
        return self._rates.halt(request) or _first_empty(self.buckets(request), request.now.monotonic)


def _first_empty(buckets: Iterable[Named], now: MonotonicTime) -> Refusal | None:
    for limit, key, bucket in buckets:
        if (at := bucket.available_at(now)) > now:
            return Refusal(limit, at, key)
    return None
