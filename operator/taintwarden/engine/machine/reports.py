"""Reports for statuses and gauges of each policy: counts of its claims, its nodes and zones, and its next evictions."""

import math
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import chain

import msgspec

from taintwarden.engine.commands import GuardReport
from taintwarden.engine.limits.departures import Departure
from taintwarden.engine.limits.refusal import BUDGET, FAILING
from taintwarden.engine.machine.claim_views import ClaimView, ClaimViews
from taintwarden.engine.machine.claims import Claim, Phase
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.guarding import guard_report
from taintwarden.engine.machine.queues import rank_of
from taintwarden.engine.machine.staying import count_staying
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, MonotonicTime, Pod, ValueSource, WallTime
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import OnInvalidValue, Policy, has_replace_first
from taintwarden.engine.records import Place
from taintwarden.engine.reported_status import (
    MAX_BLOCKED_BUDGETS,
    MAX_INVALID_TAINTS,
    MAX_MESSAGE_CHARACTERS,
    MAX_STAYING,
    MAX_STUCK,
    MAX_ZONES,
    NEXT_PODS,
    ZONE_STATES,
    BlockedBudget,
    InvalidTaint,
    LimitStatus,
    NextPod,
    PodState,
    ReportedStatus,
    StayingPods,
    StuckPod,
    ZoneStatus,
)
from taintwarden.engine.rfc3339 import at, until
from taintwarden.fields.text import shortened

CLAIMS_AT_ONCE = 1_000
"""Maximum number of pods with claims, or of nodes, that one slice counts. A slice takes 2 to 4 ms."""

STAYING_AT_ONCE = 500
"""Number of pods on counted nodes after which a slice ends. A slice takes about 2 ms."""


class SourceReport(msgspec.Struct, frozen=True):
    """A source of values from which a policy derives taints with ``key``, and how many selected nodes have a value."""

    key: str
    source: str
    nodes: int


class DevicesReport(msgspec.Struct, frozen=True):
    """State of the devices of the cluster, for policies that select taints of devices."""

    pods: int
    """Number of pods with devices."""
    problem: str = ""
    """Why devices are not known; empty if they are."""
    blind: tuple[str, ...] = ()
    """Streams about devices that are cut off. Meanwhile, no pod is evicted because of devices."""


class PlacesReport(msgspec.Struct, frozen=True):
    """Nodes that may lose pods (``concurrentNodes``)."""

    held: tuple[Place, ...]
    waiting: int
    """Number of nodes that wait for a place."""


class PolicyReport(msgspec.Struct, frozen=True):
    """Status of one policy, and the other values of its conditions and gauges."""

    policy: Policy
    status: ReportedStatus
    due: int = 0
    """Number of pending pods whose deadline has passed."""
    released: int = 0
    """Number of due pods that a person released."""
    stuck_pods: int = 0
    """Number of terminating pods that should have ended."""
    invalid_taints: int = 0
    """Number of taints whose values cannot be compared. The status names some of them."""
    sources: tuple[SourceReport, ...] = ()
    """Sources of values, in the order of the policy."""
    blocked_by: Mapping[str, int] = {}
    """Outcome -> number of pods whose last call had it, or that a budget blocks without a call."""
    all_nodes_unhealthy: bool = False
    """True if all nodes are unhealthy. Then only released pods are evicted."""
    bouncing: int = 0
    """Number of workloads that bounce."""
    guard: GuardReport | None = None
    """None if the policy has no guard."""
    places: PlacesReport | None = None
    """None if the policy does not limit ``concurrentNodes``."""
    blind: tuple[str, ...] = ()
    """Streams that are cut off."""
    replacement_problem: str | None = None
    """Why Deployments are not asked for replacements; empty if they are, None if the policy asks for none."""
    devices: DevicesReport | None = None
    """None if the policy selects no taints of devices."""


class Reports:
    """Creates reports.

    Args:
        world: the state.
        views: views of the claims that a report lists, and their refusals.

    """

    def __init__(self, world: World, views: ClaimViews) -> None:
        self._world = world
        self._views = views

    def slices(self, now: Instant, claims_at_once: int = CLAIMS_AT_ONCE) -> Generator[None, None, list[PolicyReport]]:
        """Create one report per policy, sorted by name, in slices. The machine may run between slices.

        Claims added between slices are not counted.
        """
        tallies: defaultdict[str, _Tally] = defaultdict(_Tally)
        claims = [evictee.claims for evictee in self._world.claims.evictees.values()]
        nodes = list(self._world.cluster.nodes)
        for first in range(0, len(claims), claims_at_once):
            self._count(chain.from_iterable(claims[first : first + claims_at_once]), tallies, now)
            yield
        yield from self._recount_staying()
        for first in range(0, len(nodes), claims_at_once):
            if first:
                yield
            self._count_nodes(nodes[first : first + claims_at_once], tallies)
        for departure in self._world.limiter.departures.leaving():
            for name in departure.policies:
                tallies[name].add_departure(departure, now)
        uses, bounces = self._world.verdicts.features, self._world.limiter.bounces
        bouncing = bounces.bouncing(now.monotonic) if uses.bounce else Counter[str]()
        return [
            self._report(policy, tallies[policy.name], bouncing[policy.name], now)
            for policy in self._world.verdicts.policies
        ]

    def _recount_staying(self) -> Generator[None, None, None]:
        """Count the pods that stay on the nodes that changed since the last report."""
        done = 0
        for state in [node for node in self._world.cluster.nodes.values() if node.staying is None]:
            if done >= STAYING_AT_ONCE:
                done = 0
                yield
            count_staying(self._world.verdicts, state)
            done += len(state.pods)

    def _count(self, claims: Iterable[Claim], tallies: Mapping[str, "_Tally"], now: Instant) -> None:
        for claim in claims:
            phase = claim.phase
            tally = tallies[claim.policy.name]
            pod = self._world.cluster.pod(claim.node, claim.uid)
            if pod is None or not self._views.has_to_leave(claim):
                continue
            is_released = self._world.is_released(claim.policy.name, claim.uid)
            tally.add(claim, pod, now, is_released=is_released)
            if phase in (Phase.WAITING, Phase.PAUSED):
                continue  # nothing refuses it yet
            refusal = self._views.current_refusal(claim)
            if refusal is not None and refusal.limit:
                since = claim.waits_since(refusal.limit, now.monotonic)
                if claim.ready_since is None:  # its wave is not complete
                    since = now.monotonic_at(min(claim.due_at, now.wall))
                tally.limits.setdefault(refusal.limit, _LimitTally(since)).add(since, refusal.until, refusal.detail)
            if phase is Phase.BLOCKED or claim.failed is not None:
                tally.budgets.update(self._views.budgets(claim, pod))

    def _report(self, policy: Policy, tally: "_Tally", bouncing: int, now: Instant) -> PolicyReport:
        name = policy.name
        zones = self._world.limiter.zones if policy.limits.zone_health is not None else None
        first = [claim for *_, claim in nsmallest(NEXT_PODS, tally.candidates)]
        soonest = (claim for claim in first if self._views.has_to_leave(claim))
        views = map(self._views.view, soonest)
        invalid = (InvalidTaint(node, taint, pods) for (node, taint), pods in tally.invalid.items())
        is_retained = policy.timing.on_invalid_value is OnInvalidValue.HOLD
        limits = tally.limits_at(now)
        worst = nlargest(MAX_ZONES, zones.table(name) if zones else (), key=lambda zone: ZONE_STATES[zone[1]])
        return PolicyReport(
            policy,
            ReportedStatus(
                selected_nodes=tally.selected,
                evicting_nodes=len(tally.nodes),
                pending=tally.pending,
                blocked=sum(pods for outcome, pods in tally.blocked_by.items() if Outcome(outcome).row.by_budget),
                evicted=self._world.evictions.evicted(policy),
                past_budgets=self._world.evictions.past_budgets(policy),
                leaving=tally.leaving,
                stuck=tally.longest_stuck(),
                retained=tally.invalid.total() if is_retained else 0,
                invalid_taints=tuple(
                    nsmallest(MAX_INVALID_TAINTS, invalid, key=lambda taint: (-taint.pods, taint.node, taint.taint))
                ),
                staying=tally.most_staying(),
                next_deadline=None if tally.next_deadline is None else at(tally.next_deadline),
                limited_by=limits[0].limit if limits else None,
                limits=limits,
                blocked_budgets=tally.most_blocking(),
                zones=tuple(ZoneStatus(*zone) for zone in sorted(worst)),
                next_pods=tuple(_next_pod(view, now) for view in views if view is not None),
            ),
            due=tally.due,
            released=tally.released,
            stuck_pods=len(tally.stuck),
            invalid_taints=len(tally.invalid),
            sources=tuple(
                SourceReport(selector.key, str(selector.source), tally.nodes_by_source[selector.source])
                for selector in policy.taints
                if selector.source is not None
            ),
            blocked_by=dict(tally.blocked_by),
            all_nodes_unhealthy=zones is not None and zones.all_unhealthy(name),
            bouncing=bouncing,
            guard=guard_report(self._world, name),
            places=self.places(name),
            blind=tuple(sorted(self._world.blind)),
            replacement_problem=self._world.limiter.replacements.why_not() if has_replace_first([policy]) else None,
            devices=self._devices() if policy.devices else None,
        )

    def places(self, policy: str) -> PlacesReport | None:
        """The places of a policy; None if it does not limit ``concurrentNodes``."""
        nodes = self._world.limiter.places.by_policy.get(policy)
        return None if nodes is None else PlacesReport(tuple(nodes.held.values()), len(nodes.waiting))

    def _devices(self) -> DevicesReport:
        world = self._world
        pods = sum(number for pod_class, number in world.cluster.classes.items() if pod_class.devices)
        blind = () if world.devices_problem else tuple(sorted(world.blind_to_devices))
        return DevicesReport(pods, world.devices_problem, blind)

    def _count_nodes(self, names: Sequence[str], tallies: Mapping[str, "_Tally"]) -> None:
        """Count selected nodes, nodes with values of sources, staying pods, and pods affected by invalid values."""
        for state in map(self._world.cluster.nodes.get, names):
            if state is not None and state.node is not None:
                for policy in self._world.verdicts.policies_on(state):
                    tally = tallies[policy.name]
                    tally.selected += 1
                    if state.node.values:
                        sources = (taint.source for taint in policy.taints if taint.source in state.node.values)
                        tally.nodes_by_source.update([*dict.fromkeys(sources)])
                for (name, reason), pods in count_staying(self._world.verdicts, state).items():
                    tallies[name].staying[reason] += pods
                if state.reported_invalid:
                    self._count_invalid(state, state.node.name, tallies)

    def _count_invalid(self, state: NodeState, node: str, tallies: Mapping[str, "_Tally"]) -> None:
        for verdict in self._world.verdicts.invalid_values(state).values():
            tallies[verdict.policy.name].invalid[node, str(verdict.taint)] = 0  # listed even without pods
        for pod in state.pods.values():
            for verdict in self._world.verdicts.of(state, pod.shared)[0]:
                if verdict.invalid:
                    tallies[verdict.policy.name].invalid[node, str(verdict.taint)] += 1


def _next_pod(claim: ClaimView, now: Instant) -> NextPod:
    state = PodState.WAITING if claim.due_at <= now.wall else PodState.SCHEDULED
    pod = claim.pod
    return NextPod(
        pod.namespace,
        pod.name,
        pod.node,
        str(claim.verdict.taint),
        at(claim.due_at),
        PodState.BLOCKED if claim.limit == BUDGET else state,
        limit=claim.limit,
        message=shortened(claim.detail, MAX_MESSAGE_CHARACTERS),
        attempts=claim.attempts if claim.limit and claim.failed is not None else 0,
        until=_end(claim.until, now),
    )


def _end(moment: MonotonicTime | None, now: Instant) -> str | None:
    """Time at which a wait ends; None if it is unknown or infinite, since a window may never open."""
    return None if moment is None or math.isinf(moment) else until(max(now.wall, now.wall_at(moment)))


class _LimitTally(msgspec.Struct):
    """Number of pods that one limit refuses, and the times at which this began and ends, if known."""

    since: MonotonicTime
    until: MonotonicTime | None = None
    count: int = 0
    detail: str = ""

    def add(self, since: MonotonicTime, until: MonotonicTime | None, detail: str) -> None:
        self.count += 1
        self.detail = self.detail or detail
        self.since = min(self.since, since)
        if until is not None:
            self.until = until if self.until is None else min(self.until, until)


class _Tally:
    """Counts of one policy."""

    def __init__(self) -> None:
        self.selected = self.pending = self.due = self.released = self.leaving = 0
        self.stuck: list[Departure] = []
        self.invalid: Counter[tuple[str, str]] = Counter()
        """Number of pods affected by an invalid value, by node and taint."""
        self.nodes_by_source: Counter[ValueSource | None] = Counter()
        """Number of selected nodes with a value, by its source."""
        self.staying: Counter[str] = Counter()
        """Number of pods by the reason why they stay on nodes with a taint."""
        self.nodes: set[str] = set()
        self.next_deadline: float | None = None
        self.blocked_by: Counter[str] = Counter()
        self.limits: dict[str, _LimitTally] = {}
        self.budgets: Counter[str] = Counter()
        self.candidates: list[tuple[tuple[float, ...], WallTime, str, Claim]] = []
        """Candidates for the next evictions, as rank, deadline, key and claim: the lowest are evicted first."""

    def add(self, claim: Claim, pod: Pod, now: Instant, *, is_released: bool) -> None:
        self.pending += 1
        is_due = claim.due_at <= now.wall
        self.due += is_due
        self.released += is_due and is_released
        self.nodes.add(claim.node)
        due_at = claim.due_at
        if self.next_deadline is None or due_at < self.next_deadline:
            self.next_deadline = due_at
        rank = rank_of(pod.shared, claim.policy, due_at, claim.grounds.hard_at)
        self.candidates.append((rank, due_at, claim.key, claim))
        if len(self.candidates) > CLAIMS_AT_ONCE:
            self.candidates = nsmallest(NEXT_PODS, self.candidates)
        if claim.failed is not None:
            self.blocked_by[claim.failed.value] += 1
        elif claim.phase is Phase.BLOCKED and claim.refusal is not None and claim.refusal.limit == BUDGET:
            self.blocked_by[Outcome.BLOCKED.value] += 1

    def add_departure(self, departure: Departure, now: Instant) -> None:
        self.leaving += 1
        if departure.is_stuck(now.wall):
            self.stuck.append(departure)

    def longest_stuck(self) -> tuple[StuckPod, ...]:
        """The pods that have been stuck for longest."""
        longest = nsmallest(MAX_STUCK, self.stuck, key=lambda departure: (departure.until, departure.pod.uid))
        pods = ((departure.pod, departure.until) for departure in longest)
        return tuple(StuckPod(pod.namespace, pod.name, pod.node, at(until)) for pod, until in pods)

    def most_staying(self) -> tuple[StayingPods, ...]:
        """The reasons for which the most pods stay."""
        counted = ((reason, pods) for reason, pods in self.staying.items() if reason)
        most = nsmallest(MAX_STAYING, counted, key=lambda one: (-one[1], one[0]))
        return tuple(StayingPods(*one) for one in most)

    def limits_at(self, now: Instant) -> tuple[LimitStatus, ...]:
        """Limits that refuse pods, the most pods first. Ties: failing calls first, then by name."""
        held = sorted(self.limits.items(), key=lambda one: (-one[1].count, one[0] != FAILING, one[0]))
        return tuple(
            LimitStatus(
                limit,
                pods.count,
                at(now.wall_at(pods.since)),
                _end(pods.until, now),
                shortened(pods.detail, MAX_MESSAGE_CHARACTERS),
            )
            for limit, pods in held
        )

    def most_blocking(self) -> tuple[BlockedBudget, ...]:
        """Budgets that block the most pods."""
        most = nsmallest(MAX_BLOCKED_BUDGETS, self.budgets.items(), key=lambda one: (-one[1], one[0]))
        return tuple(BlockedBudget(*name.partition("/")[::2], pods) for name, pods in most)
