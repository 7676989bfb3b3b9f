"""The one place that decides. ``step(event, now)`` changes the state and returns commands; nothing else does.

Outside events only change what is known and when pods are due. Acting happens on :class:`~.events.Woke`, at the
machine's own pace, in slices, so that a wave never stalls the loop:

=========== =========================================== ==========================================
phase       enters when                                 leaves when
=========== =========================================== ==========================================
WAITING     a verdict gives a deadline; after a failure deadline and ``retry_at`` have passed
READY       due                                         limits admit it and a slot is free
PARKED      the pod is newer than the node stream       a fresh read of the node was answered
IN_FLIGHT   ``Evict`` was issued                        ``Settled``
LEAVING     the call was accepted                       the pod is gone (asked again after a minute)
REHEARSED   due under a DryRun policy                   the verdict changes
=========== =========================================== ==========================================

A new verdict replaces the old one in every phase: later, earlier, or none at all.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.engine.evaluate import Evaluator, TaintVerdict, earliest
from taintwarden.engine.limits import Limiter
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.events import Event, Instant, Outcome
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.pending import Pending, Phase, retry_delay
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import Gates, Method, Mode, Node, OnInvalidValue, Pod, PodClass, Policy

ANNOUNCED_AHEAD_SECONDS = 1.0
"""An eviction that is due sooner is not announced: the next thing anybody hears is that it was carried out."""
NOT_LEADING_SECONDS = 1.0
"""Pause after a call that was not made because the lease had run out, until that is told here, too."""
LEAVING_TIMEOUT_SECONDS = 60.0
"""How long an accepted eviction may go unseen in the watch before it is asked for again."""


class Machine:
    """Events in, commands out.

    Args:
        gates: which operators may match at all.
        overall_rate: evictions per second over all policies, None for no cap.
        max_in_flight: how many eviction calls may be under way at once.
        slice_size: how many pods one step may look at before it lets others have a turn.

    """

    def __init__(
        self,
        *,
        gates: Gates | None = None,
        overall_rate: float | None = None,
        max_in_flight: int = 64,
        slice_size: int = 2_000,
    ) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.pending: dict[str, Pending] = {}
        self.limiter = Limiter(overall_rate)
        self.evicted: Counter[str] = Counter()
        self.synced = False
        self.leading = False
        self.in_flight = 0
        self._max_in_flight = max_in_flight
        self._slice_size = slice_size
        self._verdicts = Verdicts(gates or Gates())
        self._queues = Queues()
        self._refused_until: dict[str, float] = {}
        """Policy -> when a limit may admit its first pod, on the monotonic clock."""
        self._dirty: dict[str, None] = {}
        """Nodes to be looked at again, in order."""
        self._unsaved: dict[str, None] = {}
        """Nodes whose history is not urgent: nobody on them has a deadline ahead that a restart could move."""
        self._blind: dict[str, None] = {}
        """Streams that are cut off: nobody is evicted on what may be long past."""
        self._reached = -1
        self._out: list[commands.Command] = []
        self._now = Instant(0.0, 0.0)
        self._handlers: dict[type, Callable[[Any], None]] = {
            events.NodeSeen: lambda event: self._see_node(event.node),
            events.NodeGone: lambda event: self._lose_node(event.name),
            events.NodesListed: self._nodes_listed,
            events.NodesReached: self._nodes_reached,
            events.NodeChecked: self._node_checked,
            events.CheckFailed: self._check_failed,
            events.ViewChanged: self._view_changed,
            events.PodSeen: lambda event: self._see_pod(event.pod),
            events.PodGone: lambda event: self._lose_pod(event.uid, event.node),
            events.PodsListed: self._pods_listed,
            events.NamespaceSeen: self._namespace_seen,
            events.NamespaceGone: self._namespace_gone,
            events.PoliciesChanged: self._policies_changed,
            events.Synced: self._has_synced,
            events.LeadershipChanged: self._leadership_changed,
            events.Settled: self._settled,
            events.HistorySaved: self._history_saved,
            events.Woke: lambda _: self._act(),
        }

    def step(self, event: Event, now: Instant) -> list[commands.Command]:
        """Take one event at ``now``; the commands are to be carried out in order."""
        self._now = now
        self._out = []
        self._handlers[type(event)](event)
        return self._out

    def wake_after(self, now: Instant) -> float | None:
        """Seconds until :class:`~.events.Woke` is wanted; 0 is at once, None is not before another event."""
        if not self.synced:
            return None
        if self._dirty or (self._unsaved and self.leading and not self.is_busy):
            return 0.0
        delays = []
        if (due := self._queues.next_at()) is not None:
            delays.append(due - now.wall)
        if self.may_evict and self.in_flight < self._max_in_flight:
            until = [self._refused_until.get(policy, now.monotonic) for policy in self._queues.ready_policies()]
            delays += [moment - now.monotonic for moment in until]
        return max(0.0, min(delays)) if delays else None

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies in force, by name."""
        return self._verdicts.policies

    @property
    def evaluator(self) -> Evaluator:
        """What computes judgements, with its counts."""
        return self._verdicts.evaluator

    def verdicts_for(self, state: NodeState, pod_class: PodClass) -> tuple[TaintVerdict, ...]:
        """The verdicts on pods of a class on a node."""
        return self._verdicts.of(state, pod_class)

    @property
    def is_blind(self) -> bool:
        """Whether some stream is cut off from the API server."""
        return bool(self._blind)

    @property
    def may_evict(self) -> bool:
        """Whether we lead, and see what happens."""
        return self.leading and not self._blind

    @property
    def is_busy(self) -> bool:
        """Whether calls under way fill half the slots: whatever is not urgent waits for the wave to pass."""
        return self.in_flight * 2 >= self._max_in_flight

    # -- what is known ------------------------------------------------------------------------------------------

    def _state(self, name: str) -> NodeState:
        state = self.nodes.get(name)
        if state is None:
            state = self.nodes[name] = NodeState(name)
        return state

    def _see_node(self, node: Node) -> None:
        state = self._state(node.name)
        if state.node is not None and node.resource_version < state.node.resource_version:
            return  # a fresh read was ahead of the stream
        if state.node is not None and state.node.uid != node.uid:
            state = self._replace_node(state)
        problem = state.update(node, self._now.wall)
        if problem:
            self._notice(commands.UnreadableHistory(node.name, node.uid, problem))
        if self.synced:
            self._evaluate_node(state)

    def _replace_node(self, old: NodeState) -> NodeState:
        """Another node of the same name: what was known of the old one does not count."""
        new = self.nodes[old.name] = NodeState(old.name)
        new.pods = old.pods
        new.parked = old.parked
        new.check_wanted = old.check_wanted
        return new

    def _lose_node(self, name: str) -> None:
        state = self.nodes.get(name)
        if state is None:
            return
        for uid in state.pods:
            self._cancel(uid)
        if state.pods:
            self.nodes[name] = replacement = NodeState(name)
            replacement.pods = state.pods
        else:
            del self.nodes[name]

    def _nodes_listed(self, event: events.NodesListed) -> None:
        for name in [name for name, state in self.nodes.items() if state.node and name not in event.names]:
            self._lose_node(name)

    def _nodes_reached(self, event: events.NodesReached) -> None:
        self._reached = max(self._reached, event.resource_version)

    def _view_changed(self, event: events.ViewChanged) -> None:
        if event.live:
            self._blind.pop(event.stream, None)
        else:
            self._blind[event.stream] = None

    def _see_pod(self, pod: Pod) -> None:
        state = self._state(pod.node)
        known = state.pods.get(pod.uid)
        if known is not None and known.bound_at < pod.bound_at:
            # The object tells its binding to the second; what was seen of it first may be more exact.
            pod = msgspec.structs.replace(pod, bound_at=known.bound_at)
        state.pods[pod.uid] = pod
        if self.synced and pod.node not in self._dirty:
            self._evaluate_pod(state, pod)

    def _lose_pod(self, uid: str, node: str) -> None:
        state = self.nodes.get(node)
        if state is not None:
            state.pods.pop(uid, None)
            if not state.pods and state.node is None:
                del self.nodes[node]
        pending = self.pending.get(uid)
        if pending is None:
            return
        if pending.phase is Phase.IN_FLIGHT:
            pending.unwanted = True
            return
        self._drop(pending)

    def _pods_listed(self, event: events.PodsListed) -> None:
        for state in list(self.nodes.values()):
            for uid in [uid for uid in state.pods if uid not in event.uids]:
                self._lose_pod(uid, state.name)

    def _namespace_seen(self, event: events.NamespaceSeen) -> None:
        if self._verdicts.set_namespace(event.name, event.labels):
            self._look_again()

    def _namespace_gone(self, event: events.NamespaceGone) -> None:
        if self._verdicts.set_namespace(event.name, None):
            self._look_again()

    def _policies_changed(self, event: events.PoliciesChanged) -> None:
        self._verdicts.set_policies(event.policies)
        self.limiter.configure(self.policies, self._now.monotonic)
        self._refused_until = {}
        for state in self.nodes.values():
            state.policies = None
        self._look_again()

    def _has_synced(self, _: events.Synced) -> None:
        self.synced = True
        self._look_again()

    def _leadership_changed(self, event: events.LeadershipChanged) -> None:
        gained = event.leading and not self.leading
        self.leading = event.leading
        if gained:
            for state in self.nodes.values():
                state.reported_invalid = {}
                state.degraded = False
            for pending in self.pending.values():
                pending.announced = False
            self._look_again()

    def _look_again(self) -> None:
        """Verdicts may have changed everywhere: look at every node again, in slices."""
        if self.synced:
            self._dirty.update(dict.fromkeys(self.nodes))

    # -- verdicts -----------------------------------------------------------------------------------------------

    def _evaluate_node(self, state: NodeState) -> None:
        self._verdicts.select(state)
        state.verdicts = {}
        first: TaintVerdict | None = None
        count = 0
        for pod in state.pods.values():
            verdict = self._evaluate_pod(state, pod)
            if verdict is not None:
                first = first or verdict
                count += 1
        self._report_node(state, first, count)
        if any(uid in self.pending and self.pending[uid].due_at > self._now.wall + 1 for uid in state.pods):
            self._save_history(state)
        elif self.leading:
            self._unsaved[state.name] = None

    def _report_node(self, state: NodeState, first: TaintVerdict | None, count: int) -> None:
        node = state.node
        if node is None:
            return
        if first is not None and not state.degraded:
            self._notice(commands.Degraded(node.name, node.uid, first.taint, count))
        state.degraded = first is not None
        invalid = self._verdicts.invalid(state)
        for name, verdict in invalid.items():
            if state.reported_invalid.get(name) != verdict.taint.value:
                held = verdict.policy.timing.on_invalid_value is OnInvalidValue.HOLD
                self._notice(commands.InvalidValue(node.name, node.uid, verdict.taint, held))
        state.reported_invalid = {name: verdict.taint.value for name, verdict in invalid.items()}

    def _evaluate_pod(self, state: NodeState, pod: Pod) -> TaintVerdict | None:
        found = earliest(self._verdicts.of(state, pod.shared), pod.bound_at)
        if found is None:
            self._cancel(pod.uid)
            return None
        due_at, verdict = found
        pending = self.pending.get(pod.uid)
        if pending is None:
            pending = self.pending[pod.uid] = Pending(pod, verdict, due_at)
            self._queues.wait(pending)
        else:
            self._replace(pending, pod, verdict, due_at)
        self._announce(pending)
        return verdict

    def _replace(self, pending: Pending, pod: Pod, verdict: TaintVerdict, due_at: float) -> None:
        same = pending.due_at == due_at and pending.verdict.policy == verdict.policy
        queued = pending.phase in (Phase.WAITING, Phase.READY, Phase.REHEARSED)
        if queued and not same:
            self._queues.remove(pending)
        pending.announced = pending.announced and pending.due_at == due_at
        pending.pod, pending.verdict, pending.due_at = pod, verdict, due_at
        pending.unwanted = False
        if queued and not same:
            self._queues.wait(pending)

    def _announce(self, pending: Pending) -> None:
        if not pending.announced and pending.due_at > self._now.wall + ANNOUNCED_AHEAD_SECONDS and self.leading:
            pending.announced = True
            self._notice(commands.Scheduled(pending.pod, pending.verdict, pending.due_at))

    def _cancel(self, uid: str) -> None:
        pending = self.pending.get(uid)
        if pending is None or pending.phase is Phase.LEAVING:
            return
        if pending.phase is Phase.IN_FLIGHT:
            pending.unwanted = True
            return
        if pending.announced or pending.attempts or pending.phase is Phase.REHEARSED:
            self._notice(commands.Cancelled(pending.pod, pending.verdict))
        self._drop(pending)

    def _drop(self, pending: Pending) -> None:
        self._queues.remove(pending)
        del self.pending[pending.pod.uid]

    # -- acting -------------------------------------------------------------------------------------------------

    def _act(self) -> None:
        if not self.synced:
            return
        self._evaluate_dirty()
        for _ in range(self._slice_size):
            uid = self._queues.pop_due(self._now.wall)
            if uid is None:
                break
            self._fall_due(self.pending[uid])
        if self.may_evict and not self._dirty:
            self._evict_ready()
        if self.leading and not self.is_busy:
            unsaved, self._unsaved = self._unsaved, {}
            for name in unsaved:
                if name in self.nodes:
                    self._save_history(self.nodes[name])

    def _fall_due(self, pending: Pending) -> None:
        if pending.phase is Phase.LEAVING:  # accepted long ago, and the watch still shows the pod: judge it afresh
            del self.pending[pending.pod.uid]
            self._evaluate_pod(self.nodes[pending.pod.node], pending.pod)
        else:
            self._queues.make_ready(pending, self._now)

    def _evaluate_dirty(self) -> None:
        budget = self._slice_size
        while self._dirty and budget > 0:
            name = next(iter(self._dirty))
            del self._dirty[name]
            state = self.nodes.get(name)
            if state is not None:
                self._evaluate_node(state)
                budget -= len(state.pods) + 1

    def _evict_ready(self) -> None:
        """Let due pods go, the earliest deadline of all policies first, as far as limits and free slots admit."""
        refused: dict[str, float] = {}
        for _ in range(self._slice_size):
            if self.in_flight >= self._max_in_flight:
                break
            first = self._queues.first_ready(besides=refused)
            if first is None:
                break
            entry, policy = first
            pending = self.pending[entry.key]
            if self._needs_check(pending):
                self._park(pending)
                continue
            refusal = self.limiter.admit(policy, self._now.monotonic)
            if refusal is not None:
                refused[policy] = refusal.until
                pending.limit = refusal.limit
                continue
            self._queues.remove(pending)
            self._let_go(pending)
        self._refused_until = refused

    def _let_go(self, pending: Pending) -> None:
        waited = self._now.monotonic - pending.ready_since
        decided = commands.Decided(pending.pod, pending.verdict, pending.due_at, waited, pending.limit)
        policy = pending.verdict.policy
        if policy.mode is Mode.DRY_RUN:
            pending.phase = Phase.REHEARSED
            self._notice(commands.Rehearsed(pending.pod, pending.verdict, pending.due_at))
            return
        pending.phase = Phase.IN_FLIGHT
        pending.unwanted = False
        self.in_flight += 1
        if not pending.attempts:
            self._notice(decided)
        delete_at = pending.delete_at
        delete = policy.eviction.method is Method.DELETE or (delete_at is not None and self._now.wall >= delete_at)
        self._out.append(commands.Evict(pending.pod, pending.verdict, delete, policy.eviction.grace_period_seconds))

    # -- freshness ----------------------------------------------------------------------------------------------

    def _needs_check(self, pending: Pending) -> bool:
        """Whether the pod is newer than anything known of its node: the taint may be gone already."""
        version = pending.pod.resource_version
        return version > self._reached and version > self.nodes[pending.pod.node].checked_version

    def _park(self, pending: Pending) -> None:
        self._queues.remove(pending)
        pending.phase = Phase.PARKED
        state = self.nodes[pending.pod.node]
        state.parked.append(pending.pod.uid)
        if not state.check_wanted:
            state.check_wanted = True
            self._out.append(commands.CheckNode(state.name))

    def _node_checked(self, event: events.NodeChecked) -> None:
        state = self.nodes.get(event.name)
        if state is None or not state.check_wanted:
            return  # the node went while it was read: an old answer must not bring it back
        if event.node is None:
            self._release(event.name)
            self._lose_node(event.name)
            return
        self._see_node(event.node)
        state = self.nodes[event.name]
        state.checked_version = max(state.checked_version, event.resource_version)
        self._release(event.name)

    def _check_failed(self, event: events.CheckFailed) -> None:
        self._release(event.name, after=retry_delay(Outcome.FAILED, 3, event.name, None))

    def _release(self, name: str, after: float = 0.0) -> None:
        state = self.nodes.get(name)
        if state is None:
            return
        parked, state.parked, state.check_wanted = state.parked, [], False
        for uid in parked:
            pending = self.pending.get(uid)
            if pending is not None and pending.phase is Phase.PARKED:
                pending.retry_at = self._now.wall + after
                self._queues.wait(pending)

    # -- outcomes -----------------------------------------------------------------------------------------------

    def _settled(self, event: events.Settled) -> None:
        pending = self.pending.get(event.uid)
        if pending is None or pending.phase is not Phase.IN_FLIGHT:
            msg = f"no eviction of {event.uid} is under way"
            raise ValueError(msg)
        self.in_flight -= 1
        if event.outcome is Outcome.EVICTED:
            self._was_evicted(pending)
        elif event.outcome is Outcome.GONE:
            self._notice(commands.Left(pending.pod, pending.verdict))
            self._expect_gone(pending)
        elif pending.unwanted:
            pending.phase = Phase.WAITING
            notice = commands.Cancelled if self._is_here(pending.pod) else commands.Left
            self._notice(notice(pending.pod, pending.verdict))
            self._drop(pending)
        elif event.outcome is Outcome.NOT_LEADING:
            pending.retry_at = self._now.wall + NOT_LEADING_SECONDS
            self._queues.wait(pending)
        else:
            self._try_again(pending, event)

    def _was_evicted(self, pending: Pending) -> None:
        self.evicted[pending.verdict.policy.name] += 1
        lateness = max(0.0, self._now.wall - pending.due_at)
        self._notice(commands.Evicted(pending.pod, pending.verdict, lateness))
        self._expect_gone(pending)

    def _expect_gone(self, pending: Pending) -> None:
        """The watch has the last word: a pod that it goes on showing is judged afresh."""
        pending.attempts = 0
        if self._is_here(pending.pod):
            self._queues.expect_gone(pending, by=self._now.wall + LEAVING_TIMEOUT_SECONDS)
        else:
            self._drop(pending)

    def _is_here(self, pod: Pod) -> bool:
        state = self.nodes.get(pod.node)
        return state is not None and pod.uid in state.pods

    def _try_again(self, pending: Pending, event: events.Settled) -> None:
        pending.note_failure(event, self._now.wall)
        args = (pending.pod, pending.verdict, event.outcome.value, event.message, pending.attempts, pending.retry_at)
        self._notice(commands.Hindered(*args))
        self._queues.wait(pending)

    # -- the durable clock ----------------------------------------------------------------------------------------

    def _save_history(self, state: NodeState) -> None:
        if not self.leading or state.node is None or state.saving is not None or state.policies is None:
            return  # it is called again when what is missing is there
        text = state.history_text()
        if text != state.saved:
            state.saving = text
            self._out.append(commands.SaveHistory(state.name, state.node.uid, text))

    def _history_saved(self, event: events.HistorySaved) -> None:
        state = self.nodes.get(event.node)
        if state is None or state.saving is None:
            return
        if event.succeeded:
            state.saved = state.saving
        state.saving = None
        if event.succeeded:
            self._save_history(state)

    def _notice(self, notice: commands.Notice) -> None:
        """Tell people, from one place: followers keep still, since the leader says the same."""
        if self.leading:
            self._out.append(notice)
