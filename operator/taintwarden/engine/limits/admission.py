"""All limits together: a pod goes when every one admits it, and only then takes from any."""

from collections.abc import Callable, Iterable, Mapping

from taintwarden.engine.limits import departures, refusal, zones
from taintwarden.engine.limits.bounces import Bounces
from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.limits.departures import Departures
from taintwarden.engine.limits.guard import Guard, GuardRecord
from taintwarden.engine.limits.rates import Rates
from taintwarden.engine.limits.refusal import Refusal
from taintwarden.engine.limits.windows import Windows
from taintwarden.engine.limits.workloads import Workloads
from taintwarden.engine.limits.zones import Zones
from taintwarden.engine.model import Instant, Mode, Pod, Policy, Taint


class Limiter:
    """Every limit of every policy, and what they know of the cluster.

    Args:
        overall_rate: evictions per second over all policies; None is no cap. Its burst is one second's worth.
        release: told the key of a refusal that may be another answer now.
        reconsider: told the policy whose own refusal may be another answer now.
        population: counts the pods that a policy may evict.

    """

    def __init__(
        self,
        overall_rate: float | None = None,
        *,
        release: Callable[[str], None] = lambda _: None,
        reconsider: Callable[[str], None] = lambda _: None,
        population: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._release = release
        self._reconsider = reconsider
        self._population = population
        self.rates = Rates(overall_rate)
        self.workloads = Workloads(release)
        self.departures = Departures()
        self.budgets = Budgets(release)
        self.bounces = Bounces()
        self.zones = Zones(self._zone_changed)
        self.guards: dict[str, Guard] = {}
        self._windows: dict[str, Windows] = {}
        self._uids: dict[str, str] = {}
        self._modes: dict[str, Mode] = {}
        self._records: dict[str, GuardRecord] = {}
        """What guards remembered that do not exist now: saved by others, or before they were switched off."""
        self._takers: dict[str, tuple[str, float]] = {}
        """UID -> the policy whose guard counted its eviction, and in which slot, until that is settled."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Take over changed limits at once. What was spent stays spent."""
        policies = tuple(policies)
        self.rates.configure(policies, now.monotonic)
        self.zones.configure(policies)
        self.bounces.configure(policies)
        self._windows = {policy.name: Windows(policy.windows) for policy in policies if policy.windows}
        known, self.guards = self.guards, {}
        for policy in policies:
            if self._uids.get(policy.name, policy.uid) != policy.uid:  # a namesake inherits nothing
                known.pop(policy.name, None)
                self._records.pop(policy.name, None)
            guard, settings = known.pop(policy.name, None), policy.limits.guard
            if settings is None or policy.reclaim is not None:
                if guard is not None:
                    self._records[policy.name] = guard.current_record(now)
                continue
            if guard is None:
                guard = Guard(settings, lambda name=policy.name: self._population(name))  # type: ignore[misc]
                if policy.name in self._records:
                    guard.restore(self._records.pop(policy.name), now)
            guard.change(settings)
            if self._modes.get(policy.name) is Mode.DRY_RUN and policy.mode is not Mode.DRY_RUN:
                guard.forget_rehearsals()
            self.guards[policy.name] = guard
        names = [policy.name for policy in policies]
        for name in [name for name in self._uids if name not in names]:
            self._records.pop(name, None)
        self._uids = {policy.name: policy.uid for policy in policies}
        self._modes = {policy.name: policy.mode for policy in policies}

    def restore_guard(self, policy: str, record: GuardRecord, now: Instant) -> None:
        """Take over what another process saved of a guard."""
        if policy in self.guards:
            self.guards[policy].restore(record, now)
        else:
            self._records[policy] = record

    # -- what pods do -------------------------------------------------------------------------------------------

    def leave(self, pod: Pod, policy: Policy, taint: Taint, now: Instant, *, asks_budgets: bool) -> int:
        """An eviction by ``taint`` is on its way.

        Returns:
            How many in a row that makes on this node, if the pod came back to where its workload was evicted; else 0.

        """
        if not self.departures.is_leaving(pod.uid):  # else the last call may have been carried out, and counts already
            self._count(pod.uid, policy, now)
        self.workloads.leave(pod)
        self.departures.leave(pod)
        if asks_budgets:
            self.budgets.leave(pod)
        return self.bounces.leave(pod, policy.name, taint, now.monotonic)

    def rehearse(self, pod: Pod, policy: Policy, now: Instant) -> None:
        """An eviction would be on its way under a policy that only rehearses."""
        guard = self.guards.get(policy.name)
        if guard is not None:
            guard.forget(pod.uid)
            guard.rehearse(now)

    def _count(self, uid: str, policy: Policy, now: Instant) -> None:
        guard = self.guards.get(policy.name)
        if guard is not None:
            guard.forget(uid)
            self._takers[uid] = (policy.name, guard.take(now))

    def stay(self, pod: Pod) -> None:
        """It did not happen, for certain."""
        self.workloads.stay(pod)
        self.departures.stay(pod.uid)
        self._takers.pop(pod.uid, None)
        self._release(departures.key(pod.node))

    def settle(self, uid: str, *, evicted: bool, uncertain: bool) -> None:
        """The API server has answered, or not (``uncertain``)."""
        self.budgets.settle(uid, evicted=evicted)
        if uncertain:
            return
        policy, slot = self._takers.pop(uid, ("", 0.0))
        if not evicted and policy in self.guards:
            self.guards[policy].give_back(slot)

    def terminating(self, uid: str, node: str, until: float | None) -> None:
        """A pod of a node terminates, until then; None: it is gone."""
        self.departures.terminating(uid, node, until)
        if until is None:
            self._release(departures.key(node))

    def gone(self, pod: Pod, now: Instant) -> None:
        """The pod is not there any more, or terminating."""
        self.workloads.gone(pod, now.monotonic)
        self.bounces.gone(pod)
        self.departures.stay(pod.uid)

    # -- may it go? -----------------------------------------------------------------------------------------------

    def admit(
        self, pod: Pod, policy: Policy, taint: Taint, labels: Mapping[str, str], now: Instant, *, deletes: bool
    ) -> Refusal | None:
        """Whether ``pod`` may go now because of ``taint``, from a node with these ``labels``. If so it takes tokens.

        ``deletes``: no PodDisruptionBudget is asked. A policy with ``reclaim`` knows only the overall cap and budgets.
        """
        name, monotonic = policy.name, now.monotonic
        buckets: list[tuple[str, str, TokenBucket]] = []
        hard = policy.reclaim is not None
        if not hard:
            if (refused := self._refuse_policy(pod, policy, now)) is not None:
                return refused
            if (own := self.rates.of_policy(name)) is not None:
                buckets.append((refusal.POLICY_RATE, "", own))
        if self.rates.overall is not None:
            buckets.append((refusal.OVERALL_RATE, "", self.rates.overall))
        for limit, key, bucket in buckets:
            if (at := bucket.available_at(monotonic)) > monotonic:
                return Refusal(limit, at, key)
        refused = None if deletes else self.budgets.refuse(pod)
        if refused is None and not hard:
            bounced = self.bounces.refuse(pod, name, taint, monotonic)
            refused = bounced or self._refuse_pod(pod, policy, labels, now, buckets)
        if refused is None:
            for _, _, bucket in buckets:
                bucket.take(monotonic)
        return refused

    def _refuse_policy(self, pod: Pod, policy: Policy, now: Instant) -> Refusal | None:
        name = policy.name
        windows = self._windows.get(name)
        if windows is not None and (opens_at := windows.closed_until(now.wall)) is not None:
            return Refusal(refusal.WINDOW, now.monotonic + max(0.0, opens_at - now.wall))
        if self.zones.all_full(name):
            return Refusal(refusal.ALL_ZONES_FULL)
        guard = self.guards.get(name)
        if guard is not None:
            if guard.halts:
                return Refusal(refusal.GUARD)
            counted = policy.mode is not Mode.ENFORCE or self.departures.is_leaving(pod.uid)
            if not counted and not guard.may_take(now):
                return Refusal(refusal.GUARD_RECORD)
        return None

    def _refuse_pod(
        self,
        pod: Pod,
        policy: Policy,
        labels: Mapping[str, str],
        now: Instant,
        buckets: list[tuple[str, str, TokenBucket]],
    ) -> Refusal | None:
        """Ask the limits that some pods of a policy meet and others do not; their buckets are added to ``buckets``."""
        limits = policy.limits
        if limits.max_unavailable is not None:
            refused = self.workloads.refuse(pod, limits.max_unavailable, now.monotonic)
            if refused is not None:
                return refused
        if limits.node_max_concurrent is not None:
            refused = self.departures.refuse(pod, limits.node_max_concurrent, now)
            if refused is not None:
                return refused
        keyed: list[tuple[str, str, float]] = []
        if limits.zone_health is not None or limits.zone_evictions_per_second is not None:
            zone = zones.zone_of(labels)
            pace = self.zones.pace(policy.name, zone)
            if pace is not None and not pace[1]:
                return zones.halted(policy.name, zone)
            if limits.zone_evictions_per_second is not None:
                keyed.append((refusal.PER_ZONE, zones.key(policy.name, zone), limits.zone_evictions_per_second))
            if pace is not None:
                keyed.append((pace[0], f"{zones.key(policy.name, zone)}/{pace[0]}", pace[1]))
        if limits.namespace_evictions_per_second is not None:
            key = f"namespace/{policy.name}/{pod.namespace}"
            keyed.append((refusal.PER_NAMESPACE, key, limits.namespace_evictions_per_second))
        for limit, key, rate in keyed:
            bucket = self.rates.keyed(key, rate, now.monotonic)
            if (at := bucket.available_at(now.monotonic)) > now.monotonic:
                return Refusal(limit, at, key)
            buckets.append((limit, key, bucket))
        return None

    def _zone_changed(self, policy: str, zone: str) -> None:
        key = zones.key(policy, zone)
        for shared in (key, *(f"{key}/{limit}" for limit in (refusal.ZONE_DEGRADED, refusal.ZONE_FULL))):
            self._release(shared)
        self._reconsider(policy)
