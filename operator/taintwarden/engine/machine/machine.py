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
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.evaluate import Evaluator, TaintVerdict, earliest
from taintwarden.engine.limits import Limiter, Refusal
from taintwarden.engine.limits.refusal import BOUNCE, BUDGET_LIMITS, GUARD, WINDOW
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.events import Event, Outcome
from taintwarden.engine.machine.freshness import Freshness
from taintwarden.engine.machine.guards import Guards
from taintwarden.engine.machine.histories import Histories
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.mirrors import Mirrors
from taintwarden.engine.machine.pending import Lane, Pending, Phase, retry_delay
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.machine.reclaims import Reclaims, miss
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import (
    Gates,
    Instant,
    Method,
    Mode,
    Node,
    OnInvalidValue,
    Pod,
    PodClass,
    Policy,
    Profile,
    Tolerations,
)
from taintwarden.engine.spread import Spread

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
        self._spread = Spread(self._labels_of)
        self._queues = Queues(self._spread)
        self.limiter = Limiter(
            overall_rate, release=self._queues.release, reconsider=self._reconsider, population=self._population
        )
        self.evicted: Counter[str] = Counter()
        self.synced = False
        self.leading = False
        self.in_flight = 0
        self._max_in_flight = max_in_flight
        self._slice_size = slice_size
        self._overall_rate = overall_rate
        self._verdicts = Verdicts(gates or Gates())
        self._histories = Histories()
        self._mirrors = Mirrors()
        self._reclaims = Reclaims()
        self._freshness = Freshness(self.nodes, self.pending, self._queues)
        self._guards = Guards(self.limiter, self._verdicts, self.nodes, self.pending, self._reconsider)
        self.refused: dict[Lane, Refusal] = {}
        """Why the first pod of a lane may not go, where that holds for all of its policy."""
        self._deletions = DeadlineQueue()
        """Pods that a budget holds, by when they are deleted instead."""
        self._dirty: dict[str, None] = {}
        """Nodes to be looked at again, in order."""
        self._blind: dict[str, None] = {}
        """Streams that are cut off: nobody is evicted on what may be long past."""
        self._out: list[commands.Command] = []
        self._now = Instant(0.0, 0.0)
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
            events.GuardSaved: lambda event: self._guards.saved(event, self._now),
            events.PoliciesChanged: self._policies_changed,
            events.ProfileSeen: lambda event: self._set_profile(
                event.profile.namespace, event.profile.name, event.profile
            ),
            events.ProfileGone: lambda event: self._set_profile(event.namespace, event.name, None),
            events.Synced: self._has_synced,
            events.LeadershipChanged: self._leadership_changed,
            events.Settled: self._settled,
            events.HistorySaved: self._history_saved,
            events.TaintsMirrored: self._taints_mirrored,
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
        if self._dirty or (self._histories and self.leading and not self.is_busy):
            return 0.0
        wall = [self._queues.next_at()]
        delays = []
        if self.leading:
            wall += [self._reclaims.next_at(), self._deletions.next_at()]
            if (look := self._reclaims.next_look(now)) is not None:
                delays.append(look)
        delays += [at - now.wall for at in wall if at is not None]
        if self.may_evict:
            if self._guards.resets:
                return 0.0
            if (released := self._queues.next_release()) is not None:
                delays.append(released - now.monotonic)
            delays += self._guards.wake_after(now)
            if self.in_flight < self._max_in_flight:
                delays.extend(self._turns(now))
        return max(0.0, min(delays)) if delays else None

    def _turns(self, now: Instant) -> Iterator[float]:
        """Seconds until the first pod of each lane may be let go, unless something else has to change first."""
        for lane in self._queues.ready_lanes():
            refusal = self.refused.get(lane)
            if refusal is None:
                yield 0.0
            elif refusal.until is not None:
                yield refusal.until - now.monotonic

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
        return self.in_flight * 2 >= self._max_in_flight

    # -- what is known ------------------------------------------------------------------------------------------

    def _labels_of(self, name: str) -> dict[str, str]:
        state = self.nodes.get(name)
        return state.node.labels if state and state.node else {}

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
        problem = state.update(node, self._now.wall)
        if relabelled:
            self._spread.relabel(node.name)
            for uid in state.pods:
                if uid in self.pending and self.pending[uid].phase is Phase.HELD:
                    self._queues.ask_again(self.pending[uid])  # it may be in another zone
        if problem:
            self._notice(commands.UnreadableHistory(node.name, node.uid, problem))
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
                self._tell_all(miss(self.pending[uid], "not-evicted"))
            self._cancel(uid)
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
                self.limiter.workloads.gone(known, self._now.monotonic)
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
                self.limiter.gone(known, self._now)
                self._spread.discount(known)
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
        self.limiter.configure(self.policies, self._now)
        self._guards.policies_changed(self._now)
        self.refused = {}
        for state in self.nodes.values():
            state.policies = None
        self._look_again()

    def _set_profile(self, namespace: str, name: str, profile: Profile | None) -> None:
        """Look again where pods stand that tolerate something else now; nobody is evicted before that is done."""
        changed = self._verdicts.set_profile(namespace, name, profile)
        if changed:
            how = "was deleted" if profile is None else "was created or changed"
            self._guards.profile_changed(f"TolerationProfile {namespace}/{name} {how}", self._now)
        for state in self.nodes.values() if changed else ():
            if any(verdicts and one in changed for one, verdicts in state.verdicts.items()):
                self._dirty[state.name] = None

    def _has_synced(self, _: events.Synced) -> None:
        self.synced = True
        self._look_again()

    def _leadership_changed(self, event: events.LeadershipChanged) -> None:
        gained = event.leading and not self.leading
        self.leading = event.leading
        self._guards.leadership_changed()
        if gained:
            self.limiter.rates.restart(self._now.monotonic)
            self._mirrors.restart()
            self.refused = {}
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
        if any(uid in self.pending and self.pending[uid].due_at > self._now.wall + 1 for uid in state.pods):
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
            self._notice(commands.Degraded(node.name, node.uid, first.taint, count))
        state.degraded = first is not None
        invalid = self._verdicts.invalid(state)
        for name, verdict in invalid.items():
            if state.reported_invalid.get(name) != verdict.taint.value:
                held = verdict.policy.timing.on_invalid_value is OnInvalidValue.HOLD
                self._notice(commands.InvalidValue(node.name, node.uid, verdict.taint, held))
        state.reported_invalid = {name: verdict.taint.value for name, verdict in invalid.items()}

    def _judge(self, state: NodeState, pod: Pod) -> TaintVerdict | None:
        """The verdict that makes the pod leave, if there is one; what follows from it is set in motion."""
        found = earliest(self._verdicts.of(state, pod.shared), pod.bound_at)
        if found is None:
            self._cancel(pod.uid)
            return None
        due_at, verdict = found
        pending = self.pending.get(pod.uid)
        if pending is None:
            pending = self.pending[pod.uid] = Pending(pod, verdict, due_at)
            pending.retry_at = self._settles_at(verdict.policy)
            self._queues.wait(pending)
        else:
            self._replace(pending, pod, verdict, due_at)
        if pending.phase not in (Phase.IN_FLIGHT, Phase.LEAVING, Phase.REHEARSED):
            self._expect(pending)
        self._announce(pending)
        return verdict

    def _settles_at(self, policy: Policy) -> float:
        """Until when an eviction that was decided now waits, so that the guard sees a wave whole before its first."""
        guard = self.limiter.guards.get(policy.name)
        return 0.0 if guard is None else self._now.wall + guard.settings.settle_seconds

    def _replace(self, pending: Pending, pod: Pod, verdict: TaintVerdict, due_at: float) -> None:
        before, policy = pending.pod, pending.policy
        same_taint = pending.verdict.taint == verdict.taint
        same = pending.due_at == due_at and policy == verdict.policy and before.shared is pod.shared
        queued = pending.phase in (Phase.WAITING, Phase.READY, Phase.HELD, Phase.REHEARSED)
        if not same:
            if queued:
                self._queues.remove(pending)
            if policy.name != verdict.policy.name:
                self._forget(pending)
            if due_at < pending.due_at:
                pending.retry_at = max(pending.retry_at, self._settles_at(verdict.policy))
            elif due_at > pending.due_at:
                pending.blocked_since = None
        pending.announced = pending.announced and pending.due_at == due_at
        pending.pod, pending.verdict, pending.due_at = pod, verdict, due_at
        pending.unwanted = False
        if queued and not same:
            self._queues.wait(pending)
        elif pending.phase is Phase.HELD and (before.ready != pod.ready or not same_taint):
            self._queues.ask_again(pending)

    def _expect(self, pending: Pending) -> None:
        """Let those know who look ahead."""
        self._reclaims.expect(pending)
        guard = self.limiter.guards.get(pending.policy.name)
        if guard is not None and not self.limiter.departures.is_leaving(pending.pod.uid):
            guard.expect(pending.pod.uid, pending.due_at, self._now)

    def _forget(self, pending: Pending) -> None:
        self._reclaims.forget(pending.pod.uid)
        self._deletions.cancel(pending.pod.uid)
        guard = self.limiter.guards.get(pending.policy.name)
        if guard is not None:
            guard.forget(pending.pod.uid)

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
        tried = pending.attempts or pending.blocked_since is not None or pending.bounce_until
        if pending.announced or tried or pending.phase is Phase.REHEARSED:
            self._notice(commands.Cancelled(pending.pod, pending.verdict))
        self._drop(pending)

    def _drop(self, pending: Pending) -> None:
        self._queues.remove(pending)
        self._forget(pending)
        del self.pending[pending.pod.uid]
        self._stay(pending.pod)

    def _stay(self, pod: Pod) -> None:
        """Whatever call was under way, the pod counts as standing on its node if it does."""
        self.limiter.stay(pod)
        if self._is_here(pod):
            self._spread.count(pod)

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
        if self.leading:
            self._foretell()
        if self.may_evict and not self._dirty:
            self._out += self._guards.reset(self._now)
            self._out += self._guards.look(self._now)
            self._queues.release_due(self._now)
            self._evict_ready()
            self._out += self._guards.save({lane.policy for lane in self._queues.ready_lanes()}, self._now)
        if self.leading and not self.is_busy:
            for name in self._histories.take():
                if name in self.nodes:
                    self._save_history(self.nodes[name])

    def _fall_due(self, pending: Pending) -> None:
        if pending.phase is Phase.LEAVING:  # accepted long ago, and the watch still shows the pod: judge it afresh
            self._drop(pending)
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
        refused: dict[Lane, Refusal] = {}
        for _ in range(self._slice_size):
            if self.in_flight >= self._max_in_flight:
                break
            pending = self._queues.first_ready(besides=refused)
            if pending is None:
                break
            if self._freshness.is_missing(pending):
                self._out += self._freshness.park(pending)
                continue
            deletes = self._deletes(pending)
            labels = self._labels_of(pending.pod.node)
            args = (pending.pod, pending.policy, pending.verdict.taint, labels, self._now)
            refusal = self.limiter.admit(*args, deletes=deletes)
            if refusal is None:
                self._queues.remove(pending)
                self._let_go(pending, deletes=deletes)
                continue
            pending.refusal = refusal
            admitted_by_budgets = refusal.key and refusal.limit not in BUDGET_LIMITS and not deletes
            if admitted_by_budgets or refusal.limit in (WINDOW, GUARD):
                pending.blocked_since = None  # from here on it is not the budget that keeps it
            if refusal.key:
                self._queues.hold(pending, refusal)
                self._note_budget(pending, refusal)
                self._note_bounce(pending, refusal)
            else:
                refused[pending.lane] = refusal
        self.refused = refused

    def _deletes(self, pending: Pending) -> bool:
        """Whether it is deleted and no budget asked: always, or since one has blocked it for long, and does so now."""
        if pending.policy.eviction.method is not Method.EVICT_THEN_DELETE:
            return pending.policy.eviction.method is Method.DELETE
        blocks = self.limiter.budgets.refuse(pending.pod) is not None
        if not blocks and pending.outcome not in (Outcome.BLOCKED, Outcome.MISCONFIGURED):
            pending.blocked_since = None
        return pending.delete_at is not None and self._now.wall >= pending.delete_at

    def _note_budget(self, pending: Pending, refusal: Refusal) -> None:
        """A budget holds it: tell once, and wake it where it is to be deleted in the end."""
        if refusal.limit not in BUDGET_LIMITS:
            return
        news = pending.blocked_since is None
        if pending.blocked_since is None:
            pending.blocked_since = self._now.wall
        delete_at = pending.delete_at
        if delete_at is not None:
            self._deletions.schedule(pending.pod.uid, delete_at)
        if news:
            self._notice(commands.HeldByBudget(pending.pod, pending.verdict, refusal.detail, delete_at))

    def _note_bounce(self, pending: Pending, refusal: Refusal) -> None:
        """Its workload comes back again and again: tell once until when it is held."""
        if refusal.limit == BOUNCE and refusal.until is not None and refusal.until != pending.bounce_until:
            pending.bounce_until = refusal.until
            until = self._now.wall + refusal.until - self._now.monotonic
            self._notice(commands.HeldAsBouncing(pending.pod, pending.verdict, refusal.detail, until))

    def _foretell(self) -> None:
        self._tell_all(self._reclaims.missed(self._now.wall))
        self._tell_all(self._reclaims.foretell(self._overall_rate, self._now))
        while (uid := self._deletions.pop_due(self._now.wall)) is not None:
            pending = self.pending[uid]
            if pending.phase is Phase.HELD:
                self._queues.ask_again(pending)

    def _let_go(self, pending: Pending, *, deletes: bool) -> None:
        waited = self._now.monotonic - pending.ready_since
        decided = commands.Decided(pending.pod, pending.verdict, pending.due_at, waited, pending.limit)
        policy = pending.policy
        if policy.mode is Mode.DRY_RUN:
            pending.phase = Phase.REHEARSED
            self.limiter.rehearse(pending.pod, policy, self._now)
            self._notice(commands.Rehearsed(pending.pod, pending.verdict, pending.due_at))
            return
        pending.phase = Phase.IN_FLIGHT
        pending.unwanted = False
        self.in_flight += 1
        taint = pending.verdict.taint
        in_a_row = self.limiter.leave(pending.pod, policy, taint, self._now, asks_budgets=not deletes)
        self._spread.discount(pending.pod)
        if not pending.attempts:
            self._notice(decided)
        if in_a_row:
            self._notice(commands.Bounced(pending.pod, pending.verdict, in_a_row))
        self._out.append(commands.Evict(pending.pod, pending.verdict, deletes, self._grace_of(pending)))

    def _grace_of(self, pending: Pending) -> int | None:
        """Seconds to give the pod to stop, None for its own: no more than its node will be there."""
        given, hard_at = pending.policy.eviction.grace_period_seconds, pending.verdict.hard_at
        left = pending.grace_seconds if hard_at is None else int(hard_at - self._now.wall)
        pending.grace_cut = left + 1 < pending.grace_seconds
        return max(1, left) if pending.grace_cut else given

    def _population(self, policy: str) -> int:
        return self._guards.population(policy, self._now)

    def _reconsider(self, policy: str) -> None:
        for lane in [lane for lane in self.refused if lane.policy == policy]:
            del self.refused[lane]

    def _guard_restored(self, event: events.GuardRestored) -> None:
        if not self.leading or event.policy not in self.limiter.guards:  # who leads knows best
            self.limiter.restore_guard(event.policy, event.record, self._now)

    def _guard_reset(self, event: events.GuardReset) -> None:
        if self.leading:
            self._guards.ask_reset(event)

    # -- freshness ----------------------------------------------------------------------------------------------

    def _node_checked(self, event: events.NodeChecked) -> None:
        state = self.nodes.get(event.name)
        if state is None or not state.check_wanted:
            return  # the node went while it was read: an old answer must not bring it back
        if event.node is None:
            self._freshness.unpark(event.name, self._now.wall)
            self._lose_node(event.name)
            return
        self._see_node(event.node)
        state = self.nodes[event.name]
        state.checked_version = max(state.checked_version, event.resource_version)
        self._freshness.unpark(event.name, self._now.wall)

    def _check_failed(self, event: events.CheckFailed) -> None:
        self._freshness.unpark(event.name, self._now.wall + retry_delay(Outcome.FAILED, 3, event.name, None))

    # -- outcomes -----------------------------------------------------------------------------------------------

    def _settled(self, event: events.Settled) -> None:
        pending = self.pending.get(event.uid)
        if pending is None or pending.phase is not Phase.IN_FLIGHT:
            msg = f"no eviction of {event.uid} is under way"
            raise ValueError(msg)
        self.in_flight -= 1
        uncertain = event.outcome is Outcome.FAILED  # the call may have been carried out: the pod counts as leaving
        done = event.outcome in (Outcome.EVICTED, Outcome.GONE)
        # A pod that is gone after a call that may have been carried out was evicted by that, most likely.
        evicted = event.outcome is Outcome.EVICTED or (done and pending.outcome is Outcome.FAILED)
        self.limiter.settle(event.uid, evicted=evicted, uncertain=uncertain)
        if not done:
            if not uncertain:
                self._stay(pending.pod)
            self._expect(pending)
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
        self.evicted[pending.policy.name] += 1
        lateness = max(0.0, self._now.wall - pending.due_at)
        self._notice(commands.Evicted(pending.pod, pending.verdict, lateness))
        if pending.grace_cut:
            self._tell_all(miss(pending, "grace-cut"))
        self._expect_gone(pending)

    def _expect_gone(self, pending: Pending) -> None:
        """The watch has the last word: a pod that it goes on showing is judged afresh."""
        self._forget(pending)
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
        if self.leading:
            self._out += self._histories.save(state)

    def _history_saved(self, event: events.HistorySaved) -> None:
        state = self.nodes.get(event.node)
        if state is not None and self.leading:
            self._out += self._histories.saved(state, succeeded=event.succeeded)

    # -- placement ------------------------------------------------------------------------------------------------

    def _mirror(self, state: NodeState) -> None:
        if self.leading:
            self._out += self._mirrors.look(state, self._verdicts.select(state))

    def _taints_mirrored(self, event: events.TaintsMirrored) -> None:
        state = self.nodes.get(event.node)
        if state is not None and self.leading:
            self._out += self._mirrors.written(state, self._verdicts.select(state), succeeded=event.succeeded)

    def _tell_all(self, notices: Iterable[commands.Notice]) -> None:
        for notice in notices:
            self._notice(notice)

    def _notice(self, notice: commands.Notice) -> None:
        """Tell people, from one place: followers keep still, since the leader says the same."""
        if self.leading:
            self._out.append(notice)
