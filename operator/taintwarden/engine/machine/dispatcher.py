"""Dispatch of evictions: issues calls as limits and free slots admit, and processes the API server's answers."""

import math
from collections.abc import Iterator

from msgspec import structs

from taintwarden.engine import commands, events, rfc3339
from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.limits import EvictionRequest, Refusal, Settlement
from taintwarden.engine.limits.protocol import Replacement
from taintwarden.engine.limits.refusal import BOUNCE, BUDGET, FAILING, GUARD, VIEW, RefusalScope
from taintwarden.engine.machine.backlog import Backlog
from taintwarden.engine.machine.claims import Call, Claim, Evictee, Phase, retry_delay
from taintwarden.engine.machine.freshness import Freshness
from taintwarden.engine.machine.judging import Judging
from taintwarden.engine.machine.refusals import LaneGroup
from taintwarden.engine.machine.source import BLIND_KEY
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Deployment, Instant, MonotonicTime, Pod, later
from taintwarden.engine.outcomes import OUTCOMES, POD_SECONDS, Outcome
from taintwarden.engine.policy import Mode

NOT_EVALUATED = "changes that concern the pod are not evaluated yet"
BEING_EVICTED = "another policy evicts the pod"
LONG_SECONDS = 10.0
"""Maximum seconds of a refusal during which a pod keeps its reservation, such as while it waits for a token."""
NO_DEVICES = "a stream about devices is disconnected"
MAX_CONFLICTS = 10
"""Maximum calls that name the version of a pod that is not Ready. A pod that changes all the time would stay otherwise.
"""


class Dispatcher:
    """Issues calls for due claims, and processes refusals and outcomes.

    Args:
        world: the state.
        judging: evaluates pods, and checks that decisions are still valid.
        backlog: pods that wait to be evaluated again.
        freshness: checks that the data on a pod's node is new enough.

    """

    def __init__(self, world: World, judging: Judging, backlog: Backlog, freshness: Freshness) -> None:
        self._world = world
        self._judging = judging
        self._backlog = backlog
        self._freshness = freshness
        self._missing: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        """UIDs of pods that count as missing without a call in progress, by the time until which they do."""

    # -- time -----------------------------------------------------------------------------------------------------

    def next_in(self, now: Instant) -> Iterator[float]:
        """Yield seconds until a policy may be admitted, a call becomes slow, or a pod no longer counts as missing."""
        slow_at = self._world.limiter.calls.next_slow_at()
        for at in (slow_at, self._missing.next_at()):
            if at is not None:
                yield at - now.monotonic
        for group in self._world.queues.groups():
            refusal = self._world.refusals.of_policy(group)
            if refusal is None:
                yield 0.0
            elif refusal.until is not None:
                yield refusal.until - now.monotonic

    def queue_due_claims(self, most: int) -> None:
        """Move claims whose wait is over into lanes, or into another wait. Read pods whose evictions were accepted."""
        now, queues, claims = self._world.now, self._world.queues, self._world.claims
        for _ in range(most):
            key = queues.pop_due(now)
            if key is None:
                return
            claim = claims.get(key)
            assert claim is not None  # noqa: S101 - an ended claim is in no queue
            if claim.phase is Phase.ACCEPTED:
                self._read_pod(claim)
            elif claim.due_at > now.wall:
                queues.wait(claim)
            elif claim.retry_at > max(claim.settles_at, now.monotonic):
                queues.back_off(claim)
            elif claim.settles_at > now.monotonic:
                queues.delay(claim)
            else:
                is_released = self._world.is_released(claim.policy.name, claim.uid)
                pod = self._world.cluster.nodes[claim.node].pods[claim.uid]
                queues.make_ready(claim, pod, now, is_released=is_released)

    def process_time(self) -> None:
        """Process what only time has changed: slow calls, and pods that count as missing."""
        now = self._world.now.monotonic
        for lane in self._world.limiter.calls.process_time(now):
            self._world.queues.update_turns(lane)
        while (uid := self._missing.pop_due(now)) is not None:
            self._stop_missing(uid)

    def _count_missing(self, evictee: Evictee, until: MonotonicTime) -> None:
        """Count a pod without a call in progress as missing from its workload until this time."""
        evictee.missing_until = until
        self._missing.schedule(evictee.uid, until)

    def _stop_missing(self, uid: str) -> None:
        """Stop counting a pod as missing whose call has had no effect in time.

        A later call, whose end would do so, may never be made: the policy may be paused, or a limit may hold the pod.
        """
        evictee = self._world.claims.evictees.get(uid)
        if evictee is not None and evictee.missing_until is not None:
            evictee.missing_until = None
            if evictee.call is None:
                self._judging.count_as_staying(evictee.node, uid)
            self._world.claims.drop_if_idle(uid)

    def release_freed(self) -> None:
        """Release claims whose limits may admit them now."""
        if self._world.limiter.replacements.changed:
            self._world.limiter.replacements.retry_changed()
        while keys := self._world.limiter.freed.take():
            for key in keys:
                self._world.queues.release(key)
                self._world.refusals.free_policies(key)

    # -- evicting -------------------------------------------------------------------------------------------------

    def evict_due(self, most: int) -> None:
        """Issue evictions, in turns of lanes. Checks at most ``most`` claims, and one of each refused policy."""
        world, refused = self._world, dict[LaneGroup, Refusal]()
        while most > 0 and (claim := world.queues.first_ready(excluded=refused)) is not None:
            most -= 1
            if claim.due_at > world.now.wall:  # the clock was fast when it became due, and was set back
                world.queues.wait(claim)
                continue
            pod = world.cluster.nodes[claim.node].pods[claim.uid]
            if (uncertain := self._why_uncertain(claim, pod)) is not None:
                self._hold_claim(claim, pod, uncertain)
                continue
            lane = world.queues.lane_of(claim)
            request = self._request(claim, pod, others_could_go=world.queues.number_of_lanes(refused) > 1)
            if self._judging.join_wave(claim, pod):
                world.queues.wait(claim)
                continue
            refusal = world.limiter.admit(request)
            if refusal is None:
                self._evict(claim, pod, request)
                world.queues.note_turn(lane, failing=world.limiter.calls.is_failing(lane.key))
            elif refusal.whom is RefusalScope.PODS:
                self._hold_claim(claim, pod, refusal)
            else:
                claim.note_refusal(refusal, is_reported=False)
                if refusal.whom is RefusalScope.LANE:
                    world.queues.park_lane(lane, refusal)
                    guard = world.limiter.guards.by_policy.get(claim.policy.name)
                    if guard is not None and refusal.limit == FAILING:  # may last hours: others get its reservations
                        guard.unreserve_all(pod.namespace)
                else:
                    refused[lane.group] = refusal
                    most += 1  # refused policies must not use up each step before the turn of another one
        world.refusals.hold_policies(refused)

    def _why_uncertain(self, claim: Claim, pod: Pod) -> Refusal | None:
        """Why the known state is not certain enough to evict the pod; None if it is."""
        if self._world.claims.evictees[claim.uid].call is not None:
            return Refusal(VIEW, None, RefusalScope.PODS, _call_key(claim.uid), BEING_EVICTED, is_brief=True)
        if pending := self._backlog.pending(pod):
            return Refusal(VIEW, None, RefusalScope.PODS, pending, NOT_EVALUATED)
        if self._is_blind_to(claim, pod):
            return Refusal(VIEW, None, RefusalScope.PODS, BLIND_KEY, NO_DEVICES)
        return self._freshness.require_fresh_node(claim)

    def _is_blind_to(self, claim: Claim, pod: Pod) -> bool:
        """True if the pod is due only because of taints of a source, which may be outdated."""
        source = self._world.source
        if source is None or not source.blind:
            return False
        return all(one.taint.origin is not None for one in claim.grounds.due(pod.bound_at, self._world.now.wall))

    def _request(self, claim: Claim, pod: Pod, *, others_could_go: bool) -> EvictionRequest:
        world, policy, replacement = self._world, claim.policy, self._judging.replacement(claim, pod)
        return EvictionRequest(
            pod,
            policy,
            tuple(claim.grounds.due(pod.bound_at, world.now.wall)),
            world.cluster.labels(claim.node),
            world.now,
            deletes=replacement is None and self._judging.deletes(claim, pod),
            replacement=replacement,
            released=world.is_released(policy.name, claim.uid),
            others_could_go=others_could_go,
        )

    def _hold_claim(self, claim: Claim, pod: Pod, refusal: Refusal) -> None:
        """Hold a claim that a limit refuses, but not its lane. Report a budget once, a bounce when its end changes."""
        world, before = self._world, claim.reported
        is_budget, is_bounce = refusal.limit == BUDGET, refusal.limit == BOUNCE
        claim.note_refusal(refusal, is_reported=is_budget or is_bounce)
        world.queues.block(claim, refusal)
        guard = world.limiter.guards.by_policy.get(claim.policy.name)
        is_long = refusal.until is None or refusal.until > later(world.now.monotonic, LONG_SECONDS)
        if guard is not None and is_long and not refusal.is_brief and refusal.limit != GUARD:
            guard.unreserve(claim.uid)
        if is_budget:
            claim.note_budget_refusal(world.now.monotonic)
            self._judging.expect(claim, pod)
            deleted_at = self._judging.deleted_at(claim, pod)
            if deleted_at is not None:
                world.queues.requeue_at(claim, deleted_at)
            if before is None or before.limit != BUDGET:
                until = None if deleted_at is None else world.now.wall_at(deleted_at)
                world.report(commands.Held(pod, claim.verdict, refusal.detail, until))
        elif is_bounce and refusal.until is not None and (before is None or before.until != refusal.until):
            until = world.now.wall_at(refusal.until)
            world.report(commands.Held(pod, claim.verdict, refusal.detail, until, is_bouncing=True))
        elif refusal.key == BLIND_KEY:
            self._requeue_at_next_taint(claim, pod)

    def _requeue_at_next_taint(self, claim: Claim, pod: Pod) -> None:
        """Check the claim again when another of its taints becomes due, whatever refuses it now."""
        now = self._world.now
        next_at = claim.grounds.next_due_at(pod.bound_at, now.wall)
        if next_at is not None:
            self._world.queues.requeue_at(claim, now.monotonic_at(next_at))

    def _evict(self, claim: Claim, pod: Pod, request: EvictionRequest) -> None:
        world, verdict = self._world, claim.verdict
        if claim.policy.mode is Mode.DRY_RUN:
            world.queues.move(claim, Phase.REHEARSED)
            world.limiter.rehearse(request)
            world.report(commands.Rehearsed(pod, verdict, claim.due_at))
            return
        world.queues.move(claim, Phase.IN_FLIGHT)
        past_budgets = world.limiter.budgets.violated(request)
        world.limiter.reserve(request)
        world.spread.leave(pod)
        if not claim.attempts:
            waited = world.now.monotonic - claim.waits_since(claim.waited_for, world.now.monotonic)
            world.report(commands.Decided(pod, verdict, claim.due_at, waited, claim.waited_for))
        grace = self._grace_seconds(claim, pod)
        deployment = self._deployment_to_ask(request.replacement)
        if pod.ready:
            claim.conflicts = 0
        is_counted = claim.policy.limits.per_workload.is_limit and not request.is_hard
        as_seen = not pod.ready and is_counted and claim.conflicts < MAX_CONFLICTS
        order = commands.Evict(pod, verdict, request.deletes, grace, world.term, as_seen, past_budgets, deployment)
        world.claims.evictees[claim.uid].call = Call(claim, order)
        world.evictions.begin(order, claim.due_at, world.now)
        world.issue(order)

    def _deployment_to_ask(self, replacement: Replacement | None) -> Deployment | None:
        """Deployment to ask, with the annotation that asks it; None if the pod is evicted."""
        if replacement is None:
            return None
        return structs.replace(replacement.deployment, restarted_at=rfc3339.until(self._world.now.wall))

    def _grace_seconds(self, claim: Claim, pod: Pod) -> int | None:
        """Grace period in seconds: that of the policy, or the time left to the node if less. None: the pod's own."""
        given, hard_at = claim.policy.eviction.grace_period_seconds, claim.grounds.hard_at
        left = math.inf if hard_at is None else int(hard_at - self._world.now.wall)
        return max(1, int(left)) if left + 1 < claim.grace_seconds(pod) else given

    def is_still_valid(self, order: commands.Evict) -> bool:
        """Return True if an issued call should still be made: in the same term, while the pod still has to leave.

        Asked immediately before each request is sent: it may have waited for a connection. A PATCH precedes a DELETE.
        """
        world = self._world
        evictee = world.claims.evictees.get(order.pod.uid)
        call = None if evictee is None else evictee.call
        if call is None or call.order is not order or call.is_answered:
            return False
        if not world.may_evict or order.term != world.term:
            return False
        if self._is_blind_to(call.claim, order.pod):
            return False
        return self._judging.is_still_valid(call.claim) and self._freshness.is_proven(call.claim)

    # -- outcomes -------------------------------------------------------------------------------------------------

    def call_ended(self, event: events.Settled) -> None:
        """Process the end of a call.

        Raises:
            ValueError: no call was in progress.

        """
        world = self._world
        evictee = world.claims.evictees.get(event.uid)
        call = None if evictee is None else evictee.call
        if evictee is None or call is None or call.is_answered:
            msg = f"no eviction of {event.uid} is in progress"
            raise ValueError(msg)
        self._note_answer(event, call)
        self._settle(evictee, call, event.outcome)
        if world.cluster.pod(evictee.node, evictee.uid) is None:
            self._end_claims(evictee, call)
        elif event.outcome in (Outcome.ACCEPTED, Outcome.GONE):  # the stream shows the end later
            evictee.checks = 0
            if event.outcome is Outcome.GONE:
                self._report_end(call)
            world.queues.expect_leaving(call.claim, later(world.now.monotonic, world.timings.check_accepted))
        else:
            self._resume(evictee, call, event)

    def _settle(self, evictee: Evictee, call: Call, outcome: Outcome) -> None:
        """Tell limits and counts that the call ended, and whether its pod may still leave because of it."""
        world, pod, row = self._world, call.order.pod, OUTCOMES[outcome]
        accepted = Settlement.ACCEPTED if outcome is Outcome.ACCEPTED else Settlement.OPEN
        world.limiter.settle(pod.uid, Settlement.STAYS if row.stays else accepted, world.now)
        world.evictions.settle(pod.uid, stays=row.stays)
        world.queues.update_turns((call.claim.policy.name, pod.namespace))

    def _note_effect(self, evictee: Evictee, outcome: Outcome, claim: Claim) -> None:
        """Count a pod as missing while it may still leave because of a call that ended.

        A webhook that keeps the pod from being evicted may move it, a Deployment that was asked for a replacement
        removes it, and a call without an answer may have been carried out.
        """
        now, timings, until = self._world.now.monotonic, self._world.timings, evictee.missing_until
        if outcome.row.kept_by_webhook and evictee.kept_until is None:
            evictee.kept_until = later(now, timings.kept_by_webhook)
        if outcome is not Outcome.NOT_SENT:
            until = evictee.kept_until
        if outcome is Outcome.ASKED:
            until = later(now, claim.policy.replacement_seconds)
        if outcome is Outcome.FAILED:
            until = max(until or now, later(now, timings.unanswered))
        if until is not None:
            self._count_missing(evictee, until)
            if outcome is Outcome.ASKED or (until == evictee.kept_until and outcome is not Outcome.FAILED):
                # A webhook or a Deployment must not use up the limit of a node.
                self._world.limiter.departures.stay(evictee.uid)
        else:
            evictee.missing_until = None
            self._missing.cancel(evictee.uid)
            self._judging.count_as_staying(evictee.node, evictee.uid)

    def _note_answer(self, event: events.Settled, call: Call) -> None:
        """Record what the answer means for calls for other pods."""
        world, pod, now = self._world, call.order.pod, self._world.now.monotonic
        row = OUTCOMES[event.outcome]
        if row.by_budget:
            world.limiter.budgets.refused(pod, now)
        if row.pauses:
            world.limiter.calls.pause(max(world.timings.min_pause, self._retry_after(event)), now)
        detail = f"the last call, for pod {pod.name}: {row.why}" + (f": {event.message}" if event.message else "")
        world.limiter.calls.answered(event.uid, row.answer, now, detail)

    def _retry_after(self, event: events.Settled) -> float:
        return min(event.retry_after or 0.0, self._world.timings.max_retry_after)

    def _end_claims(self, evictee: Evictee, call: Call) -> None:
        """End the claims on a pod that is gone already, or terminates, when its call ends."""
        self._report_end(call)
        evictee.missing_until = None
        self._judging.end_claims(evictee)

    def _report_end(self, call: Call) -> None:
        """Report a pod that is gone as evicted, or as gone before its eviction."""
        if not self._judging.report_leaving(call.order.pod.uid):
            self._world.report(commands.PodAlreadyGone(call.order.pod, call.claim.verdict))

    def _resume(self, evictee: Evictee, call: Call, event: events.Settled) -> None:
        """Continue after a call that did not evict the pod: claims that are still valid wait for their next call."""
        world, claim, state = self._world, call.claim, self._world.cluster.nodes[evictee.node]
        pod = state.pods[event.uid]
        evictee.call = None
        world.limiter.freed.add(_call_key(event.uid))
        self._note_replacement(call, event)
        self._note_effect(evictee, event.outcome, claim)
        self._retry_later(claim, pod, event)
        world.queues.back_off(claim)
        # Claims may have lost their reason during the call.
        self._judging.update_claims(state, pod)
        is_retried = claim.phase is not Phase.ENDED and claim.initial_phase is Phase.WAITING
        if is_retried and event.outcome not in (Outcome.NOT_SENT, Outcome.ASKED):
            retry_at = world.now.wall_at(claim.not_before)
            details = (event.outcome, event.message, claim.attempts, retry_at)
            world.report(commands.EvictionFailed(pod, claim.verdict, *details))

    def _note_replacement(self, call: Call, event: events.Settled) -> None:
        """Record that a Deployment was asked for a replacement, or refuses.

        It is asked once for each pod, but again after flow control or a 409. A missing answer counts as success.
        """
        replacements, pod, deployment = self._world.limiter.replacements, call.order.pod, call.order.deployment
        if deployment is None or event.outcome is Outcome.THROTTLED:
            return
        if event.outcome is Outcome.NOT_SENT:
            replacements.note_not_sent(pod, self._world.now)
            return
        if event.outcome is Outcome.NOT_REPLACED:
            replacements.note_refused(pod, event.message)
            return
        replacements.note_asked(pod, self._world.now)
        if event.outcome is Outcome.ASKED:
            until = self._world.now.wall + call.claim.policy.replacement_seconds
            self._world.report(commands.ReplacementAsked(pod, call.claim.verdict, deployment.name, until))

    # -- accepted evictions ---------------------------------------------------------------------------------------

    def _read_pod(self, claim: Claim) -> None:
        """Read a pod whose eviction was accepted but that the stream does not show leaving."""
        world = self._world
        evictee, delay = world.claims.evictees[claim.uid], world.timings.check_accepted
        pod = world.cluster.pod(claim.node, claim.uid)
        if pod is not None and world.leading:  # a follower reads nothing, and does not back off
            evictee.checks += 1
            delay = retry_delay(POD_SECONDS, evictee.checks, claim.uid)
            world.issue(commands.CheckPod(pod))
        world.queues.expect_leaving(claim, later(world.now.monotonic, delay))

    def pod_checked(self, uid: str, *, runs: bool | None) -> None:
        """Process the read of a pod with an accepted eviction. If it ``runs``, it is due again; None: no answer."""
        world = self._world
        evictee = world.claims.evictees.get(uid)
        if runs is None or evictee is None or evictee.call is None or not evictee.call.is_answered:
            return
        pod = world.cluster.pod(evictee.node, uid)
        if pod is None:
            return
        if not runs:  # the stream is behind the read
            self._judging.report_leaving(uid)
            world.limiter.guards.gone(pod, world.now)
        elif evictee.checks:  # otherwise the read began before the last call
            self._resume(evictee, evictee.call, events.Settled(uid, Outcome.WITHOUT_EFFECT))

    def _retry_later(self, claim: Claim, pod: Pod, event: events.Settled) -> None:
        """Set the time of the next call. If the answer concerns more than this pod, its lane or all calls wait."""
        now, retry_at = self._world.now.monotonic, self._world.now.monotonic
        back_off = self._world.timings.back_off[event.outcome]
        if back_off[1]:
            delay = retry_delay(back_off, claim.attempts + 1, claim.uid)
            retry_at = later(now, max(delay, self._retry_after(event)))
        if event.outcome in (Outcome.NOT_SENT, Outcome.ASKED, Outcome.NOT_REPLACED):
            claim.conflicts += bool(event.outcome is Outcome.NOT_SENT and event.message)  # else no server answered
            claim.retry(event.outcome, event.outcome.row.why, retry_at)
            return
        if event.outcome.row.by_budget:
            claim.note_budget_refusal(now)
            deleted_at = self._judging.deleted_at(claim, pod)
            if deleted_at is not None and deleted_at > now:
                retry_at = min(retry_at, deleted_at)
        claim.fail(event.outcome, event.message, now, retry_at)


def _call_key(uid: str) -> str:
    """Key of the refusal that claims on a pod share while a call for it is in progress."""
    return f"call/{uid}"
