"""Evaluation of pods: verdicts create, update and withdraw claims, and guards are informed about them."""

from collections.abc import Iterable

from taintwarden.engine import commands
from taintwarden.engine.evaluate import Grounds
from taintwarden.engine.guard import Due, Guard
from taintwarden.engine.limits.protocol import Replacement
from taintwarden.engine.machine.backlog import Backlog
from taintwarden.engine.machine.claims import QUEUED, Claim, Evictee, Phase
from taintwarden.engine.machine.cluster import NodeState, history_name
from taintwarden.engine.machine.hard_deadlines import GRACE_CUT, NOT_EVICTED, HardDeadlines
from taintwarden.engine.machine.outbox import Outbox, history_key
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import MonotonicTime, Pod, later
from taintwarden.engine.policy import Method, Mode, OnInvalidValue, Policy


class Judging:
    """Creates claims from verdicts, updates and ends them.

    Args:
        world: the state.
        outbox: writes histories.
        backlog: pods that wait to be evaluated again.
        hard_deadlines: pods whose node is removed at a known time.

    """

    def __init__(self, world: World, outbox: Outbox, backlog: Backlog, hard_deadlines: HardDeadlines) -> None:
        self._world = world
        self._outbox = outbox
        self._backlog = backlog
        self._hard_deadlines = hard_deadlines

    # -- backlog --------------------------------------------------------------------------------------------------

    def evaluate_backlog(self, most: int) -> None:
        """Evaluate about ``most`` waiting pods: of whole nodes, then as a source asks, then of namespaces in turn."""
        self._world.limiter.guards.drop_removed(5 * most)
        source, waiting = self._world.source, self._backlog.nodes
        while waiting and most > 0:
            name = next(iter(waiting))
            del waiting[name]
            if source is not None:
                source.catch_up(name)
            state = self._world.cluster.nodes.get(name)
            if state is not None:
                self.evaluate_node(state)
                most -= len(state.pods) + 1
        if source is not None:
            most = source.advance(most)
        each = max(1, most // max(1, len(self._backlog.shares)))
        for namespace in self._backlog.ready_namespaces():
            if most <= 0:
                break
            most -= self._evaluate_share(namespace, each)

    def _evaluate_share(self, namespace: str, most: int) -> int:
        """Evaluate about ``most`` waiting pods of a namespace. Returns about how many were evaluated."""
        world, nodes, done = self._world, self._backlog.shares.pop(namespace), 0
        while nodes and done < most:
            name = next(iter(nodes))
            del nodes[name]
            state = world.cluster.nodes.get(name)
            pods = [pod for pod in state.pods.values() if pod.namespace == namespace] if state is not None else []
            done += len(pods) or 1
            if state is not None:
                for pod in pods:
                    state.class_verdicts.pop(pod.shared, None)
                state.staying = None
                for pod in pods:
                    self.update_claims(state, pod)
                if namespace in self._backlog.relabelled:
                    world.verdicts.recount_pods(state)
                    done += len(state.pods)
                self._finish_node(state)
        self._backlog.put_back(namespace, nodes)
        return done

    # -- nodes ----------------------------------------------------------------------------------------------------

    def evaluate_node(self, state: NodeState, *, may_wait: bool = False) -> None:
        """Evaluate all pods of a node, including pods that terminate. ``may_wait``: later if the node is restless."""
        if not self._world.synced:
            return
        verdicts = self._world.verdicts
        self._world.note_change(state.name)
        if state.node is not None and verdicts.features.zone_health:
            self._world.limiter.zones.count_node(state.name, state.labels, verdicts.unhealthy(state))
        verdicts.recount_pods(state)
        state.forget_verdicts()
        if may_wait and state.is_restless(self._world.now.monotonic):
            self._backlog.add_pods(state)
        else:
            for pod in list(state.pods.values()):
                self.update_claims(state, pod)
        self.evaluate_departures(state.name)
        self._finish_node(state)

    def evaluate_departures(self, node: str) -> None:
        """Record the policies that evict the terminating pods of a node.

        Taints of devices are kept only for running pods. They count only for a pod that was known while it ran.
        """
        world, departures = self._world, self._world.limiter.departures
        state = world.cluster.nodes.get(node)
        if state is None or not world.synced:
            return
        for departure in departures.of_node(node):
            grounds = world.verdicts.compute(state, departure.pod.shared)[1]
            policies = (ground.policy for ground in grounds)
            departures.leave_by(departure, [policy.name for policy in policies if policy.mode is Mode.ENFORCE])

    def _finish_node(self, state: NodeState) -> None:
        self._report_invalid(state)
        self._save_history(state)

    def evaluate_pod(self, state: NodeState, pod: Pod) -> None:
        """Evaluate a pod that is new or has changed."""
        if not self._world.synced or pod.node in self._backlog.nodes:
            return
        is_new_class = pod.shared not in state.class_verdicts
        self.update_claims(state, pod)
        if is_new_class and state.class_verdicts[pod.shared][0]:
            self._finish_node(state)

    def _report_invalid(self, state: NodeState) -> None:
        node = state.node
        if node is None:
            return
        invalid = self._world.verdicts.invalid_values(state)
        for name, verdict in invalid.items():
            if state.reported_invalid.get(name) != verdict.taint.value:
                held = verdict.policy.timing.on_invalid_value is OnInvalidValue.HOLD
                self._world.report(commands.InvalidValue(node.name, node.uid, verdict, held))
        if not invalid and not state.reported_invalid:
            return
        # A value is reported once, even if pods that cannot compare it come and go.
        values = {history_name(taint): taint.value for taint, _ in state.taints()}
        standing = {name: value for name, value in state.reported_invalid.items() if values.get(name) == value}
        state.reported_invalid = standing | {name: verdict.taint.value for name, verdict in invalid.items()}

    def _save_history(self, state: NodeState) -> None:
        """Write the taint history of a node if it differs from the stored one. A restart must not move a deadline."""
        if state.node is None or not self._world.leading:
            return
        text, key = state.history_text(), history_key(state.name)
        assumed = self._outbox.assumed_stored(key, state.node.resource_version)
        stored = assumed.text if isinstance(assumed, commands.SaveHistory) else state.node.history
        if text != stored:
            self._outbox.put(commands.SaveHistory(state.name, state.node.uid, text))
        else:
            self._outbox.withdraw(key)

    # -- pods -----------------------------------------------------------------------------------------------------

    def update_claims(self, state: NodeState, pod: Pod) -> None:
        """Update the claims on a pod from the verdicts."""
        _, grounds = state.class_verdicts.get(pod.shared) or self._world.verdicts.of(state, pod.shared)
        claims = self._world.claims
        if (evictee := claims.evictees.get(pod.uid)) is not None:
            if evictee.node != pod.node:  # a restore of etcd bound it again: both are known until the list ends
                return
            acting = [(ground.policy.name, ground.policy.uid) for ground in grounds]
            for claim in claims.of(pod.uid):
                if (claim.policy.name, claim.policy.uid) not in acting:  # another policy of its name inherits nothing
                    self._withdraw(claim)
        for ground in grounds:
            self._update_claim(claims.evictee(pod), pod, ground)
        if self._world.verdicts.features.reclaim and (pod.shared.do_not_evict or pod.shared.do_not_disrupt):
            self._hard_deadlines.report_ending(state, pod, grounds)

    def _update_claim(self, evictee: Evictee, pod: Pod, grounds: Grounds) -> None:
        policy, now, guard = grounds.policy, self._world.now, self._guard(grounds.policy)
        # The guard has to count the complete wave before an eviction that is decided now.
        settles_at = now.monotonic if guard is None else later(now.monotonic, guard.settings.settle_seconds)
        claim = evictee.claim_of(policy.name)
        is_new = claim is None
        if claim is None:
            claim = Claim.of(pod, grounds, settles_at)
            self._world.claims.add(evictee, claim)
            self._world.note_change(claim.node)
            self._world.queues.wait(claim)
        else:
            self._apply_grounds(claim, grounds, pod, settles_at)
        if policy.reclaim is not None:
            self._hard_deadlines.schedule(claim, is_new=is_new)
        self.expect(claim, pod)
        if claim.announced_in != self._world.term and claim.due_at - now.wall > self._world.timings.announced_ahead:
            self._announce(claim, pod)

    def _apply_grounds(self, claim: Claim, grounds: Grounds, pod: Pod, settles_at: MonotonicTime) -> None:
        before, was_announced = claim.grounds, claim.was_announced
        changed = claim.update_grounds(grounds, pod, settles_at)
        if grounds.policy.reclaim is None and before.policy.reclaim is not None:
            self._hard_deadlines.cancel(claim)
        if claim.phase not in (*QUEUED, Phase.REHEARSED, Phase.PAUSED):
            return
        # The policy may have been paused during a call that failed now.
        if changed or claim.initial_phase not in (Phase.WAITING, claim.phase):
            self._world.queues.wait(claim)
            if claim.initial_phase is Phase.PAUSED:
                claim.pause()
                if was_announced:
                    self._report_cancelled(claim, pod)
        elif claim.phase is Phase.BLOCKED and before.verdicts != grounds.verdicts:
            self._world.queues.requeue(claim)

    def pod_changed(self, before: Pod, pod: Pod) -> None:
        """Update the claims on a pod that has changed: its position in queues, and what limits answer, may change."""
        world = self._world
        for claim in world.claims.of(pod.uid):
            claim.pod_changed(world.limiter.budgets.refuses_since(before), world.now.monotonic)
            if before.shared is not pod.shared and claim.phase in QUEUED:
                world.queues.wait(claim)
            elif before.ready != pod.ready and claim.phase is Phase.BLOCKED:
                world.queues.requeue(claim)

    def _announce(self, claim: Claim, pod: Pod) -> None:
        if self._world.leading and claim.initial_phase is Phase.WAITING:
            claim.announced_in = self._world.term
            self._world.report(commands.Scheduled(pod, claim.verdict, claim.due_at))

    # -- expected evictions ---------------------------------------------------------------------------------------

    def expect(self, claim: Claim, pod: Pod) -> None:
        """Have the guard of the policy count the pod, unless a call is in progress or was accepted."""
        guard = self._guard(claim.policy)
        if guard is None or self._is_being_evicted(pod):
            return
        budget = None if self._ignores_budgets(claim, pod) else self._world.limiter.budgets.key_of(pod)
        guard.expect(Due(pod.uid, claim.due_at, pod.namespace, pod.node, budget), self._world.now)

    def _ignores_budgets(self, claim: Claim, pod: Pod) -> bool:
        """Return True if no budget keeps the pod, since it is deleted or its Deployment replaces it."""
        return self.deletes(claim, pod) or self.replacement(claim, pod) is not None

    def replacement(self, claim: Claim, pod: Pod) -> Replacement | None:
        """Deployment that is or was asked for a replacement of the pod; None if the pod is evicted."""
        if claim.policy.eviction.replace_first is None:
            return None
        return self._world.limiter.replacements.of(claim.grounds, pod, self._world.now)

    def deletes(self, claim: Claim, pod: Pod) -> bool:
        """True if the pod is deleted in spite of budgets: its policy always does so, or one blocked it too long."""
        if claim.policy.eviction.method is not Method.EVICT_THEN_DELETE:
            return claim.policy.eviction.method is Method.DELETE
        at = self.deleted_at(claim, pod)
        return at is not None and self._world.now.monotonic >= at

    def deleted_at(self, claim: Claim, pod: Pod) -> MonotonicTime | None:
        """Time at which a pod that its budgets block is deleted instead; None if it is not.

        If its node will be removed, that is early enough for the pod to stop gracefully, or at once if it is too late.
        """
        settings, now, refused_at = claim.policy.eviction, self._world.now, claim.budget_refused_at
        since = self._world.limiter.budgets.refuses_since(pod)
        if settings.method is not Method.EVICT_THEN_DELETE or since is None or refused_at is None:
            return None
        blocked_since = max(since, refused_at, self._world.led_since, now.monotonic_at(claim.due_at))
        at, hard_at = later(blocked_since, settings.pdb_timeout_seconds), claim.grounds.hard_at
        if hard_at is None:
            return at
        last = later(now.monotonic_at(hard_at), -claim.grace_seconds(pod))
        return min(at, max(blocked_since, last))

    def join_wave(self, claim: Claim, pod: Pod) -> bool:
        """Have the guard count a pod that no budget keeps any more. Returns True if it did not count it before.

        The claim then waits until its wave is complete: budgets may have freed other pods at the same time.
        """
        guard = self._guard(claim.policy)
        known = None if guard is None else guard.wave.near.get(claim.uid)
        if guard is None or known is None or not known.budget or not self._ignores_budgets(claim, pod):
            return False
        claim.delay_until(later(self._world.now.monotonic, guard.settings.settle_seconds))
        self.expect(claim, pod)
        return True

    def _is_being_evicted(self, pod: Pod) -> bool:
        """True if a call is in progress or was accepted. A call that failed may be repeated for another policy."""
        evictee = self._world.claims.evictees.get(pod.uid)
        return evictee is not None and evictee.call is not None

    # -- end of claims --------------------------------------------------------------------------------------------

    def _withdraw(self, claim: Claim, *, node_gone: bool = False) -> None:
        """End a claim whose policy no longer evicts the pod. An eviction that was expected is reported as cancelled.

        A claim with a call remains: it is checked before the call is sent, and again when the call is answered.
        """
        if claim.phase in (Phase.ACCEPTED, Phase.IN_FLIGHT):
            return
        pod, was_announced = self._world.cluster.nodes[claim.node].pods[claim.uid], claim.was_announced
        self.end_claim(claim)
        if was_announced:
            self._report_cancelled(claim, pod, node_gone=node_gone)

    def _report_cancelled(self, claim: Claim, pod: Pod, *, node_gone: bool = False) -> None:
        """Report a cancelled eviction, unless the pod still has to leave because of another policy's claim."""
        if not any(other.is_enforced for other in self._world.claims.of(claim.uid)):
            self._world.report(commands.Cancelled(pod, claim.verdict, node_gone))

    def node_gone(self, pods: Iterable[Pod]) -> None:
        """End the claims on pods whose node is gone: no taint evicts them. Report missed hard deadlines."""
        for pod in pods:
            for claim in self._world.claims.of(pod.uid):
                self._hard_deadlines.report_missed(claim, pod, NOT_EVICTED)
                self._withdraw(claim, node_gone=True)

    def pod_gone(self, uid: str) -> None:
        """End the claims on a pod that is gone. A claim with a call in progress ends with its answer."""
        world = self._world
        self.report_leaving(uid)
        evictee = world.claims.evictees.get(uid)
        if evictee is None:
            return
        evictee.missing_until = None
        for claim in evictee.claims:
            if claim.phase is not Phase.IN_FLIGHT:
                self._close(claim)
        world.claims.drop_if_idle(uid)

    def report_leaving(self, uid: str) -> bool:
        """Report a pod that is seen to leave as evicted, if a call evicted it. Returns True if so."""
        world = self._world
        called = world.evictions.note_leaving(uid, world.now)
        if called is None:
            return False
        order, lateness = called.order, max(0.0, world.now.wall - called.due_at)
        world.report(commands.Evicted(order.pod, order.verdict, lateness, order.past_budgets))
        is_cut = order.grace_period_seconds != order.verdict.policy.eviction.grace_period_seconds
        claim = world.claims.get(f"{uid}/{order.verdict.policy.name}") if is_cut else None
        if claim is not None:
            self._hard_deadlines.report_missed(claim, order.pod, GRACE_CUT)
        return True

    def end_claim(self, claim: Claim) -> None:
        """End a claim. If it was the last one on its pod, no eviction of the pod is in progress any more."""
        self._close(claim)
        if claim.uid not in self._world.claims.evictees:
            self.count_as_staying(claim.node, claim.uid)

    def end_claims(self, evictee: Evictee) -> None:
        """End all claims on the pod."""
        for claim in evictee.claims:
            self.end_claim(claim)

    def _close(self, claim: Claim) -> None:
        world = self._world
        evictee = world.claims.evictees[claim.uid]
        if evictee.call is not None and evictee.call.claim is claim:
            evictee.call = None
        if claim.policy.reclaim is not None:
            self._hard_deadlines.cancel(claim)
        if (guard := self._guard(claim.policy)) is not None:
            guard.forget(claim.uid)
        world.queues.move(claim, Phase.ENDED)
        world.claims.remove(claim)

    def count_as_staying(self, node: str, uid: str) -> None:
        """Tell limits, and the topology counts if the pod still exists, that no eviction of it is in progress."""
        world = self._world
        pod = world.cluster.pod(node, uid)
        world.limiter.stay(uid)
        if pod is not None:
            world.spread.stay(pod)

    def _guard(self, policy: Policy) -> Guard | None:
        return self._world.limiter.guards.by_policy.get(policy.name)

    # -- validity -------------------------------------------------------------------------------------------------

    def is_still_valid(self, claim: Claim) -> bool:
        """True if the policy of a claim still evicts its pod in the current state, and the pod is due."""
        pod = self._world.cluster.pod(claim.node, claim.uid)
        if pod is None or pod.node in self._backlog.nodes or self._backlog.pending(pod):
            return False
        grounds = self._world.grounds_of(claim)
        if grounds is None or grounds.policy.mode is not Mode.ENFORCE:
            return False
        return grounds.first(pod.bound_at)[0] <= self._world.now.wall
