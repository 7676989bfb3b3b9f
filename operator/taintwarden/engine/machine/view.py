"""What other packages may read of the machine: frozen values, created on request. It exposes nothing else."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from heapq import nsmallest

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.limits import Limiter, Refusal
from taintwarden.engine.limits.guard import Guard, GuardRecord
from taintwarden.engine.limits.refusal import (
    ALL_ZONES_FULL,
    BUDGET_LIMITS,
    GUARD,
    SEVERAL_BUDGETS,
    STALE_VIEW,
    WINDOW,
)
from taintwarden.engine.machine.claims import Claim, Claims, Evictee, Phase
from taintwarden.engine.machine.cluster import Cluster, NodeState
from taintwarden.engine.machine.events import Outcome
from taintwarden.engine.machine.evictions import Evictions
from taintwarden.engine.machine.guards import Guards
from taintwarden.engine.machine.mirroring import wanted_labels
from taintwarden.engine.machine.queues import Lane, Queues
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import (
    Budget,
    GuardAction,
    Instant,
    MonotonicTime,
    Node,
    Pod,
    PodClass,
    Policy,
    Profile,
    Taint,
    Tolerations,
    WallTime,
)
from taintwarden.engine.order import SAME_URGENCY_SECONDS, Place, place_of
from taintwarden.engine.placement import NodeLabels

NEXT_PODS = 10
"""How many of the next pods a report lists."""


class NodeView(msgspec.Struct, frozen=True):
    """A node with the histories of its taints, and the policies that act on it."""

    node: Node
    taints: tuple[tuple[Taint, TaintHistory], ...]
    policies: tuple[Policy, ...]


class ClaimView(msgspec.Struct, frozen=True):
    """One policy evicts one pod: when, why, and the phase of that."""

    pod: Pod
    verdict: TaintVerdict
    due_at: WallTime
    phase: Phase
    limit: str = ""
    """The limit that refuses it now."""
    until: MonotonicTime | None = None
    """When that limit may admit it, if known."""
    detail: str = ""
    """The message of the limit or the API server."""
    budgets: tuple[str, ...] = ()
    """``namespace/name`` of the PodDisruptionBudgets that block it."""
    outcome: Outcome | None = None
    """The outcome of the last call, if that did not evict the pod."""
    ready_since: MonotonicTime = MonotonicTime(0.0)

    @property
    def policy(self) -> Policy:
        """The policy that evicts the pod."""
        return self.verdict.policy


class LimitReport(msgspec.Struct, frozen=True):
    """A limit that refuses due pods of a policy: how many, since when, and when it may admit the next one if known."""

    limit: str
    pods: int
    since: float
    until: float | None


class ZoneReport(msgspec.Struct, frozen=True):
    """The state of a zone for a policy (Normal, Degraded, Full), by the nodes it counts."""

    zone: str
    state: str
    nodes: int
    degraded_nodes: int


class InvalidTaint(msgspec.Struct, frozen=True):
    """A taint of a node whose value cannot be compared, and the pods of a policy that this affects."""

    node: str
    taint: str
    pods: int


class GuardReport(msgspec.Struct, frozen=True):
    """The guard of a policy: its record, and what it compares now."""

    record: GuardRecord
    halts: bool
    expected: int
    """Pods that have to leave within the window."""
    limit: int
    population: int
    action: GuardAction


class PolicyReport(msgspec.Struct, frozen=True):
    """Counts and the near future of one policy."""

    policy: Policy
    selected_nodes: int = 0
    degraded_nodes: int = 0
    pending: int = 0
    """Pods that it evicts, now or later."""
    blocked: int = 0
    """Of these, pods that a PodDisruptionBudget blocks."""
    evicted: int = 0
    invalid: tuple[InvalidTaint, ...] = ()
    """Taints whose values cannot be compared, the most pods first."""
    next_deadline: float | None = None
    blocked_by: Mapping[str, int] = {}
    """Pods by the outcome of their last call, where that did not evict them."""
    next_pods: tuple[ClaimView, ...] = ()
    limits: tuple[LimitReport, ...] = ()
    """The limits that refuse due pods, the most pods first."""
    budgets: tuple[tuple[str, int], ...] = ()
    """``namespace/name`` of PodDisruptionBudgets with the number of due pods each blocks, the most pods first."""
    zones: tuple[ZoneReport, ...] = ()
    """By name. Empty if the policy has no zoneHealth."""
    all_zones_full: bool = False
    bouncing: int = 0
    """Workloads that bounce."""
    guard: GuardReport | None = None
    """None if the policy has no guard."""

    @property
    def held_invalid(self) -> int:
        """Pairs of a pod and a taint whose value cannot be compared."""
        return sum(one.pods for one in self.invalid)

    @property
    def limited_by(self) -> str:
        """The limit that refuses the most pods; empty if none does."""
        return self.limits[0].limit if self.limits else ""


class View:
    """Reads the machine. Every result is a frozen value that does not change with it."""

    def __init__(
        self,
        *,
        step: Step,
        cluster: Cluster,
        claims: Claims,
        verdicts: Verdicts,
        limiter: Limiter,
        queues: Queues,
        evictions: Evictions,
        guards: Guards,
        blind: Collection[str],
        is_synced: Callable[[], bool],
    ) -> None:
        self._step = step
        self._cluster = cluster
        self._claims = claims
        self._verdicts = verdicts
        self._limiter = limiter
        self._queues = queues
        self._evictions = evictions
        self._guards = guards
        self._blind = blind
        self._is_synced = is_synced

    # -- the machine itself ---------------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        """Whether all data that decisions need is known."""
        return self._is_synced()

    @property
    def is_leading(self) -> bool:
        """Whether this process may act."""
        return self._step.leading

    @property
    def is_blind(self) -> bool:
        """Whether a stream is cut off from the API server."""
        return bool(self._blind)

    @property
    def is_busy(self) -> bool:
        """Whether calls in progress fill half the slots: work that is not urgent waits until the wave has passed."""
        return self._evictions.is_busy

    @property
    def in_flight(self) -> int:
        """Eviction calls in progress."""
        return self._evictions.in_flight

    @property
    def evaluations(self) -> Mapping[tuple[str, str], int]:
        """Evaluations computed (not shared), by the operator that held and the result."""
        return dict(self._verdicts.evaluator.counts)

    # -- what is in force -----------------------------------------------------------------------------------------

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies in force, by name."""
        return self._verdicts.policies

    @property
    def profiles(self) -> list[Profile]:
        """The profiles in force, by namespace and name."""
        return self._verdicts.profiles()

    def profiles_of(self, pod_class: PodClass) -> tuple[Profile, ...]:
        """The profiles that select pods of a class, by name."""
        return self._verdicts.profiles_of(pod_class)

    def tolerations_of(self, pod_class: PodClass) -> Tolerations:
        """All tolerations of pods of a class: their own and those of profiles."""
        return self._verdicts.tolerations(pod_class)

    def policies_for(self, pod_class: PodClass) -> tuple[Policy, ...]:
        """The policies that may evict pods of a class, by name."""
        return self._verdicts.selecting(pod_class)

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """The labels of a namespace; None if it is not known."""
        labels = self._verdicts.namespace_labels(name)
        return None if labels is None else dict(labels)

    # -- the cluster ----------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes."""
        return tuple(name for name, state in self._cluster.nodes.items() if state.node is not None)

    def node(self, name: str) -> NodeView | None:
        """A node; None if it is not known, even if pods refer to it."""
        state = self._cluster.nodes.get(name)
        if state is None or state.node is None:
            return None
        return NodeView(state.node, tuple(state.taints()), self._verdicts.select(state))

    def pods(self, node: str) -> tuple[Pod, ...]:
        """The pods of a node."""
        state = self._cluster.nodes.get(node)
        return () if state is None else tuple(state.pods.values())

    @property
    def pod_count(self) -> int:
        """How many running pods there are."""
        return self._cluster.classes.total()

    def verdicts(self, node: str, pod_class: PodClass) -> tuple[TaintVerdict, ...]:
        """The verdicts on pods of a class on a node, which need not have such a pod."""
        state = self._cluster.nodes.get(node)
        return () if state is None else self._verdicts.compute(state, pod_class)

    def placement_labels(self, node: str) -> NodeLabels | None:
        """The labels that repeat the taints of a node for the scheduler; None if no policy requests any."""
        state = self._cluster.nodes.get(node)
        return None if state is None or state.node is None else wanted_labels(state.node, self._verdicts.policies)

    def budgets_of(self, pod_class: PodClass) -> tuple[Budget, ...]:
        """The PodDisruptionBudgets that select pods of a class, by name."""
        return self._limiter.budgets.of(pod_class)

    def budgets(self, pod: Pod) -> list[tuple[Budget, Refusal | None]]:
        """The PodDisruptionBudgets that the API server checks for a pod, by name, each with its own refusal."""
        return self._limiter.budgets.evaluate(pod)

    # -- claims ---------------------------------------------------------------------------------------------------

    def claims(self, uid: str) -> tuple[ClaimView, ...]:
        """The claims on a pod: enforced ones first, then the earliest deadline."""
        evictee = self._claims.evictees.get(uid)
        return () if evictee is None else self._views(evictee)

    def all_claims(self) -> Iterator[ClaimView]:
        """Every claim, by pod."""
        for evictee in self._claims.evictees.values():
            yield from self._views(evictee)

    def _views(self, evictee: Evictee) -> tuple[ClaimView, ...]:
        standing = (claim for claim in evictee.claims if not claim.withdrawn)
        ordered = sorted(standing, key=lambda one: (not one.is_enforced, one.due_at, one.key))
        return tuple(view for claim in ordered if (view := self._view(claim, evictee)) is not None)

    def _view(self, claim: Claim, evictee: Evictee) -> ClaimView | None:
        pod = self._cluster.pod(claim.node, claim.uid)
        if pod is None and evictee.call is not None:
            pod = evictee.call.order.pod
        if pod is None:
            return None
        holding = self._holding(claim)
        detail = claim.refusal.detail if claim.refusal else claim.message
        return ClaimView(
            pod,
            claim.verdict,
            claim.due_at,
            claim.phase,
            limit=holding[0] if holding else "",
            until=holding[1] if holding else None,
            detail=detail,
            budgets=tuple(self._budgets(claim, pod)),
            outcome=claim.outcome,
            ready_since=claim.ready_since,
        )

    def _holding(self, claim: Claim) -> tuple[str, MonotonicTime | None] | None:
        """The limit that refuses a due claim, and until when; None if none does."""
        if claim.phase not in (Phase.READY, Phase.BLOCKED):
            return None
        if self._blind:
            return STALE_VIEW, None
        refusal, of_all = claim.refusal, self._evictions.refused.get(Lane.of(claim.policy))
        if claim.phase is Phase.READY or (of_all is not None and of_all.limit in (WINDOW, GUARD, ALL_ZONES_FULL)):
            refusal = of_all  # all claims behind the first of their lane wait for the same limit
        return None if refusal is None else (refusal.limit, refusal.until)

    def _budgets(self, claim: Claim, pod: Pod) -> list[str]:
        """The budgets that block a due pod, by their status or by an answer of the API server."""
        blocked = claim.phase is Phase.BLOCKED and claim.limit in BUDGET_LIMITS
        asked = claim.phase is Phase.DELAYED and claim.outcome in (Outcome.BLOCKED, Outcome.MISCONFIGURED)
        return [str(budget) for budget in self._limiter.budgets.of(pod.shared)] if blocked or asked else []

    # -- reports --------------------------------------------------------------------------------------------------

    def report(self, now: Instant) -> list[PolicyReport]:
        """One report per policy, by name."""
        tallies = {policy.name: _Tally() for policy in self._verdicts.policies}
        for claim in self._claims:
            phase = claim.phase
            tally = tallies.get(claim.verdict.policy.name)
            if tally is None or phase is Phase.LEAVING or claim.withdrawn:
                continue
            pod = self._cluster.pod(claim.node, claim.uid)
            tally.add(claim, pod)
            if phase is Phase.WAITING:
                continue  # nothing refuses it yet
            holding = self._holding(claim)
            if holding is not None:
                tally.limits.setdefault(holding[0], []).append((claim.ready_since, holding[1]))
            if phase in (Phase.BLOCKED, Phase.DELAYED) and pod is not None:
                tally.budgets.update(self._budgets(claim, pod))
        selected, invalid = self._count_nodes()
        bouncing = self._limiter.bounces.bouncing(now.monotonic)
        return [
            self._report(policy, tallies[policy.name], selected, invalid, bouncing, now)
            for policy in self._verdicts.policies
        ]

    def _report(
        self,
        policy: Policy,
        tally: "_Tally",
        selected: Mapping[str, int],
        invalid: Mapping[tuple[str, str, str], int],
        bouncing: Mapping[str, int],
        now: Instant,
    ) -> PolicyReport:
        name = policy.name
        views = (self._view(claim, self._claims.evictees[claim.uid]) for claim in tally.soonest())
        return PolicyReport(
            policy,
            selected_nodes=selected.get(name, 0),
            degraded_nodes=len(tally.nodes),
            pending=tally.pending,
            blocked=tally.blocked_by.get(Outcome.BLOCKED.value, 0),
            evicted=self._evictions.accepted[name],
            invalid=_invalid(name, invalid),
            next_deadline=tally.next_deadline,
            blocked_by=dict(tally.blocked_by),
            next_pods=tuple(view for view in views if view is not None),
            limits=_limits(tally.limits, now),
            budgets=tuple(sorted(tally.budgets.items(), key=lambda one: (-one[1], one[0]))),
            zones=tuple(ZoneReport(*zone) for zone in self._limiter.zones.table(name)),
            all_zones_full=self._limiter.zones.all_full(name),
            bouncing=bouncing.get(name, 0),
            guard=self.guard(name, now),
        )

    def guard(self, policy: str, now: Instant) -> GuardReport | None:
        """The guard of a policy; None if it has none."""
        guard: Guard | None = self._limiter.guards.by_policy.get(policy)
        if guard is None:
            return None
        record, population = guard.record(now), guard.population()
        limit = guard.settings.limit(population)
        return GuardReport(record, guard.halts, guard.expected(), limit, population, guard.settings.action)

    def _count_nodes(self) -> tuple[Counter[str], Counter[tuple[str, str, str]]]:
        """By policy the nodes that it selects; by policy, node and taint the pods affected by an invalid value."""
        selected: Counter[str] = Counter()
        invalid: Counter[tuple[str, str, str]] = Counter()
        for state in self._cluster.nodes.values():
            if state.node is not None:
                selected.update(policy.name for policy in state.policies or ())
                if state.reported_invalid:
                    self._count_invalid(state, invalid)
        return selected, invalid

    def _count_invalid(self, state: NodeState, invalid: Counter[tuple[str, str, str]]) -> None:
        for pod in state.pods.values():
            for verdict in self._verdicts.of(state, pod.shared):
                if verdict.invalid and state.node is not None:
                    invalid[verdict.policy.name, state.node.name, str(verdict.taint)] += 1

    def matched_pods(self) -> dict[str, int]:
        """How many running pods each profile selects, by ``namespace/name``."""
        matched = dict.fromkeys(map(str, self.profiles), 0)
        if matched:
            for pod_class, count in self._cluster.classes.items():
                for profile in self.profiles_of(pod_class):
                    matched[str(profile)] += count
        return matched


def _invalid(policy: str, counted: Mapping[tuple[str, str, str], int]) -> tuple[InvalidTaint, ...]:
    of_policy = (InvalidTaint(node, taint, pods) for (name, node, taint), pods in counted.items() if name == policy)
    return tuple(sorted(of_policy, key=lambda one: (-one.pods, one.node, one.taint)))


class _Tally:
    """The counts of one policy's claims."""

    def __init__(self) -> None:
        self.pending = 0
        self.nodes: set[str] = set()
        self.next_deadline: float | None = None
        self.blocked_by: Counter[str] = Counter()
        self.limits: dict[str, list[tuple[MonotonicTime, MonotonicTime | None]]] = {}
        self.budgets: Counter[str] = Counter()
        self._alike: dict[tuple[PodClass, float, float | None], list[Claim]] = {}
        """Claims of the same place, by what it depends on. To compute it for every pod of a wave takes 60 ms."""

    def add(self, claim: Claim, pod: Pod | None) -> None:
        self.pending += 1
        self.nodes.add(claim.node)
        due_at = claim.due_at
        if self.next_deadline is None or due_at < self.next_deadline:
            self.next_deadline = due_at
        if pod is not None:
            alike = pod.shared, due_at // SAME_URGENCY_SECONDS, claim.verdict.hard_at
            self._alike.setdefault(alike, []).append(claim)
        if claim.phase is Phase.DELAYED and claim.outcome is not None:
            self.blocked_by[claim.outcome.value] += 1
        elif claim.phase is Phase.BLOCKED and claim.limit in BUDGET_LIMITS:
            outcome = Outcome.MISCONFIGURED if claim.limit == SEVERAL_BUDGETS else Outcome.BLOCKED
            self.blocked_by[outcome.value] += 1

    def soonest(self) -> list[Claim]:
        """The first claims in the order of their evictions."""
        by_place: dict[Place, list[Claim]] = {}
        for (pod_class, _, hard_at), alike in self._alike.items():
            first = alike[0]
            by_place.setdefault(place_of(pod_class, first.policy, first.due_at, hard_at), []).extend(alike)
        found: list[Claim] = []
        for place in sorted(by_place):
            found += nsmallest(NEXT_PODS - len(found), by_place[place], key=lambda one: (one.due_at, one.key))
            if len(found) == NEXT_PODS:
                break
        return found


def _limits(
    holding: Mapping[str, list[tuple[MonotonicTime, MonotonicTime | None]]], now: Instant
) -> tuple[LimitReport, ...]:
    found = []
    for limit, pods in holding.items():
        until = min((until for _, until in pods if until is not None), default=None)
        at = None if until is None else max(now.wall, now.wall_at(until))
        found.append(LimitReport(limit, len(pods), now.wall_at(min(since for since, _ in pods)), at))
    return tuple(sorted(found, key=lambda one: (-one.pods, one.limit)))


__all__ = ["ClaimView", "GuardReport", "LimitReport", "NodeView", "PolicyReport", "View", "ZoneReport"]
