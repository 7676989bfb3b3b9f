"""Simulates time for the operator's machine in an ideal cluster, and records what happens."""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from taintwarden.api.status import PolicyStatus
from taintwarden.controller.words import wording
from taintwarden.engine import commands, events, rfc3339
from taintwarden.engine.commands import Command
from taintwarden.engine.derived import derivations
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.limits.refusal import BOUNCE, FAILING
from taintwarden.engine.model import Gates, Instant, MonotonicTime, Node, Pod, PodClass, SourceValue, WallTime
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden_cli.rehearsal.changes import Change, apply_changes, enforce_policies
from taintwarden_cli.rehearsal.ideal import Assumptions, IdealBudgets, ReplacementScheduler
from taintwarden_cli.rehearsal.node_candidates import UnscheduledPods
from taintwarden_cli.rehearsal.plan import Plan, PlannedPod, Replacement
from taintwarden_cli.rehearsal.recording import Recording, is_replaced
from taintwarden_cli.rehearsal.rehearsal import NEWEST, Rehearsal, namespaced_name
from taintwarden_cli.rehearsal.returning import ReturnFinder
from taintwarden_cli.rehearsal.snapshot import Snapshot, status_of
from taintwarden_cli.rehearsal.sources import Source
from taintwarden_placement.admission.own_objects import INJECT

MONOTONIC = 1_000_000.0
"""The monotonic clock at the start. Times before the start are positive, too."""
SHORTEST_STEP_SECONDS = 0.001


class PlanSimulation:
    """The simulation for one plan.

    Args:
        now: the time of the snapshot, in seconds since the epoch.
        enforced: policies that are set to mode Enforce, whatever their own mode.
        monotonic: the monotonic clock at that time.
        limits: ``overall_rate`` and ``max_in_flight`` of the operator's machine.

    """

    def __init__(
        self,
        snapshot: Snapshot,
        now: float,
        assumptions: Assumptions,
        gates: Gates,
        enforced: Sequence[str] = (),
        monotonic: float = MONOTONIC,
        **limits: Any,
    ) -> None:
        snapshot = msgspec.structs.replace(snapshot, policies=enforce_policies(snapshot.policies, enforced))
        self.at = 0.0  # seconds since the change
        self._evicted = 0
        self._now = now
        self._monotonic = monotonic
        self._snapshot = snapshot
        self._enforced = enforced
        self._assumptions = assumptions
        self._gates = gates
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._left_because_of_device = False
        self._ended_with_node: set[str] = set()
        """The UIDs of pods that ended with their node."""
        self._without_devices: dict[PodClass, PodClass] = {}
        self._rehearsal = Rehearsal(snapshot, gates, lambda: self.instant, self._carry_out, **limits)
        self._view = self._rehearsal.view
        self._recording = Recording(self._view)
        self._budgets = IdealBudgets(snapshot.budgets)
        self._rehearsal.feed_snapshot()
        self._rehearsal.become_leader()
        self._rehearsal.run_until_idle()
        self._recording.begin(self.instant)

    @property
    def instant(self) -> Instant:
        """Both clocks now, in whole microseconds: sums of floating point must not decide a tie."""
        return Instant(WallTime(round(self._now + self.at, 6)), MonotonicTime(round(self._monotonic + self.at, 6)))

    def run(self, changes: Sequence[Change], horizon: float) -> Plan:
        """Make the changes, and simulate until no event is left or ``horizon`` seconds have passed.
        Raises BadInput if a node, or a taint to remove, does not exist.
        """
        changed = apply_changes(changes, self._snapshot.nodes)
        for node in changed:
            self._rehearsal.feed(events.NodeSeen(self._changed_node(node, changes)))
        self._rehearsal.run_until_idle()
        unscheduled_pods = UnscheduledPods(self._rehearsal, self._gates)
        self._scheduler = ReplacementScheduler(self._view, unscheduled_pods, self._return_finder(), self._snapshot.pods)
        paused = list(self._paused_notes())
        ineffective = list(self._ineffective_notes(changes, changed))
        while (moment := self._next_event_at()) is not None and moment <= horizon:
            self.at = max(self.at, moment)
            while self._queue and self._queue[0][0] <= self.at:
                heapq.heappop(self._queue)[2]()
            self._rehearsal.run_until_idle()
        ended = self.at if moment is None else horizon
        self.at = ended
        recorded = self._recording.finish(self.instant, self._scheduler)
        unread = self._snapshot.problems.get(Source.OPERATOR, "")
        no_extender = [f"without the scheduler extender, which may run: {unread}"] if unread else []
        return Plan(
            at=rfc3339.at(self._now),
            changes=[*(f"policy {name} in mode Enforce" for name in self._enforced), *map(str, changes)],
            changed_nodes=len(changed),
            horizon_seconds=horizon,
            ended_after_seconds=round(ended, 3),
            assumptions=self._assumptions,
            notes=[
                *paused,
                *self._notes(),
                *ineffective,
                *no_extender * any(pod.returns_to for pod in recorded["pods"]),
            ],
            **recorded,
        )

    def _changed_node(self, node: NodeObject, changes: Sequence[Change]) -> Node:
        """The node after the changes. A change of a taint that a policy derives changes the value at its source."""
        found, named = self._rehearsal.decoder.node(node), {taint.key for change in changes for taint in change.taints}
        derived = {key: derivation for key, derivation in derivations(self._view.policies).items() if key in named}
        given = {derived[one.key].source: SourceValue(one.value) for one, _ in found.taints if one.key in derived}
        written = tuple([taint for taint in found.taints if taint[0].key not in derived])
        return msgspec.structs.replace(found, taints=written, values=found.values | given)

    def _return_finder(self) -> ReturnFinder:
        spaces = self._snapshot.namespaces
        injected = {namespace.metadata.name for namespace in spaces if namespace.metadata.labels.get(INJECT) == "true"}
        return ReturnFinder(self._view, self._gates, injected, has_extender=self._snapshot.has_extender)

    def _ineffective_notes(self, changes: Sequence[Change], changed: Sequence[NodeObject]) -> Iterator[str]:
        """The changed taints on which no policy acts."""
        names = [one.metadata.name for one in changed]
        selecting = [node.policies for name in names if (node := self._view.node(name)) is not None]
        for taint in dict.fromkeys(taint for change in changes for taint in change.taints):
            if not any(policy.selector_for(taint) for policies in selecting for policy in policies):
                yield f"no policy acts on {taint} on these nodes: it is left to Kubernetes"

    def _paused_notes(self) -> Iterator[str]:
        """Notes on what the paused policies would do after the change."""
        soon = self.instant.wall + 1.0  # deadlines are reported in whole seconds
        counts = Counter((claim.policy.name, claim.due_at < soon) for claim in self._view.all_claims())
        for policy in self._view.policies:
            if policy.mode is Mode.PAUSED:
                would_be = wording.would_be_due(counts[policy.name, True], counts[policy.name, False])
                yield f"policy {policy.name} is {would_be}: --enforce {policy.name} plans with it"

    def _notes(self) -> Iterator[str]:
        """Reasons why this plan is uncertain."""
        yield from self._rehearsal.notes()
        if self._rehearsal.slices is not None and self._snapshot.devices_problem:
            yield wording.devices_unknown(self._snapshot.devices_problem)
        if problem := self._snapshot.problems.get(Source.DEPLOYMENTS):
            yield wording.not_replaced(problem)
        if self._left_because_of_device:
            yield "a pod that leaves because of a device is assumed to get another device, on any node that accepts it"
        reported = {namespaced_name(policy)[1]: status_of(policy) for policy in self._snapshot.policies}
        yield from filter(None, dict.fromkeys(one.message_if("Progressing", "Blind") for one in reported.values()))
        for name, status in reported.items():
            yield from _notes_on_memory(name, status)

    # -- time -------------------------------------------------------------------------------------------------------

    def _next_event_at(self) -> float | None:
        """The time of the next event; None if there is none."""
        delay = self._rehearsal.wake_after(self.instant)
        times = [self._queue[0][0]] if self._queue else []
        times += [] if delay is None else [self.at + max(delay, SHORTEST_STEP_SECONDS)]
        return min(times, default=None)

    def _schedule(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.at + seconds, next(self._order), action))

    # -- commands of the machine --------------------------------------------------------------------------------------

    def _carry_out(self, command: Command) -> None:
        call = self._assumptions.call_seconds
        match command:
            case commands.Evict():
                self._schedule(call, lambda: self._evict(command))
            case commands.CheckNode():
                seen = self._view.node(command.name)
                version = seen.node.resource_version if seen else None
                self._schedule(call, lambda: self._rehearsal.feed(events.NodeChecked(command.name, version, NEWEST)))
            case commands.SaveHistory() | commands.SaveGuard() | commands.SavePlaces() | commands.ClearGuardReset():
                self._schedule(call, lambda: self._rehearsal.feed(events.Written(command, WriteOutcome.DONE)))
            case _:
                self._recording.record(command, self.instant, self.at)
                if isinstance(command, commands.DeadlineMissed) and command.reason == wording.NOT_EVICTED:
                    self._schedule(0.0, lambda: self._remove_with_node(command.pod))

    def _evict(self, command: commands.Evict) -> None:
        pod = command.pod
        if pod.uid in self._ended_with_node:
            self._rehearsal.feed(events.Settled(pod.uid, Outcome.GONE))
            return
        if command.deployment is not None:
            self._request_replacement(command)
            return
        if not command.delete:
            outcome, why = self._budgets.answer_eviction(pod)
            if outcome is not Outcome.ACCEPTED:
                self._rehearsal.feed(events.Settled(pod.uid, outcome, why))
                return
        self._accept_eviction(command)
        self._rehearsal.feed(events.Settled(pod.uid, Outcome.ACCEPTED))

    def _request_replacement(self, command: commands.Evict) -> None:
        """Let a Deployment start a replacement, and remove the pod when that is Ready, if it fits a node in time."""
        self._rehearsal.feed(events.Settled(command.pod.uid, Outcome.ASKED))
        needed, given = self._assumptions.replacement_seconds, command.verdict.policy.replacement_seconds
        if needed < given and self._scheduler.fitting_nodes(command.pod):
            self._schedule(needed, lambda: self._accept_eviction(command, ready_in=0.0))

    def _accept_eviction(self, command: commands.Evict, ready_in: float | None = None) -> None:
        """Let the pod stop, and its controller make a replacement, which is Ready after ``ready_in`` seconds."""
        pod = command.pod
        if pod.uid in self._ended_with_node:
            return
        self._evicted += 1
        planned = self._recording.record_eviction(command, self.instant, self.at, self._evicted)
        self._left_because_of_device |= command.verdict.taint.origin is not None
        given = command.grace_period_seconds
        grace = pod.shared.grace_seconds if given is None else given
        stop = min(self._assumptions.stop_seconds, grace)
        self._rehearsal.feed(events.PodGone(pod.uid, pod.node, self.instant.wall + grace if stop else None))
        if stop:
            self._schedule(stop, lambda: self._rehearsal.feed(events.PodGone(pod.uid, pod.node)))
        self._count_departure(pod, planned, ready_in)

    def _remove_with_node(self, pod: Pod) -> None:
        """End a pod with its node, unless it has left before."""
        planned = self._recording.pod_that_ends(pod)
        if planned is None:
            return
        self._ended_with_node.add(pod.uid)
        self._rehearsal.feed(events.PodGone(pod.uid, pod.node))
        self._count_departure(pod, planned)

    def _count_departure(self, pod: Pod, planned: PlannedPod, ready_in: float | None = None) -> None:
        """Update the budgets of a pod that has left, and let its controller make a replacement."""
        for budget in self._budgets.add_ready(pod.shared, -1 if pod.ready else 0):
            self._rehearsal.feed(events.BudgetSeen(budget))
        self._scheduler.count_departure(pod.node)
        if is_replaced(pod.shared):
            node = self._scheduler.assign_node(pod)
            planned.replacement = Replacement.NOWHERE if node is None else Replacement.PLACED
            planned.replaced_on, planned.returns_to = node, self._scheduler.returns_to(pod)
            if node is not None:
                seconds = self._assumptions.replacement_seconds if ready_in is None else ready_in
                self._create_replacement(pod, node, seconds)

    def _create_replacement(self, pod: Pod, node: str, ready_in: float) -> None:
        shared = pod.shared
        if shared.devices:
            without = msgspec.structs.replace(shared, devices=())
            shared = self._without_devices.setdefault(shared, without)
        names = {"uid": f"{pod.uid}-replaced", "name": f"{pod.name}-replaced", "node": node}
        state = {"bound_at": self.instant.wall, "resource_version": 0, "ready": False}
        new = msgspec.structs.replace(pod, shared=shared, **names, **state)
        self._rehearsal.feed(events.PodSeen(new))
        self._schedule(ready_in, lambda: self._make_ready(new))

    def _make_ready(self, pod: Pod) -> None:
        self._rehearsal.feed(events.PodSeen(msgspec.structs.replace(pod, ready=True)))
        for budget in self._budgets.add_ready(pod.shared, 1):
            self._rehearsal.feed(events.BudgetSeen(budget))


def _notes_on_memory(name: str, status: PolicyStatus) -> Iterator[str]:
    """State that the operator keeps in memory, as the status of a policy shows, and that a plan ignores."""
    for limit in status.limits:
        if limit.limit == FAILING:
            yield f"calls for evictions of policy {name} fail now; here they succeed"
        elif limit.limit == BOUNCE:
            until = f" until {limit.until}" if limit.until else ""
            yield f"limit bounce of policy {name} delays {wording.pods(limit.pods)}{until}; here it does not"
    if released := status.message_if("GuardTripped", "False").partition("not gone yet: ")[2]:
        yield f"the guard of policy {name} counts here the {released}"
