"""The machine, which makes every decision. ``step(event, now)`` changes the state and returns commands.

Events from outside only change what is known and when pods are due. The machine acts on :class:`~..events.Tick`, at
its own pace and in slices, so that a wave never stalls the loop. Its main parts, in the order of the data flow:

================== ======================================================================================
``world``          the state that all parts share
``intake``         updates of the known nodes, pods and policies by what streams deliver
``source``         interfaces of a source of taints besides those of nodes, such as that of devices
``backlog``        pods that wait to be evaluated again
``judging``        evaluation: verdicts create, update and withdraw *claims*, each of one policy on one pod
``hard_deadlines`` pods whose node is removed at a known time
``refusals``       reasons why due pods wait
``queues``         queues of claims, between the deadline and the end of the pod
``evictions``      calls until the pods are seen to leave
``dispatcher``     dispatch: calls for claims that all limits admit, and their outcomes
``placing``        nodes that may lose pods
``guarding``       guards: limits on the number of pods that are evicted
``outbox``         writes of histories, guard records and places
``conditions``     the condition of nodes that says whether they are drained
``view``           read access for other packages
================== ======================================================================================
"""

from collections.abc import Iterable
from typing import assert_never

from taintwarden.engine import commands, events
from taintwarden.engine.events import Event
from taintwarden.engine.machine.backlog import Backlog
from taintwarden.engine.machine.conditions import DrainedConditions
from taintwarden.engine.machine.dispatcher import Dispatcher
from taintwarden.engine.machine.freshness import Freshness
from taintwarden.engine.machine.guarding import Guarding
from taintwarden.engine.machine.hard_deadlines import HardDeadlines
from taintwarden.engine.machine.intake import Intake, NewSource
from taintwarden.engine.machine.judging import Judging
from taintwarden.engine.machine.outbox import Outbox
from taintwarden.engine.machine.placing import Placing
from taintwarden.engine.machine.view import View
from taintwarden.engine.machine.world import Timings, World
from taintwarden.engine.model import Gates, Instant, StoredPod


class Machine:
    """Events in, commands out.

    Args:
        gates: the operators that may match at all.
        overall_rate: maximum evictions per second over all policies; None for no limit.
        max_in_flight: maximum number of eviction calls in progress.
        slice_size: number of pods that one step evaluates before it returns to the loop.
        timings: the delays of the machine.
        source: creates the source of taints besides those of nodes; None: there is none.
        drained_condition: True if nodes get the condition that says whether they are drained.

    """

    def __init__(
        self,
        *,
        gates: Gates | None = None,
        overall_rate: float | None = None,
        max_in_flight: int = 64,
        slice_size: int = 100,
        timings: Timings | None = None,
        source: NewSource | None = None,
        drained_condition: bool = False,
    ) -> None:
        self._slice_size = slice_size
        self._world = world = World(gates or Gates(), overall_rate, max_in_flight, timings or Timings())
        self._outbox = Outbox(world)
        self._freshness = Freshness(world)
        self._backlog = Backlog(world)
        self._hard_deadlines = HardDeadlines(world)
        self._judging = Judging(world, self._outbox, self._backlog, self._hard_deadlines)
        self._dispatcher = Dispatcher(world, self._judging, self._backlog, self._freshness)
        self._guarding = Guarding(world, self._outbox)
        self._placing = Placing(world, self._outbox)
        self._drained = DrainedConditions(world, self._backlog) if drained_condition else None
        world.changed_nodes = {} if drained_condition else None
        self._intake = Intake(
            world, self._judging, self._backlog, self._freshness, self._outbox, self._guarding, source
        )
        self.view = View(world)

    def step(self, event: Event, now: Instant) -> list[commands.Command]:
        """Process one event at ``now``. The caller carries out the commands in order."""
        self._world.now = now
        self._world.commands = []
        self._process(event)
        limiter = self._world.limiter
        if limiter.freed.keys or (limiter.replacements.changed and self._world.may_evict):
            self._dispatcher.release_freed()
        return self._world.commands

    def is_still_valid(self, order: commands.Order, now: Instant) -> bool:
        """Return True if an issued order should still be carried out. Ask immediately before its bytes are sent.

        Reads are always valid. Other orders are valid in the term that issued them, while their reason lasts.
        """
        self._world.now = now
        match order:
            case commands.Evict():
                return self._dispatcher.is_still_valid(order)
            case commands.CheckNode() | commands.CheckPod() | commands.FindWriter():
                return True
            case commands.SaveCondition():
                return self._drained is not None and self._drained.is_still_valid(order)
            case _:
                return self._outbox.is_still_valid(order)

    def knows_pods(self, order: commands.SaveCondition, pods: Iterable[StoredPod]) -> bool:
        """True if the streams have delivered these pods of the order's node in the state that was read."""
        return self._drained is not None and self._drained.has_seen(order, pods)

    def _process(self, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one case for each kind of event
        limiter, intake = self._world.limiter, self._intake
        match event:
            case events.PodSeen(pod):
                intake.update_pod(pod)
            case events.PodsSeen(pods):
                for pod in pods:
                    intake.update_pod(pod)
            case events.PodGone(uid, node, until, pod):
                intake.remove_pod(uid, node, until, pod)
            case events.Tick():
                self._act()
            case events.Settled():
                self._dispatcher.call_ended(event)
            case events.NodeSeen(node, listed):
                intake.update_node(node, listed=listed)
            case events.NodeGone(name):
                intake.remove_node(name)
            case events.NodeUnreadable(name):
                intake.node_unreadable(name)
            case events.NodesListed():
                intake.nodes_listed(event)
            case events.NodesReached(version):
                self._freshness.stream_reached(version)
            case events.NodeChecked(name, version, pods_version):
                self._freshness.read_answered(name, version, pods_version)
            case events.PodChecked(uid, runs):
                self._dispatcher.pod_checked(uid, runs=runs)
            case events.ViewChanged(stream, live):
                if live:
                    self._world.blind.pop(stream, None)
                else:
                    self._world.blind.setdefault(stream, self._world.now.wall)
            case events.SourceEvent():
                intake.process_source_event(event)
            case events.PodsListed():
                intake.pods_listed(event)
            case events.NamespaceSeen(name, labels):
                intake.set_namespace(name, labels)
            case events.WorkloadSeen(workload, replicas, labels, revision):
                limiter.workloads.set_wanted(workload, replicas, labels)
                limiter.replacements.set_revision(workload, revision)
            case events.DeploymentSeen(deployment):
                limiter.replacements.put(deployment)
            case events.DeploymentGone(namespace, uid):
                limiter.replacements.drop(namespace, uid)
            case events.DeploymentsKnown(is_known, problem):
                limiter.replacements.set_known(problem, self._world.now, is_known=is_known)
            case events.BudgetSeen(budget):
                if limiter.budgets.set_budget(budget, self._world.now.monotonic):
                    self._backlog.add_namespace(budget.namespace)
            case events.BudgetGone(namespace, name):
                limiter.budgets.drop_budget(namespace, name)
                self._backlog.add_namespace(namespace)
            case events.GuardRestored(policy, record):
                if not self._world.leading or policy not in limiter.guards.policies:  # a leader has newer data
                    limiter.guards.keep(policy, record)
            case events.PlacesRestored(policy, places):
                if not self._world.leading or policy not in limiter.places.by_policy:
                    limiter.places.keep(policy, places)
            case events.GuardReset():
                if self._world.leading:
                    self._guarding.remove_reset_request(event.policy)
            case events.WriterFound(order, writer):
                self._guarding.add_writer(order, writer)
            case events.PoliciesChanged():
                intake.policies_changed(event)
            case events.ProfileSeen(profile):
                intake.set_profile(profile.namespace, profile.name, profile)
            case events.ProfileGone(namespace, name):
                intake.set_profile(namespace, name, None)
            case events.Synced():
                self._world.synced = True
                if self._world.source is not None:
                    self._world.source.recheck_all()
                self._backlog.add_all()
            case events.LeadershipChanged():
                self._leadership_changed(event)
            case events.LeaseRenewal(succeeded):
                limiter.calls.note_renewal(self._world.now.monotonic, succeeded=succeeded)
            case events.Written():
                self._written(event)
            case _:
                assert_never(event)

    def wake_after(self, now: Instant) -> float | None:
        """Seconds until :class:`~..events.Tick` is needed; 0: at once; None: not before another event."""
        if not self._world.synced:
            return None
        waits = [self._backlog.next_in(now), self._world.queues.next_in(now)]
        if self._world.leading:
            waits.append(self._hard_deadlines.next_in(now) if self._world.verdicts.features.reclaim else None)
            retry_at = self._outbox.next_at()
            waits.append(None if retry_at is None else retry_at - now.monotonic)
            waits.append(0.0 if self._guarding.resets else None)
        if self._world.may_evict:
            if self._is_guarded:
                waits.append(self._guarding.next_in(now))
            if self._has_places:
                waits.append(self._placing.next_in(now))
            if self._drained is not None:
                waits.append(self._drained.next_in(now))
            waits.append(self._world.queues.next_release_in(now))
            waits.extend(self._dispatcher.next_in(now))
        delays = [wait for wait in waits if wait is not None]
        return max(0.0, min(delays)) if delays else None

    def _act(self) -> None:
        world, most = self._world, self._slice_size
        if not world.synced:
            return
        self._judging.evaluate_backlog(most)
        self._dispatcher.queue_due_claims(most)
        if world.leading:
            self._outbox.retry_due()
            if world.verdicts.features.reclaim:
                self._hard_deadlines.report_due(most)
        if self._guarding.resets and world.leading and not self._backlog.nodes:
            self._guarding.release_held()  # also while a stream is cut off: no pod that comes later is among them
        if not world.may_evict or self._backlog.nodes:
            return
        if self._is_guarded:
            self._guarding.check_guards(most)
        if self._has_places:
            self._placing.check_places()
        self._dispatcher.process_time()
        self._dispatcher.release_freed()
        world.queues.release_due(world.now.monotonic)
        ready_in = world.queues.next_in(world.now)
        if ready_in is None or ready_in > 0:  # all due claims are in their lanes, so that turns are fair
            self._dispatcher.evict_due(most)
        if self._is_guarded:
            self._guarding.save_records()
        if self._has_places:
            self._placing.save_places()
        if self._drained is not None:
            self._drained.act()

    @property
    def _is_guarded(self) -> bool:
        """True if a policy has a guard."""
        return bool(self._world.limiter.guards.by_policy)

    @property
    def _has_places(self) -> bool:
        """True if a policy limits how many nodes lose pods at once."""
        return bool(self._world.limiter.places.by_policy)

    def _leadership_changed(self, event: events.LeadershipChanged) -> None:
        world = self._world
        gained = event.leading and not world.leading
        world.leading, world.term = event.leading, event.term
        self._guarding.leadership_changed()
        self._outbox.clear()
        if self._drained is not None:
            self._drained.clear()
        if not gained:
            return
        world.led_since = world.now.monotonic
        world.limiter.rates.restart(world.now.monotonic)
        for lane in world.limiter.calls.forget_failures():
            world.queues.update_turns(lane)
        world.limiter.guards.restore(world.now)
        world.limiter.places.restart()
        world.evictions.restart()
        for state in world.cluster.nodes.values():
            state.reported_invalid = {}
        self._backlog.add_all()

    def _written(self, event: events.Written) -> None:
        if isinstance(event.order, commands.SaveCondition) and self._drained is not None:
            self._drained.answered(event.order, event)
        if not self._outbox.write_ended(event):
            return
        match event.order:  # not recorded here: a history, which counts when the stream delivers it
            case commands.SaveGuard():
                self._guarding.record_saved(event.order, event)
            case commands.SavePlaces():
                self._placing.places_saved(event.order, event.outcome)
            case commands.ClearGuardReset():
                self._guarding.reset_cleared(event.order, event.outcome)
            case commands.SaveHistory(node) if event.outcome is events.WriteOutcome.DONE:
                self._compare_again(node, event.version)

    def _compare_again(self, node: str, version: int) -> None:
        """Queue a node for evaluation if the stream has delivered a later version than the one written.

        Another client has changed the node since the write. Until the write ended, evaluations took its history as the
        stored one, and the next event of the node may be minutes away.
        """
        state = self._world.cluster.nodes.get(node)
        if state is not None and state.node is not None and 0 <= version < state.node.resource_version:
            self._backlog.add_nodes([node])
