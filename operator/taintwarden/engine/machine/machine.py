"""The one place that decides. ``step(event, now)`` changes the state and returns commands; nothing else does.

Outside events only change what is known and when pods are due. Acting happens on :class:`~.events.Woke`, at the
machine's own pace, in slices, so that a wave never stalls the loop:

=========== =========================================== ==========================================
phase       enters when                                 leaves when
=========== =========================================== ==========================================
WAITING     a verdict gives a deadline; after a failure deadline and ``retry_at`` have passed
READY       due                                         limits admit it and a slot is free
HELD        a limit refused it that others need not     that limit may admit it
            meet
PARKED      the pod is newer than the node stream       a fresh read of the node was answered
IN_FLIGHT   ``Evict`` was issued                        ``Settled``
LEAVING     the call was accepted                       the pod is gone (asked again after a minute)
REHEARSED   due under a DryRun policy                   the verdict changes
=========== =========================================== ==========================================

A new verdict replaces the old one in every phase: later, earlier, or none at all.

The machine itself keeps what is known. Its two great parts are :class:`~.leavers.Leavers`, who have to leave and when,
and :class:`~.evictions.Evictions`, the calls that make them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from taintwarden.engine.evaluate import Evaluator, TaintVerdict, earliest
from taintwarden.engine.limits import Limiter, Refusal
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.events import Event, Outcome
from taintwarden.engine.machine.evictions import Evictions
from taintwarden.engine.machine.freshness import Freshness
from taintwarden.engine.machine.guards import Guards
from taintwarden.engine.machine.histories import Histories
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.leavers import Leavers
from taintwarden.engine.machine.mirrors import Mirrors
from taintwarden.engine.machine.pending import Lane, Pending, Phase, retry_delay
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.machine.reclaims import miss
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import (
    Gates,
    Instant,
    Node,
    OnInvalidValue,
    Pod,
    PodClass,
    Policy,
    Profile,
    Tolerations,
)
from taintwarden.engine.spread import Spread


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
        self.synced = False
        self._slice_size = slice_size
        self._overall_rate = overall_rate
        self._step = step = Step()
        spread = self._spread = Spread(lambda name: self.nodes[name].labels if name in self.nodes else {})
        queues = self._queues = Queues(spread)
        self.limiter = Limiter(
            overall_rate,
            release=queues.release,
            reconsider=lambda policy: self._evictions.reconsider(policy),  # noqa: PLW0108 - they are built after this
            population=lambda policy: self._guards.population(policy, step.now),
        )
        leavers = self._leavers = Leavers(step, self.nodes, queues, self.limiter, spread)
        self.pending = leavers.pending
        self._freshness = Freshness(self.nodes, self.pending, queues)
        self._evictions = Evictions(
            step, self.nodes, leavers, queues, self.limiter, spread, self._freshness, max_in_flight
        )
        self._verdicts = Verdicts(gates or Gates())
        self._guards = Guards(self.limiter, self._verdicts, self.nodes, self.pending, self._evictions.reconsider)
        self._histories = Histories()
        self._mirrors = Mirrors()
        self._dirty: dict[str, None] = {}
        """Nodes to be looked at again, in order."""
        self._blind: dict[str, None] = {}
        """Streams that are cut off: nobody is evicted on what may be long past."""
        self._handlers: dict[type, Callable[[Any], None]] = {
            events.NodeSeen: lambda event: self._see_node(event.node),
            events.NodeGone: lambda event: self._lose_node(event.name),
            events.NodesListed: self._nodes_listed,
            events.NodesReached: lambda event: self._freshness.reached(event.resource_version),
            events.NodeChecked: self._node_checked,
            events.CheckFailed: self._check_failed,
            events.ViewChanged: self._view_changed,
            events.PodSeen: lambda event: self._see_pod(event.pod),
            events.PodGone: lambda event: self._lose_pod(event.uid, event.node, event.until),
            events.PodsListed: self._pods_listed,
            events.NamespaceSeen: self._namespace_seen,
            events.NamespaceGone: self._namespace_gone,
            events.WorkloadSeen: lambda event: self.limiter.workloads.want(event.uid, event.replicas),
            events.WorkloadGone: lambda event: self.limiter.workloads.want(event.uid, None),
            events.BudgetSeen: lambda event: self.limiter.budgets.set(event.budget),
            events.BudgetGone: lambda event: self.limiter.budgets.drop(event.namespace, event.name),
            events.GuardRestored: self._guard_restored,
            events.GuardReset: self._guard_reset,
            events.GuardSaved: lambda event: self._guards.saved(event, self._step.now),
            events.PoliciesChanged: self._policies_changed,
            events.ProfileSeen: lambda event: self._set_profile(
                event.profile.namespace, event.profile.name, event.profile
            ),
            events.ProfileGone: lambda event: self._set_profile(event.namespace, event.name, None),
            events.Synced: self._has_synced,
            events.LeadershipChanged: self._leadership_changed,
            events.Settled: self._evictions.settled,
            events.HistorySaved: self._history_saved,
            events.TaintsMirrored: self._taints_mirrored,
            events.Woke: lambda _: self._act(),
        }

    def step(self, event: Event, now: Instant) -> list[commands.Command]:
        """Take one event at ``now``; the commands are to be carried out in order."""
        self._step.begin(now)
        self._handlers[type(event)](event)
        return self._step.out

    def wake_after(self, now: Instant) -> float | None:
        """Seconds until :class:`~.events.Woke` is wanted; 0 is at once, None is not before another event."""
        if not self.synced:
            return None
        if self._dirty or (self._histories and self.leading and not self.is_busy):
            return 0.0
        wall = [self._queues.next_at()]
        delays = []
        if self.leading:
            wall += [self._leavers.reclaims.next_at(), self._leavers.deletions.next_at()]
            if (look := self._leavers.reclaims.next_look(now)) is not None:
                delays.append(look)
        delays += [at - now.wall for at in wall if at is not None]
        if self.may_evict:
            if self._guards.resets:
                return 0.0
            if (released := self._queues.next_release()) is not None:
                delays.append(released - now.monotonic)
            delays += self._guards.wake_after(now)
            delays.extend(self._evictions.turns(now))
        return max(0.0, min(delays)) if delays else None

    @property
    def leading(self) -> bool:
        """Whether this process may act."""
        return self._step.leading

    @property
    def in_flight(self) -> int:
        """Eviction calls under way."""
        return self._evictions.in_flight

    @property
    def evicted(self) -> Mapping[str, int]:
        """Policy -> evictions that the API server accepted."""
        return self._evictions.accepted

    @property
    def refused(self) -> Mapping[Lane, Refusal]:
        """Why the first pod of a lane may not go, where that holds for all of its policy."""
        return self._evictions.refused

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
        """All that pods of a class tolerate, by themselves and by profiles."""
        return self._verdicts.tolerations(pod_class)

    def policies_for(self, pod_class: PodClass) -> tuple[Policy, ...]:
        """The policies that may touch pods of a class, by name."""
        return self._verdicts.selecting(pod_class)

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """The labels of a namespace; None if it is not known."""
        return self._verdicts.namespace_labels(name)

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
        return self._evictions.is_busy

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
        relabelled = state.node is None or state.node.labels != node.labels
        problem = state.update(node, self._step.now.wall)
        if relabelled:
            self._spread.relabel(node.name)
            self._leavers.ask_held_again(state)
        if problem:
            self._step.tell(commands.UnreadableHistory(node.name, node.uid, problem))
        if self.synced:
            self._evaluate_node(state)

    def _replace_node(self, old: NodeState) -> NodeState:
        """Another node of the same name: what was known of the old one does not count."""
        self._mirrors.forget(old.name)
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
            if uid in self.pending:
                self._step.tell(*miss(self.pending[uid], "not-evicted"))
            self._leavers.cancel(uid)
        if state.pods:
            self.nodes[name] = replacement = NodeState(name)
            replacement.pods = state.pods
        else:
            del self.nodes[name]
        self._mirrors.forget(name)
        self.limiter.zones.forget(name)
        self._spread.relabel(name)

    def _nodes_listed(self, event: events.NodesListed) -> None:
        for name in [name for name, state in self.nodes.items() if state.node and name not in event.names]:
            self._lose_node(name)

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
        if known is None:
            self.limiter.bounces.came(pod)
        state.pods[pod.uid] = pod
        self._count(pod, known)
        if self.synced and pod.node not in self._dirty:
            self._evaluate_pod(state, pod)

    def _count(self, pod: Pod, known: Pod | None) -> None:
        """Keep the numbers of running pods by workload and topology domain."""
        stands = known is not None and known.shared is pod.shared
        if known is not None and not stands:
            self._spread.discount(known)
            if known.shared.owner != pod.shared.owner:
                self.limiter.workloads.gone(known, self._step.now.monotonic)
                known = None
        self.limiter.workloads.seen(pod, known)
        if self.limiter.departures.is_leaving(pod.uid):
            self.limiter.workloads.leave(pod)
        elif not stands:
            self._spread.count(pod)

    def _lose_pod(self, uid: str, node: str, until: float | None = None) -> None:
        self.limiter.terminating(uid, node, until)
        state = self.nodes.get(node)
        if state is not None:
            known = state.pods.pop(uid, None)
            if known is not None:
                self.limiter.gone(known, self._step.now)
                self._spread.discount(known)
            if not state.pods and state.node is None:
                del self.nodes[node]
        self._leavers.gone(uid)

    def _pods_listed(self, event: events.PodsListed) -> None:
        for state in list(self.nodes.values()):
            for uid in [uid for uid in state.pods if uid not in event.uids]:
                self._lose_pod(uid, state.name)
        for uid, node in self.limiter.departures.uids():
            if uid not in event.uids:
                self._lose_pod(uid, node)

    def _namespace_seen(self, event: events.NamespaceSeen) -> None:
        if self._verdicts.set_namespace(event.name, event.labels):
            self._look_again()

    def _namespace_gone(self, event: events.NamespaceGone) -> None:
        if self._verdicts.set_namespace(event.name, None):
            self._look_again()

    def _policies_changed(self, event: events.PoliciesChanged) -> None:
        self._verdicts.set_policies(event.policies)
        self.limiter.configure(self.policies, self._step.now)
        self._guards.policies_changed(self._step.now)
        self._evictions.refused = {}
        for state in self.nodes.values():
            state.policies = None
        self._look_again()

    def _set_profile(self, namespace: str, name: str, profile: Profile | None) -> None:
        """Look again where pods stand that tolerate something else now; nobody is evicted before that is done."""
        changed = self._verdicts.set_profile(namespace, name, profile)
        if changed:
            how = "was deleted" if profile is None else "was created or changed"
            self._guards.profile_changed(f"TolerationProfile {namespace}/{name} {how}", self._step.now)
        for state in self.nodes.values() if changed else ():
            if any(verdicts and one in changed for one, verdicts in state.verdicts.items()):
                self._dirty[state.name] = None

    def _has_synced(self, _: events.Synced) -> None:
        self.synced = True
        self._look_again()

    def _leadership_changed(self, event: events.LeadershipChanged) -> None:
        gained = event.leading and not self.leading
        self._step.leading = event.leading
        self._guards.leadership_changed()
        if gained:
            self.limiter.rates.restart(self._step.now.monotonic)
            self._mirrors.restart()
            self._evictions.refused = {}
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
            verdict = self._judge(state, pod)
            if verdict is not None:
                state.mark_draining(verdict.taint, pod.shared)
                first = first or verdict
                count += 1
        self._report_node(state, first, count)
        self._mirror(state)
        self._verdicts.settle_draining(state)
        self._count_node(state)
        if any(uid in self.pending and self.pending[uid].due_at > self._step.now.wall + 1 for uid in state.pods):
            self._save_history(state)
        elif self.leading:
            self._histories.later(state.name)

    def _evaluate_pod(self, state: NodeState, pod: Pod) -> None:
        verdict = self._judge(state, pod)
        if verdict is not None and state.mark_draining(verdict.taint, pod.shared):
            self._count_node(state)
            self._histories.later(state.name)

    def _count_node(self, state: NodeState) -> None:
        """Keep the numbers of drained nodes by zone."""
        if state.node is not None:
            policies = self._verdicts.select(state)
            drained = {policy.name: state.drained_by(policy) for policy in policies if policy.limits.zone_health}
            self.limiter.zones.count(state.name, state.node.labels, drained)

    def _report_node(self, state: NodeState, first: TaintVerdict | None, count: int) -> None:
        node = state.node
        if node is None:
            return
        if first is not None and not state.degraded:
            self._step.tell(commands.Degraded(node.name, node.uid, first.taint, count))
        state.degraded = first is not None
        invalid = self._verdicts.invalid(state)
        for name, verdict in invalid.items():
            if state.reported_invalid.get(name) != verdict.taint.value:
                held = verdict.policy.timing.on_invalid_value is OnInvalidValue.HOLD
                self._step.tell(commands.InvalidValue(node.name, node.uid, verdict.taint, held))
        state.reported_invalid = {name: verdict.taint.value for name, verdict in invalid.items()}

    def _judge(self, state: NodeState, pod: Pod) -> TaintVerdict | None:
        """The verdict that makes the pod leave, if there is one; what follows from it is set in motion."""
        found = earliest(self._verdicts.of(state, pod.shared), pod.bound_at)
        if found is None:
            self._leavers.cancel(pod.uid)
            return None
        due_at, verdict = found
        self._leavers.judged(pod, verdict, due_at)
        return verdict

    # -- acting -------------------------------------------------------------------------------------------------

    def _act(self) -> None:
        if not self.synced:
            return
        now = self._step.now
        self._evaluate_dirty()
        for _ in range(self._slice_size):
            uid = self._queues.pop_due(self._step.now.wall)
            if uid is None:
                break
            self._fall_due(self.pending[uid])
        if self.leading:
            self._leavers.foretell(self._overall_rate)
        if self.may_evict and not self._dirty:
            self._step.command(*self._guards.reset(now), *self._guards.look(now))
            self._queues.release_due(now)
            self._evictions.let_go(self._slice_size)
            self._step.command(*self._guards.save({lane.policy for lane in self._queues.ready_lanes()}, now))
        if self.leading and not self.is_busy:
            for name in self._histories.take():
                if name in self.nodes:
                    self._save_history(self.nodes[name])

    def _fall_due(self, pending: Pending) -> None:
        if pending.phase is Phase.LEAVING:  # accepted long ago, and the watch still shows the pod: judge it afresh
            self._leavers.drop(pending)
            self._evaluate_pod(self.nodes[pending.pod.node], pending.pod)
        else:
            self._queues.make_ready(pending, self._step.now)

    def _evaluate_dirty(self) -> None:
        budget = self._slice_size
        while self._dirty and budget > 0:
            name = next(iter(self._dirty))
            del self._dirty[name]
            state = self.nodes.get(name)
            if state is not None:
                self._evaluate_node(state)
                budget -= len(state.pods) + 1

    def _population(self, policy: str) -> int:
        return self._guards.population(policy, self._step.now)

    def _guard_restored(self, event: events.GuardRestored) -> None:
        if not self.leading or event.policy not in self.limiter.guards:  # who leads knows best
            self.limiter.restore_guard(event.policy, event.record, self._step.now)

    def _guard_reset(self, event: events.GuardReset) -> None:
        if self.leading:
            self._guards.ask_reset(event)

    # -- freshness ----------------------------------------------------------------------------------------------

    def _node_checked(self, event: events.NodeChecked) -> None:
        state = self.nodes.get(event.name)
        if state is None or not state.check_wanted:
            return  # the node went while it was read: an old answer must not bring it back
        if event.node is None:
            self._freshness.unpark(event.name, self._step.now.wall)
            self._lose_node(event.name)
            return
        self._see_node(event.node)
        state = self.nodes[event.name]
        state.checked_version = max(state.checked_version, event.resource_version)
        self._freshness.unpark(event.name, self._step.now.wall)

    def _check_failed(self, event: events.CheckFailed) -> None:
        self._freshness.unpark(event.name, self._step.now.wall + retry_delay(Outcome.FAILED, 3, event.name, None))

    # -- the durable clock ----------------------------------------------------------------------------------------

    def _save_history(self, state: NodeState) -> None:
        if self.leading:
            self._step.command(*self._histories.save(state))

    def _history_saved(self, event: events.HistorySaved) -> None:
        state = self.nodes.get(event.node)
        if state is not None and self.leading:
            self._step.command(*self._histories.saved(state, succeeded=event.succeeded))

    # -- placement ------------------------------------------------------------------------------------------------

    def _mirror(self, state: NodeState) -> None:
        if self.leading:
            self._step.command(*self._mirrors.look(state, self._verdicts.select(state)))

    def _taints_mirrored(self, event: events.TaintsMirrored) -> None:
        state = self.nodes.get(event.node)
        if state is not None and self.leading:
            self._step.command(*self._mirrors.written(state, self._verdicts.select(state), succeeded=event.succeeded))
