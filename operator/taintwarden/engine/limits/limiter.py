"""The list of all limits: a pod is evicted when all of them admit it, and only then reserves at any of them."""

from collections.abc import Callable, Iterable

from taintwarden.engine.limits.bounces import Bounces
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.limits.departures import Departures
from taintwarden.engine.limits.guards import Guards
from taintwarden.engine.limits.protocol import Freed, Limit, Request, Settlement, Settling
from taintwarden.engine.limits.rates import PartedRates, Rates, SharedRates
from taintwarden.engine.limits.refusal import Refusal
from taintwarden.engine.limits.windows import EvictionWindows
from taintwarden.engine.limits.workloads import Workloads
from taintwarden.engine.limits.zones import Zones
from taintwarden.engine.model import Instant, Pod, Policy


class Limiter:
    """All limits of all policies, and what they know of the cluster.

    Args:
        overall_rate: evictions per second over all policies; None is no cap. Its burst is one second's worth.

    """

    def __init__(self, overall_rate: float | None = None) -> None:
        self.freed = freed = Freed()
        self.windows = EvictionWindows()
        self.zones = Zones(freed)
        self.guards = Guards(freed)
        self.rates = Rates(overall_rate, self.zones, freed)
        self.budgets = Budgets(freed)
        self.bounces = Bounces()
        self.workloads = Workloads(freed)
        self.departures = Departures(freed)
        shared, parted = SharedRates(self.rates), PartedRates(self.rates)
        # In the order of evaluation: first what applies to a whole policy, so that one pod decides for all of them.
        self._limits: tuple[Limit, ...] = (
            self.windows,
            self.zones,
            self.guards,
            shared,
            self.budgets,
            self.bounces,
            self.workloads,
            self.departures,
            parted,
        )
        self._rate_limits = (shared, parted)
        self._settling: tuple[Settling, ...] = (
            self.guards,
            shared,
            self.budgets,
            self.workloads,
            self.departures,
            parted,
        )
        self._admitting: dict[str, list[Callable[[Request], Refusal | None]]] = {}
        """By policy: ``admit`` of the limits that may refuse, or count, its evictions."""
        self._reserving: dict[str, list[Callable[[Request], None]]] = {}
        """By policy: ``reserve`` of the same limits."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed limits at once. What was used remains used."""
        policies = tuple(policies)
        self.windows.configure(policies)
        self.zones.configure(policies)
        self.guards.configure(policies, now)
        self.rates.configure(policies, now.monotonic)
        self.bounces.configure(policies)
        self.departures.configure(policies)
        concerned = {policy.name: [one for one in self._limits if one.concerns(policy)] for policy in policies}
        self._admitting = {policy: [one.admit for one in limits] for policy, limits in concerned.items()}
        self._reserving = {policy: [one.reserve for one in limits] for policy, limits in concerned.items()}

    def admit(self, request: Request) -> Refusal | None:
        """The first refusal, None if every limit admits the pod."""
        for admit in self._admitting[request.policy.name]:
            if (refused := admit(request)) is not None:
                return refused
        return None

    def reserve(self, request: Request) -> None:
        """Reserve at every limit what the eviction costs, to be settled once."""
        for reserve in self._reserving[request.policy.name]:
            reserve(request)

    def settle(self, uid: str, settlement: Settlement) -> None:
        """The eviction call for this pod ended."""
        for limit in self._settling:
            limit.settle(uid, settlement)

    def rehearse(self, request: Request) -> None:
        """An eviction would be issued: it uses up rates and counts at the guard, and the pod stays."""
        for limit in self._rate_limits:
            limit.spend(request)
        guard = self.guards.by_policy.get(request.policy.name)
        if guard is not None:
            guard.rehearse(request.pod.uid, request.now, counts=not request.is_latecomer)

    def stay(self, uid: str) -> None:
        """No eviction of the pod is in progress any more."""
        self.workloads.stay(uid)
        self.departures.stay(uid)
        self.over(uid)

    def over(self, uid: str) -> None:
        """No call for this pod is in progress, and whether it is gone is known."""
        for guard in self.guards.by_policy.values():
            guard.stay(uid)

    def gone(self, pod: Pod, now: Instant) -> None:
        """The pod is gone or terminating."""
        self.workloads.gone(pod, now.monotonic)
        self.bounces.gone(pod)
        self.departures.stay(pod.uid)
