"""The one place that decides. ``step(event, now)`` changes the state and returns commands; nothing else does.

Events from outside only change what is known and when pods are due. The machine acts on :class:`~.events.Woke`, at
its own pace and in slices, so that a wave never stalls the loop. The parts, in the order of the data flow:

=============== ======================================================================================
``cluster``     nodes with their taints' histories, and the pods on them
``verdicts``    which policies select what, and the verdicts for the pods of a class on a node
``evictees``    verdicts create, replace and withdraw *claims*: a policy evicts a pod
``queues``      the place of each claim, between its deadline and the end of the pod
``evictions``   claims that all limits admit become calls, and calls have outcomes
``outbox``      every other write: histories, labels, guard records
``guards``      the number of pods that would be evicted, compared with the limit
``view``        what other packages may read
=============== ======================================================================================
"""

from collections.abc import Collection
from typing import assert_never

import msgspec

from taintwarden.engine.evaluate import TaintVerdict, claims
from taintwarden.engine.limits import Limiter
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.claims import Claims, Phase
from taintwarden.engine.machine.cluster import Cluster, NodeState, history_name
from taintwarden.engine.machine.draining import Draining
from taintwarden.engine.machine.events import Event
from taintwarden.engine.machine.evictees import Evictees
from taintwarden.engine.machine.evictions import Evictions
from taintwarden.engine.machine.freshness import Freshness
from taintwarden.engine.machine.guards import Guards
from taintwarden.engine.machine.mirroring import Mirroring
from taintwarden.engine.machine.outbox import Outbox, history_key
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.machine.view import View
from taintwarden.engine.model import Gates, Instant, Node, OnInvalidValue, Pod, PodClass, Profile, later
from taintwarden.engine.spread import Spread


class Machine:
    """Events in, commands out.

    Args:
        gates: which operators may match at all.
        overall_rate: evictions per second over all policies, None for no cap.
        max_in_flight: how many eviction calls may be in progress at once.
        slice_size: how many pods one step may evaluate before it returns to the loop.
        timings: the waits of the machine.

    """

    def __init__(
        self,
        *,
        gates: Gates | None = None,
        overall_rate: float | None = None,
        max_in_flight: int = 64,
        slice_size: int = 500,
        timings: Timings | None = None,
    ) -> None:
        self._timings = timings = timings or Timings()
        self._slice_size = slice_size
        self._overall_rate = overall_rate
        self._synced = False
        self._step = step = Step()
        self._cluster = cluster = Cluster()
        self._claims = all_claims = Claims()
        self._verdicts = Verdicts(gates or Gates())
        self._spread = spread = Spread(cluster.labels)
        self._queues = queues = Queues(spread)
        self._limiter = limiter = Limiter(overall_rate)
        self._outbox = Outbox(step, timings)
        self._draining = Draining(self._verdicts, limiter.zones, timings)
        self._mirroring = Mirroring(step, self._outbox)
        self._freshness = Freshness(cluster, all_claims, queues)
        self._evictees = Evictees(step, cluster, all_claims, queues, limiter, spread, timings)
        self._evictions = Evictions(
            step,
            cluster,
            all_claims,
            self._evictees,
            queues,
            limiter,
            spread,
            self._freshness,
            timings,
            max_in_flight,
        )
        self._guards = Guards(step, limiter, self._verdicts, cluster, all_claims, self._outbox, timings)
        self._dirty: dict[str, None] = {}
        """Nodes to be evaluated again, in order."""
        self._recount: dict[str, None] = {}
        """Nodes whose count for the health of their zones may change."""
        self._blind: dict[str, None] = {}
        """Streams that are cut off: no pod is evicted on data that may be outdated."""
        self.view = View(
            step=step,
            cluster=cluster,
            claims=all_claims,
            verdicts=self._verdicts,
            limiter=limiter,
            evictions=self._evictions,
            blind=self._blind,
            is_synced=lambda: self._synced,
        )

    def step(self, event: Event, now: Instant) -> list[commands.Command]:
        """Process one event at ``now``; the caller carries out the commands in order."""
        self._step.begin(now)
        self._take(event)
        if self._limiter.freed.keys:
            self._evictions.pull_freed()
        return self._step.out

    def _take(self, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one case for each kind of event
        match event:
            case events.PodSeen():
                self._see_pod(event.pod)
            case events.PodsSeen():
                for pod in event.pods:
                    self._see_pod(pod)
            case events.PodGone():
                self._lose_pod(event.uid, event.node, event.until)
            case events.Woke():
                self._act()
            case events.Settled():
                self._evictions.settled(event)
            case events.NodeSeen():
                self._see_node(event.node, listed=event.listed)
            case events.NodeGone():
                self._lose_node(event.name)
            case events.NodesListed():
                self._nodes_listed(event)
            case events.NodesReached():
                self._freshness.reached(event.resource_version)
            case events.NodeChecked():
                self._node_checked(event)
            case events.CheckFailed():
                self._check_failed(event)
            case events.ViewChanged():
                self._view_changed(event)
            case events.PodsListed():
                self._pods_listed(event)
            case events.NamespaceSeen():
                self._judge_again_where(self._verdicts.set_namespace(event.name, event.labels))
            case events.NamespaceGone():
                self._judge_again_where(self._verdicts.set_namespace(event.name, None))
            case events.WorkloadSeen():
                self._limiter.workloads.want(event.workload, event.replicas)
            case events.WorkloadGone():
                self._limiter.workloads.want(event.workload, None)
            case events.BudgetSeen():
                self._limiter.budgets.set(event.budget)
            case events.BudgetGone():
                self._limiter.budgets.drop(event.namespace, event.name)
            case events.GuardRestored():
                self._guard_restored(event)
            case events.GuardReset():
                if self._step.leading:
                    self._guards.ask_reset(event)
            case events.PoliciesChanged():
                self._policies_changed(event)
            case events.ProfileSeen():
                self._set_profile(event.profile.namespace, event.profile.name, event.profile)
            case events.ProfileGone():
                self._set_profile(event.namespace, event.name, None)
            case events.Synced():
                self._synced = True
                self._judge_all_again()
            case events.LeadershipChanged():
                self._leadership_changed(event)
            case events.Written():
                self._written(event)
            case _:
                assert_never(event)

    def wake_after(self, now: Instant) -> float | None:
        """Seconds until :class:`~.events.Woke` is needed; 0: at once, None: not before another event."""
        if not self._synced:
            return None
        if self._dirty or self._recount or self._draining.stale:
            return 0.0
        waits = [self._queues.next_in(now)]
        if self._step.leading:
            waits.append(self._evictees.reclaims.next_in(now))
            times = (self._evictees.deletions.next_at(), self._outbox.next_at())
            waits += [None if at is None else at - now.monotonic for at in times]
        if self._may_evict:
            waits.append(self._guards.next_in(now))
            waits.append(self._queues.next_release_in(now))
            waits.extend(self._evictions.next_in(now))
        delays = [wait for wait in waits if wait is not None]
        return max(0.0, min(delays)) if delays else None

    @property
    def _may_evict(self) -> bool:
        """Whether this process leads, and no stream is cut off."""
        return self._step.leading and not self._blind

    # -- nodes --------------------------------------------------------------------------------------------------

    def _see_node(self, node: Node, *, listed: bool = False) -> None:
        state = self._cluster.state(node.name)
        known = state.node
        if known is not None and not listed and node.resource_version < known.resource_version:
            return  # a direct read was ahead of the stream
        if known is not None and known.uid != node.uid:
            state = self._replace_node(state)
            known = None
        if state.is_heartbeat(node) and not listed:
            state.node = node
            return
        is_relabelled = known is None or known.labels != node.labels
        problem = state.update(node, self._step.now.wall, adopt=not self._step.leading, gap=listed)
        if is_relabelled:
            self._spread.relabel(node.name)
            self._evictees.ask_blocked_again(state)
        if problem:
            self._step.report(commands.UnreadableHistory(node.name, node.uid, problem))
        if self._synced:
            self._judge_node(state)

    def _replace_node(self, old: NodeState) -> NodeState:
        """Another node has the same name: what was known of the old one does not count."""
        self._forget_node(old.name)
        new = self._cluster.replace(old.name)
        new.check_wanted = old.check_wanted
        return new

    def _lose_node(self, name: str) -> None:
        state = self._cluster.nodes.get(name)
        if state is None:
            return
        self._evictees.cancel(state.pods)
        if state.pods:
            self._cluster.replace(name)
        else:
            del self._cluster.nodes[name]
        self._forget_node(name)
        self._spread.relabel(name)

    def _forget_node(self, name: str) -> None:
        self._mirroring.forget(name)
        self._outbox.forget(history_key(name))
        self._draining.forget(name)

    def _nodes_listed(self, event: events.NodesListed) -> None:
        for name in [name for name, state in self._cluster.nodes.items() if state.node and name not in event.names]:
            self._lose_node(name)
        self._freshness.listed(event.resource_version)

    def _node_checked(self, event: events.NodeChecked) -> None:
        state = self._cluster.nodes.get(event.name)
        if state is None or not state.check_wanted:
            return  # the node was deleted during the read: an old answer must not restore it
        if event.node is None:
            self._freshness.answered(event.name)
            # A node that was created again after the read began is not missing.
            if state.node is None or state.node.resource_version <= event.resource_version:
                self._lose_node(event.name)
            return
        self._see_node(event.node)
        state = self._cluster.nodes[event.name]
        state.checked_version = max(state.checked_version, event.resource_version)
        self._freshness.answered(event.name)

    def _check_failed(self, event: events.CheckFailed) -> None:
        first, _ = self._timings.write_failed
        self._freshness.answered(event.name, later(self._step.now.monotonic, first))

    def _view_changed(self, event: events.ViewChanged) -> None:
        if event.live:
            self._blind.pop(event.stream, None)
        else:
            self._blind[event.stream] = None

    # -- pods ---------------------------------------------------------------------------------------------------

    def _see_pod(self, pod: Pod) -> None:
        self._leave_other_node(pod)
        known = self._cluster.pod(pod.node, pod.uid)
        if known is not None and known.bound_at < pod.bound_at:
            # The object has its binding time in whole seconds; the time first observed may be more exact.
            pod = msgspec.structs.replace(pod, bound_at=known.bound_at)
        self._cluster.put(pod)
        if known is None:
            self._limiter.bounces.came(pod)
        self._count(pod, known)
        if known is not None:
            self._evictees.pod_changed(known, pod)
        if self._synced and pod.node not in self._dirty:
            self._judge_new_pod(self._cluster.nodes[pod.node], pod, arrives=known is None)

    def _leave_other_node(self, pod: Pod) -> None:
        """After a restore of etcd the pod may be bound to another node than before: its claims there end.

        A call in progress is for the pod, not for the node, and what follows from it applies here.
        """
        evictee = self._claims.evictees.get(pod.uid)
        if evictee is not None and evictee.node != pod.node:
            self._lose_pod(pod.uid, evictee.node)
            evictee.move(pod.node)

    def _count(self, pod: Pod, known: Pod | None) -> None:
        """Update the numbers of running pods by workload and topology domain."""
        if known is None:
            self._spread.came(pod)
        elif known.shared is not pod.shared:
            self._spread.changed(known, pod)
            if known.shared.owner != pod.shared.owner:
                self._limiter.workloads.gone(known, self._step.now.monotonic)
                known = None
        self._limiter.workloads.seen(pod, known)
        if self._limiter.departures.is_leaving(pod.uid):
            self._limiter.workloads.leave(pod)

    def _lose_pod(self, uid: str, node: str, until: float | None = None) -> None:
        self._limiter.departures.terminating(uid, node, until, self._step.now)
        known = self._cluster.remove(node, uid)
        if known is not None:
            self._limiter.gone(known, self._step.now)
            self._spread.gone(known)
        self._evictees.gone(uid)

    def _pods_listed(self, event: events.PodsListed) -> None:
        for state in list(self._cluster.nodes.values()):
            for uid in [uid for uid in state.pods if event.nodes.get(uid) != state.name]:
                self._lose_pod(uid, state.name)
                moved = self._cluster.pod(event.nodes.get(uid, ""), uid)
                if moved is not None:  # claims and limits know pods by UID: it arrives again, after the loss
                    self._lose_pod(uid, moved.node)
                    self._see_pod(moved)
        for uid, node in self._limiter.departures.uids():
            if event.nodes.get(uid) != node:  # the pod itself was lost when it began to terminate
                self._limiter.departures.terminating(uid, node, None, self._step.now)

    # -- policies, profiles, leadership -------------------------------------------------------------------------

    def _policies_changed(self, event: events.PoliciesChanged) -> None:
        self._verdicts.set_policies(event.policies)
        self._limiter.configure(self._verdicts.policies, self._step.now)
        self._guards.policies_changed(self._step.now)
        self._evictees.expect_all_again()
        self._evictions.refused = {}
        for state in self._cluster.nodes.values():
            state.policies = None
        self._judge_all_again()

    def _set_profile(self, namespace: str, name: str, profile: Profile | None) -> None:
        """Evaluate pods again whose tolerations changed; no pod is evicted before that is done."""
        changed = self._verdicts.set_profile(namespace, name, profile)
        if changed:
            how = "was deleted" if profile is None else "was created or changed"
            self._guards.profile_changed(f"TolerationProfile {namespace}/{name} {how}", self._step.now)
        self._judge_again_where(changed, judged=True)

    def _judge_again_where(self, changed: Collection[PodClass], *, judged: bool = False) -> None:
        """Pods of these classes may have other verdicts. No pod is evicted before they are evaluated again.

        ``judged``: only where a policy acts on a taint, since the same policies select them.
        """
        if not self._synced or not changed:
            return
        for state in self._cluster.nodes.values():
            here = any(one in changed and (verdicts or not judged) for one, verdicts in state.verdicts.items())
            if here or any(witness in changed for witness in state.witnesses.values()):
                self._dirty[state.name] = None

    def _judge_all_again(self) -> None:
        """Verdicts may have changed on all nodes: evaluate every node again, in slices."""
        if self._synced:
            self._dirty.update(dict.fromkeys(self._cluster.nodes))

    def _guard_restored(self, event: events.GuardRestored) -> None:
        if not self._step.leading or event.policy not in self._limiter.guards.by_policy:  # a leader has newer data
            self._limiter.guards.restore(event.policy, event.record, self._step.now)

    def _leadership_changed(self, event: events.LeadershipChanged) -> None:
        gained = event.leading and not self._step.leading
        self._step.leading = event.leading
        self._guards.leadership_changed()
        self._outbox.clear()
        if not gained:
            return
        self._limiter.rates.restart(self._step.now.monotonic)
        self._mirroring.restart()
        self._evictions.refused = {}
        for state in self._cluster.nodes.values():
            state.reported_invalid = {}
            state.degraded = False
        self._evictees.announce_again()
        self._judge_all_again()

    # -- verdicts -----------------------------------------------------------------------------------------------

    def _judge_node(self, state: NodeState) -> None:
        self._verdicts.select(state)
        state.verdicts, state.evicting = {}, {}
        first: TaintVerdict | None = None
        count = 0
        for pod in list(state.pods.values()):
            verdict = self._judge(state, pod)
            if verdict is not None:
                first = first or verdict
                count += 1
        self._report_node(state, first, count)
        self._mirroring.mirror(state, self._verdicts.policies)
        self._draining.judged(state)
        self._draining.count(state)
        self._save_history(state)

    def _judge_new_pod(self, state: NodeState, pod: Pod, *, arrives: bool) -> None:
        is_new_class = pod.shared not in state.evicting
        self._judge(state, pod, arrives=arrives)
        if not is_new_class or not state.verdicts[pod.shared]:
            return
        self._report_invalid(state)
        if state.evicting[pod.shared]:
            if self._draining.judged(state):
                self._save_history(state)
            self._draining.count(state)

    def _judge(self, state: NodeState, pod: Pod, *, arrives: bool = False) -> TaintVerdict | None:
        """Update the claims on a pod from the verdicts. Returns the first of these, if there is one."""
        evicting = state.evicting.get(pod.shared)
        if evicting is None:
            evicting = self._verdicts.evicting(state, pod.shared)
        wanted = claims(evicting, pod.bound_at) if evicting else ()
        self._evictees.decide(pod, wanted, arrives=arrives)
        return wanted[0][1] if wanted else None

    def _report_node(self, state: NodeState, first: TaintVerdict | None, count: int) -> None:
        node = state.node
        if node is None:
            return
        if first is not None and not state.degraded:
            self._step.report(commands.Degraded(node.name, node.uid, first.taint, first.policy, count))
        state.degraded = first is not None
        self._report_invalid(state)

    def _report_invalid(self, state: NodeState) -> None:
        node = state.node
        if node is None:
            return
        invalid = self._verdicts.invalid(state)
        for name, verdict in invalid.items():
            if state.reported_invalid.get(name) != verdict.taint.value:
                held = verdict.policy.timing.on_invalid_value is OnInvalidValue.HOLD
                self._step.report(commands.InvalidValue(node.name, node.uid, verdict.taint, verdict.policy, held))
        # Reported once for a value, though pods that cannot be compared with it come and go.
        values = {history_name(taint): taint.value for taint, _ in node.taints}
        standing = {name: value for name, value in state.reported_invalid.items() if values.get(name) == value}
        state.reported_invalid = standing | {name: verdict.taint.value for name, verdict in invalid.items()}

    def _save_history(self, state: NodeState) -> None:
        """Write the durable clock if it differs from what is stored: a restart must not move a deadline."""
        if state.node is None or not self._step.leading:
            return
        text = state.history_text()
        key = history_key(state.name)
        under_way = self._outbox.under_way(key)
        stored = under_way.text if isinstance(under_way, commands.SaveHistory) else state.node.history
        if text != stored:
            self._outbox.put(commands.SaveHistory(state.name, state.node.uid, text))
        else:
            self._outbox.withdraw(key)

    def _written(self, event: events.Written) -> None:
        if not self._outbox.answered(event):
            return
        match event.order:
            case commands.SaveGuard():
                self._guards.saved(event.order, event.outcome)
            case commands.SaveHistory() | commands.SaveLabels():
                self._stored(event.order, event.outcome)
            case commands.ClearGuardReset():
                self._guards.reset_taken_off(event.order, event.outcome)
            case _:
                assert_never(event.order)

    def _stored(self, order: commands.SaveHistory | commands.SaveLabels, outcome: events.WriteOutcome) -> None:
        """The node has what was written, even if the stream has not delivered it yet."""
        state = self._cluster.nodes.get(order.node)
        if state is None or state.node is None or state.node.uid != order.uid:
            return
        if outcome is not events.WriteOutcome.DONE:
            return
        if isinstance(order, commands.SaveHistory):
            state.node = msgspec.structs.replace(state.node, history=order.text)
            self._save_history(state)
        else:
            kept = {name: value for name, value in (state.node.labels | order.labels).items() if value is not None}
            state.node, state.policies = msgspec.structs.replace(state.node, labels=kept), None
            self._verdicts.select(state)
            self._mirroring.mirror(state, self._verdicts.policies)

    # -- acting -------------------------------------------------------------------------------------------------

    def _act(self) -> None:
        if not self._synced:
            return
        self._judge_dirty()
        self._make_ready()
        if self._step.leading:
            self._outbox.retry_due()
            self._evictees.let_time_pass(self._overall_rate)
        if not self._may_evict or self._dirty or self._recount or self._draining.stale:
            return
        self._guards.reset()
        self._guards.look()
        self._evictions.pull_freed()
        self._queues.release_due(self._step.now.monotonic)
        self._evictions.evict_due(self._slice_size)
        self._guards.save({lane.policy for lane in self._queues.ready_lanes()})

    def _make_ready(self) -> None:
        """Queue the claims that are due; those that the other clock still delays continue to wait."""
        now = self._step.now
        for _ in range(self._slice_size):
            key = self._queues.pop_due(now)
            if key is None:
                return
            claim = self._claims.by_key[key]
            pod = self._cluster.pod(claim.node, claim.uid)
            if claim.phase is Phase.LEAVING:
                self._judge_again(claim.uid)
            elif claim.due_at > now.wall:
                self._queues.wait(claim)
            elif claim.not_before > now.monotonic:
                self._queues.delay(claim)
            elif pod is not None:
                self._queues.make_ready(claim, pod, now)

    def _judge_again(self, uid: str) -> None:
        """The eviction was accepted long ago and the watch still shows the pod: evaluate it as it is now."""
        evictee = self._claims.evictees[uid]
        self._evictees.end_all(evictee)
        pod = self._cluster.pod(evictee.node, uid)
        if pod is not None:
            self._judge(self._cluster.nodes[evictee.node], pod)

    def _judge_dirty(self) -> None:
        budget = self._slice_size
        while self._dirty and budget > 0:
            name = next(iter(self._dirty))
            del self._dirty[name]
            state = self._cluster.nodes.get(name)
            if state is not None:
                self._judge_node(state)
                budget -= len(state.pods) + 1
        if self._dirty:
            return
        stale, self._draining.stale = self._draining.stale, {}
        if stale:
            taints = {name for _, name in stale}
            for name, state in self._cluster.nodes.items():
                if not taints.isdisjoint(state.histories):
                    self._recount[name] = None
        while self._recount and budget > 0:
            name = next(iter(self._recount))
            del self._recount[name]
            state = self._cluster.nodes.get(name)
            if state is not None:
                self._draining.count(state)
                budget -= 1
