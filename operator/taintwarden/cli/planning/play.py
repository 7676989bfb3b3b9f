"""Lets time pass for the operator's machine in an idealised cluster, and notes what happens."""

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from taintwarden.cli.conditions import is_kept_from_enforcing
from taintwarden.cli.planning.answer import Fate, Plan, PlannedGuard, PlannedPod, Replacement
from taintwarden.cli.planning.changes import Change, apply
from taintwarden.cli.planning.snapshot import WORKLOADS, Snapshot
from taintwarden.cli.planning.world import Allowances, Assumptions, Places
from taintwarden.controller import guard_record, wording
from taintwarden.controller.cache import PodIssue, Translator
from taintwarden.controller.keyed_sinks import BudgetSink, NamespaceSink, WorkloadSink
from taintwarden.controller.policies import PolicyBook
from taintwarden.controller.profiles import ProfileBook
from taintwarden.controller.sinks import NodeSink, PodSink, Sink
from taintwarden.engine.machine import Machine, commands, events
from taintwarden.engine.machine.events import Event, Outcome
from taintwarden.engine.machine.pending import Pending, Phase
from taintwarden.engine.machine.report import blocking_budgets, holding_limit
from taintwarden.engine.model import Gates, GuardAction, Instant, Mode, Pod, PodClass, Policy
from taintwarden.kube.streams import BUDGETS, NAMESPACES, NODES, PODS
from taintwarden.telemetry.metrics import Metrics

MONOTONIC = 1_000_000.0
"""The monotonic clock at the moment of the change."""
LEADING_FOR_SECONDS = 100_000.0
"""The operator has led for long, so that its rates have their whole burst."""
NEWEST = 2**64
"""Everything was read at one moment: no pod is newer than what is known of its node."""
SHORTEST_STEP_SECONDS = 0.001
MOST_TURNS = 100_000

Progress = Callable[[float, int], None]
"""Told how many seconds have passed and how many pods have left."""


class Play:
    """One plan in the making.

    Args:
        snapshot: what the cluster has.
        now: when it was read, in seconds since the epoch.
        assumptions: how long things take.
        gates: which operators may match at all.
        limits: ``overall_rate`` and ``max_in_flight`` of the operator's machine.

    """

    def __init__(self, snapshot: Snapshot, now: float, assumptions: Assumptions, gates: Gates, **limits: Any) -> None:
        self.at = 0.0
        self.machine = Machine(gates=gates, **limits)
        self.gone = 0
        self._now = now
        self._snapshot = snapshot
        self._assumptions = assumptions
        self._gates = gates
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._pods: dict[str, PlannedPod] = {}
        self._guards: dict[str, PlannedGuard] = {}
        self._past_guards: list[PlannedGuard] = []
        self._notes: list[str] = []
        self._already: dict[str, str] = {}
        self._translator = Translator(lambda: self.instant, self._note_issue)
        self._allowances = Allowances(snapshot.budgets)
        self._learn()
        self._wake()
        for name, guard in self.machine.limiter.guards.items():
            if guard.open_since is not None and guard.cause:
                self._note_guard(name, guard.cause, guard.expected(), guard.open_since - now)
        self._already = {uid: str(pending.pod) for uid, pending in self.machine.pending.items()}

    @property
    def instant(self) -> Instant:
        """Both clocks now."""
        return Instant(self._now + self.at, MONOTONIC + self.at)

    def run(self, changes: Sequence[Change], horizon: float, progress: Progress = lambda at, gone: None) -> Plan:
        """Make the changes, and play until nothing is left to happen or ``horizon`` seconds have passed.

        Raises:
            BadInput: a change is about nodes that are not there.

        """
        changed = apply(changes, self._snapshot.nodes)
        for node in changed:
            self._feed(events.NodeSeen(self._translator.node(node)))
        self._wake()
        self._places = Places(self.machine, self._gates, self.instant.wall)
        while (moment := self._next(horizon)) is not None and moment <= horizon:
            self.at = max(self.at, moment)
            while self._queue and self._queue[0][0] <= self.at:
                heapq.heappop(self._queue)[2]()
            self._wake()
            progress(self.at, self.gone)
        ended = self.at if moment is None else horizon
        self.at = ended
        return self._told(changes, len(changed), horizon, ended)

    # -- what the machine is told at the beginning ----------------------------------------------------------------

    def _learn(self) -> None:
        """All that the operator would know, in the order in which it would hear of it."""
        snapshot, metrics = self._snapshot, Metrics()
        PolicyBook(self._policies_changed, self._note_policy).load(snapshot.policies)
        if any(map(is_kept_from_enforcing, snapshot.policies)):
            self._notes.append("the operator runs with --dry-run: this is what would follow without it")
        self._restore_guards()
        ProfileBook(self._feed, self._note_profile).load(snapshot.profiles)
        self._list(NodeSink(NODES.name, self._feed, metrics, self._translator), snapshot.nodes)
        self._list(NamespaceSink(NAMESPACES.name, self._feed, metrics), snapshot.namespaces)
        for resource in WORKLOADS:
            objects = snapshot.workloads.get(resource.name, ())
            self._list(WorkloadSink(resource.name, self._feed, metrics), objects)
        self._list(BudgetSink(BUDGETS.name, self._feed, metrics), snapshot.budgets)
        self._list(PodSink(PODS.name, self._feed, metrics, self._translator), snapshot.pods)
        self._feed(events.NodesReached(NEWEST))
        self._feed(events.Synced())
        wall, monotonic = self.instant
        self.machine.step(events.LeadershipChanged(leading=True), Instant(wall, monotonic - LEADING_FOR_SECONDS))

    def _list(self, sink: Sink[Any], objects: Sequence[Any]) -> None:
        sink.list_began()
        sink.listed(objects)
        sink.list_ended("")

    def _policies_changed(self, policies: tuple[Policy, ...]) -> None:
        self._feed(events.PoliciesChanged(policies))

    def _restore_guards(self) -> None:
        for stored in self._snapshot.policies:
            guard, name = (stored.get("status") or {}).get("guard"), stored["metadata"]["name"]
            if guard is None:
                continue
            try:
                record = guard_record.read(guard)
            except ValueError as error:
                self._notes.append(f"status.guard of policy {name} cannot be read and counts as absent: {error}")
                continue
            self._feed(events.GuardRestored(name, record))

    def _note_policy(self, name: str, _: str, reason: str) -> None:
        self._notes.append(f"policy {name} is not valid as stored and does nothing here: {' '.join(reason.split())}")

    def _note_profile(self, name: str, _: str, reason: str) -> None:
        self._notes.append(f"profile {name} is not valid as stored and adds nothing here: {' '.join(reason.split())}")

    def _note_issue(self, issue: PodIssue) -> None:
        self._notes.append(f"entries of the annotation of pod {issue.namespace}/{issue.name} count as absent")

    # -- time -------------------------------------------------------------------------------------------------------

    def _next(self, end: float) -> float | None:
        """When something happens next; None: nothing is left to happen before ``end``."""
        if not self._queue and self._is_stuck(end):
            return None
        delay = self.machine.wake_after(self.instant)
        times = [self._queue[0][0]] if self._queue else []
        times += [] if delay is None else [self.at + max(delay, SHORTEST_STEP_SECONDS)]
        return min(times, default=None)

    def _is_stuck(self, end: float) -> bool:
        """Whether open guards hold, for good, all that falls due by ``end``: each look of theirs sees the same."""
        guards = self.machine.limiter.guards
        shut = {name for name in self._guards if guards[name].halts and guards[name].expected() > guards[name].limit()}
        if not shut:
            return False
        return all(
            one.phase is Phase.REHEARSED
            or one.due_at > self._now + end
            or (one.policy.name in shut and one.phase in (Phase.READY, Phase.HELD))
            for one in self.machine.pending.values()
        )

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.at + seconds, next(self._order), action))

    def _wake(self) -> None:
        for _ in range(MOST_TURNS):
            if self.machine.wake_after(self.instant) != 0.0:
                return
            self._feed(events.Woke())
        msg = "the machine never comes to rest"
        raise RuntimeError(msg)

    def _feed(self, event: Event) -> None:
        for command in self.machine.step(event, self.instant):
            self._carry_out(command)

    # -- what the machine asks for ------------------------------------------------------------------------------------

    def _carry_out(self, command: commands.Command) -> None:
        call = self._assumptions.call_seconds
        match command:
            case commands.Evict():
                self._later(call, lambda: self._evict(command))
            case commands.CheckNode():
                state = self.machine.nodes.get(command.name)
                node = state.node if state else None
                self._later(call, lambda: self._feed(events.NodeChecked(command.name, node, NEWEST)))
            case commands.SaveHistory():
                self._later(call, lambda: self._feed(events.HistorySaved(command.node, succeeded=True)))
            case commands.MirrorTaints():
                self._later(call, lambda: self._feed(events.TaintsMirrored(command.node, succeeded=True)))
            case commands.SaveGuard():
                self._later(call, lambda: self._feed(events.GuardSaved(command.policy.name, succeeded=True)))
            case commands.Decided():
                told = self._told_of(command.pod, command.verdict.policy, str(command.verdict.taint), command.due_at)
                told.waited_seconds, told.limit = round(command.waited, 3), command.limit
            case commands.Rehearsed():
                told = self._told_of(command.pod, command.verdict.policy, str(command.verdict.taint), command.due_at)
                told.fate, told.after_seconds = Fate.WOULD_LEAVE, round(self.at, 3)
                told.at = wording.at(self.instant.wall)
            case commands.DeadlineAtRisk() | commands.DeadlineMissed():
                due_at = command.verdict.due_at(command.pod.bound_at) or command.hard_at
                told = self._told_of(command.pod, command.verdict.policy, str(command.verdict.taint), due_at)
                told.late = command.reason
            case commands.GuardOpened():
                self._note_guard(command.policy.name, command.cause, command.pods, self.at, command.population)
            case commands.GuardClosed():
                closed = self._guards.pop(command.policy.name, None)
                if closed is not None:
                    closed.closed_after_seconds = round(self.at, 3)
                    self._past_guards.append(closed)
            case _:
                pass

    def _note_guard(self, name: str, cause: str, pods: int, opened: float, population: int | None = None) -> None:
        guard = self.machine.limiter.guards[name]
        self._guards[name] = PlannedGuard(
            policy=name,
            pods=pods,
            limit=guard.limit(),
            population=population,
            cause=cause,
            halts=guard.settings.action is GuardAction.HALT,
            opened_after_seconds=round(opened, 3),
        )

    def _evict(self, command: commands.Evict) -> None:
        pod = command.pod
        if not command.delete:
            outcome, why = self._allowances.judge(pod)
            if outcome is not Outcome.EVICTED:
                self._feed(events.Settled(pod.uid, outcome, why))
                return
        self._leave(command)
        self._feed(events.Settled(pod.uid, Outcome.EVICTED))

    def _leave(self, command: commands.Evict) -> None:
        """The API server accepts it: the pod stops, and its controller makes another."""
        pod = command.pod
        self.gone += 1
        told = self._told_of(pod, command.verdict.policy, str(command.verdict.taint), self.instant.wall)
        told.fate, told.order, told.deleted = Fate.LEAVES, self.gone, command.delete
        told.at, told.after_seconds = wording.at(self.instant.wall), round(self.at, 3)
        given = command.grace_period_seconds
        grace = pod.shared.grace_seconds if given is None else given
        stop = min(self._assumptions.stop_seconds, grace)
        self._feed(events.PodGone(pod.uid, pod.node, self.instant.wall + grace if stop else None))
        if stop:
            self._later(stop, lambda: self._feed(events.PodGone(pod.uid, pod.node)))
        for budget in self._allowances.left(pod):
            self._feed(events.BudgetSeen(budget))
        self._places.leave(pod.node)
        if _is_replaced(pod.shared):
            self._replace(pod, told)

    def _replace(self, pod: Pod, told: PlannedPod) -> None:
        node = self._places.take(pod.shared)
        told.replacement = Replacement.NOWHERE if node is None else Replacement.PLACED
        told.replaced_on = node
        if node is None:
            return
        new = msgspec.structs.replace(
            pod,
            uid=f"{pod.uid}-replaced",
            name=f"{pod.name}-replaced",
            node=node,
            bound_at=self.instant.wall,
            resource_version=0,
            ready=False,
        )
        self._feed(events.PodSeen(new))
        self._later(self._assumptions.replacement_seconds, lambda: self._ready(new))

    def _ready(self, pod: Pod) -> None:
        self._feed(events.PodSeen(msgspec.structs.replace(pod, ready=True)))
        for budget in self._allowances.replaced(pod):
            self._feed(events.BudgetSeen(budget))

    # -- what is told -------------------------------------------------------------------------------------------

    def _told_of(self, pod: Pod, policy: Policy, taint: str, due_at: float) -> PlannedPod:
        told = self._pods.get(pod.uid)
        if told is None:
            told = self._pods[pod.uid] = PlannedPod(
                namespace=pod.namespace,
                name=pod.name,
                node=pod.node,
                policy=policy.name,
                taint=taint,
                fate=Fate.LEAVES,
                deadline=wording.at(due_at),
                already=pod.uid in self._already,
            )
        return told

    def _told(self, changes: Sequence[Change], changed: int, horizon: float, ended: float) -> Plan:
        for pending in list(self.machine.pending.values()):
            if pending.phase is not Phase.LEAVING:
                self._tell_left(pending)
        pods = sorted(self._pods.values(), key=_rank)
        fates = [one.fate for one in pods]
        return Plan(
            at=wording.at(self._now),
            changes=[str(one) for one in changes],
            changed_nodes=changed,
            horizon_seconds=horizon,
            ended_after_seconds=round(ended, 3),
            assumptions=self._assumptions,
            leaving=fates.count(Fate.LEAVES),
            held=fates.count(Fate.HELD),
            later=fates.count(Fate.LATER),
            would_leave=fates.count(Fate.WOULD_LEAVE),
            nowhere=sum(one.replacement is Replacement.NOWHERE for one in pods),
            pods=pods,
            spared=sorted(name for uid, name in self._already.items() if uid not in self._pods),
            guards=[*self._past_guards, *self._guards.values()],
            notes=self._notes,
        )

    def _tell_left(self, pending: Pending) -> None:
        """Somebody who has not left: why, and where the replacement would go."""
        pod = pending.pod
        told = self._told_of(pod, pending.policy, str(pending.verdict.taint), pending.due_at)
        told.deadline = wording.at(pending.due_at)
        if told.fate is not Fate.WOULD_LEAVE:
            enforced = pending.policy.mode is Mode.ENFORCE
            told.fate = Fate.HELD if pending.due_at <= self.instant.wall else Fate.LATER
            if not enforced and told.fate is Fate.LATER:
                told.fate = Fate.WOULD_LEAVE
        if told.fate is Fate.HELD:
            held = holding_limit(self.machine, pending)
            told.limit = held[0] if held else pending.outcome or ""
            told.reason = pending.refusal.detail if pending.refusal else pending.message
            told.reason = told.reason or wording.HOLDS.get(told.limit, "")
            told.budgets = blocking_budgets(self.machine, pending)
        if _is_replaced(pod.shared) and not self._places.fitting(pod.shared):
            told.replacement = Replacement.NOWHERE


def _is_replaced(pod_class: PodClass) -> bool:
    """Whether another pod takes its place elsewhere: a DaemonSet has no other node, and some pods have no owner."""
    return pod_class.owner is not None and not pod_class.daemon_set


def _rank(told: PlannedPod) -> tuple[bool, int, str, str]:
    return (told.order is None, told.order or 0, told.deadline, str(told))
