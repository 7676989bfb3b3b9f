"""The list of all limits. A pod is evicted when all of them admit it, and only then takes tokens."""

from collections.abc import Callable, Iterable
from typing import Any

from taintwarden.engine.limits.bounces import Bounces
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.limits.calls import Calls
from taintwarden.engine.limits.departures import Departures
from taintwarden.engine.limits.guards import GuardRecords, Guards
from taintwarden.engine.limits.places import Places
from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Limit, Settlement
from taintwarden.engine.limits.rates import Rates
from taintwarden.engine.limits.refusal import Refusal
from taintwarden.engine.limits.replacements import Replacements
from taintwarden.engine.limits.windows import EvictionWindows
from taintwarden.engine.limits.workloads import Workloads
from taintwarden.engine.limits.zones import Zones
from taintwarden.engine.model import Instant, MonotonicTime, Pod, WallTime
from taintwarden.engine.policy import Policy


class Limiter:
    """All limits of all policies.

    Args:
        overall_rate: evictions per second over all policies; None: no cap. The burst is one second's worth.
        slots: maximum number of calls in progress.

    """

    def __init__(self, overall_rate: float | None = None, slots: int = 64) -> None:
        self.freed = freed = FreedKeys()
        self.zones = Zones(freed)
        self.calls = Calls(slots, freed)
        self.rates = Rates(overall_rate, self.zones)
        self.budgets = Budgets(freed)
        self.guards = Guards(self.budgets, freed)
        self.bounces = Bounces()
        self.workloads = Workloads(freed)
        self.departures = Departures(freed)
        self.places = Places(freed)
        self.replacements = Replacements(freed, self.budgets)
        # Order of evaluation. Limits that refuse a policy or lane come first, since they decide for all its pods; rates
        # follow those of pods. The guard's record comes last, since it can reserve few. Only a call takes tokens.
        self._limits: tuple[Limit, ...] = (
            EvictionWindows(),
            self.zones,
            self.guards,
            self.calls,
            self.replacements,
            self.budgets,
            self.bounces,
            self.workloads,
            self.departures,
            self.places,
            self.rates,
            GuardRecords(self.guards),
        )
        self._admitting: dict[str, list[Callable[[EvictionRequest], Refusal | None]]] = {}
        """Policy -> ``admit`` of the limits that may refuse, or count, its evictions."""
        self._reserving: dict[str, list[Callable[[EvictionRequest], None]]] = {}
        """Policy -> ``reserve`` of the same limits."""
        self.configure((), Instant(WallTime(0.0), MonotonicTime(0.0)))

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed limits at once. Tokens that were taken remain taken."""
        policies = tuple(policies)
        for limit in self._limits:
            limit.configure(policies, now)
        # Skip these limits while no policy uses them. The others also count pods that they do not limit.
        optional = (self.guards, self.bounces, self.places, self.replacements)
        unused = [limit for limit in optional if not any(map(limit.concerns, policies))]
        used = [limit for limit in self._limits if limit not in unused]
        self._settling, self._staying, self._losing = (_defining(name, used) for name in ("settle", "stay", "gone"))
        concerned = {policy.name: [limit for limit in self._limits if limit.concerns(policy)] for policy in policies}
        self._admitting = {policy: _defining("admit", limits) for policy, limits in concerned.items()}
        self._reserving = {policy: _defining("reserve", limits) for policy, limits in concerned.items()}

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Return the first refusal; None if every limit admits the pod."""
        for admit in self._admitting[request.policy.name]:
            if (refused := admit(request)) is not None:
                return refused
        return None

    def reserve(self, request: EvictionRequest) -> None:
        """Reserve the cost of an eviction at every limit. ``settle`` has to follow exactly once."""
        for reserve in self._reserving[request.policy.name]:
            reserve(request)

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """Note the end of the eviction call for this pod."""
        for settle in self._settling:
            settle(uid, settlement, now)

    def rehearse(self, request: EvictionRequest) -> None:
        """Take the tokens of an eviction in mode DryRun. The guard needs no reservation: it counts the pod as due."""
        self.rates.reserve(request)

    def stay(self, uid: str) -> None:
        """Note that no eviction of the pod is in progress any more."""
        for stay in self._staying:
            stay(uid)

    def gone(self, pod: Pod, now: Instant) -> None:
        """Note that the pod is gone or terminating."""
        for gone in self._losing:
            gone(pod, now)


def _defining(method: str, limits: Iterable[Limit]) -> list[Callable[..., Any]]:
    """Return ``method`` of each limit that overrides it. Most limits do not, so they need no call."""
    return [getattr(limit, method) for limit in limits if getattr(type(limit), method) is not getattr(Limit, method)]
