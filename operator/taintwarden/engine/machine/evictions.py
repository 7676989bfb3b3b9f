"""From due to gone: issues evictions as limits and free slots admit, and processes the API server's answers."""

from collections import Counter
from collections.abc import Iterator

from taintwarden.engine.limits import Limiter, Refusal, Request, Settlement
from taintwarden.engine.limits.protocol import EVERY_POLICY, policy_key
from taintwarden.engine.limits.refusal import BOUNCE, BUDGET_LIMITS, GUARD, GUARD_RECORD, WINDOW
from taintwarden.engine.limits.zones import zone_of
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.claims import QUEUED, Call, Claim, Claims, Evictee, Phase
from taintwarden.engine.machine.cluster import Cluster
from taintwarden.engine.machine.events import Outcome
from taintwarden.engine.machine.evictees import Evictees
from taintwarden.engine.machine.freshness import Freshness
from taintwarden.engine.machine.queues import Lane, Queues
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.model import Instant, Method, Mode, Pod, later
from taintwarden.engine.spread import Spread

_OVER = (Outcome.EVICTED, Outcome.GONE)
"""Outcomes after which the watch has to report that the pod is gone."""


class Evictions:
    """Calls in progress, and the refusals of the claims that are next.

    Args:
        step: the current step.
        cluster: what is known.
        claims: all claims.
        evictees: the pods that have to leave.
        queues: the queues of claims.
        limiter: the limits.
        spread: the numbers of pods by topology domain.
        freshness: whether the data on a pod's node is new enough.
        timings: the waits of the machine.
        max_in_flight: how many calls may be in progress at once.

    """

    def __init__(
        self,
        step: Step,
        cluster: Cluster,
        claims: Claims,
        evictees: Evictees,
        queues: Queues,
        limiter: Limiter,
        spread: Spread,
        freshness: Freshness,
        timings: Timings,
        max_in_flight: int,
    ) -> None:
        self.in_flight = 0
        self.accepted: Counter[str] = Counter()
        """Policy -> evictions that the API server accepted."""
        self.refused: dict[Lane, Refusal] = {}
        """Why no claim of a lane is admitted now."""
        self._step = step
        self._cluster = cluster
        self._claims = claims
        self._evictees = evictees
        self._queues = queues
        self._limiter = limiter
        self._spread = spread
        self._freshness = freshness
        self._timings = timings
        self._max_in_flight = max_in_flight

    @property
    def is_busy(self) -> bool:
        """Whether calls in progress fill half the slots."""
        return self.in_flight * 2 >= self._max_in_flight

    def next_in(self, now: Instant) -> Iterator[float]:
        """Seconds until the first claim of each lane may be admitted, unless something else has to change first."""
        if self.in_flight >= self._max_in_flight:
            return
        for lane in self._queues.ready_lanes():
            refusal = self.refused.get(lane)
            if refusal is None:
                yield 0.0
            elif refusal.until is not None:
                yield refusal.until - now.monotonic

    def pull_freed(self) -> None:
        """Release claims whose limits may admit them now."""
        while keys := self._limiter.freed.take():
            for key in keys:
                self._queues.release(key)
                for lane in list(self.refused):
                    if key in (EVERY_POLICY, policy_key(lane.policy)):
                        del self.refused[lane]

    # -- evicting -------------------------------------------------------------------------------------------------

    def evict_due(self, most: int) -> None:
        """Issue evictions, the earliest deadline of all policies first. Checks at most ``most`` claims."""
        refused: dict[Lane, Refusal] = {}
        for _ in range(most):
            if self.in_flight >= self._max_in_flight:
                break
            claim = self._queues.first_ready(besides=refused)
            if claim is None:
                break
            if claim.due_at > self._step.now.wall:  # the clock was fast when it became due, and was set back
                self._queues.wait(claim)
                continue
            pod = self._cluster.nodes[claim.node].pods[claim.uid]
            if self._freshness.is_missing(pod):
                self._step.command(*self._freshness.check(claim))
                continue
            request = self._request(claim, pod)
            refusal = self._limiter.admit(request)
            if refusal is None:
                self._evict(claim, pod, request)
                continue
            self._note_refusal(claim, refusal, deletes=request.deletes)
            if refusal.key:
                self._queues.block(claim, refusal)
                self._report_budget(claim, pod, refusal)
                self._report_bounce(claim, pod, refusal)
            else:
                refused[Lane.of(claim.policy)] = refusal
        self.refused = refused

    def _request(self, claim: Claim, pod: Pod) -> Request:
        policy, taint = claim.verdict.policy, claim.verdict.taint
        return Request(
            pod,
            policy,
            taint,
            zone_of(self._cluster.labels(claim.node)),
            self._step.now,
            deletes=policy.eviction.method is not Method.EVICT and self._deletes(claim, pod),
            released=self._limiter.guards.is_released(policy.name, claim.uid),
            is_latecomer=claim.is_latecomer,
        )

    def _deletes(self, claim: Claim, pod: Pod) -> bool:
        """Whether the pod is deleted without regard to budgets: always, or because one has blocked it too long."""
        if claim.policy.eviction.method is not Method.EVICT_THEN_DELETE:
            return claim.policy.eviction.method is Method.DELETE
        blocks = self._limiter.budgets.refuse(pod) is not None
        if not blocks and claim.outcome not in (Outcome.BLOCKED, Outcome.MISCONFIGURED):
            claim.blocked_since = None
        delete_at = claim.delete_at(pod, self._step.now)
        return delete_at is not None and self._step.now.monotonic >= delete_at

    def _note_refusal(self, claim: Claim, refusal: Refusal, *, deletes: bool) -> None:
        claim.refusal = refusal
        if refusal.limit != GUARD_RECORD or not claim.waited_for:
            claim.waited_for = refusal.limit
        admitted_by_budgets = refusal.key and refusal.limit not in BUDGET_LIMITS and not deletes
        if admitted_by_budgets or refusal.limit in (WINDOW, GUARD):
            claim.blocked_since = None  # from now on it is not only the budget that blocks the pod

    def _report_budget(self, claim: Claim, pod: Pod, refusal: Refusal) -> None:
        """A budget blocks it: report that once, and schedule its deletion if the policy specifies that."""
        if refusal.limit not in BUDGET_LIMITS:
            return
        now = self._step.now
        is_news = claim.blocked_since is None
        if claim.blocked_since is None:
            claim.blocked_since = now.monotonic
        delete_at = claim.delete_at(pod, now)
        if delete_at is not None:
            self._evictees.deletions.schedule(claim.key, delete_at)
        if is_news:
            until = None if delete_at is None else now.wall_at(delete_at)
            self._step.report(commands.HeldByBudget(pod, claim.verdict, refusal.detail, until))

    def _report_bounce(self, claim: Claim, pod: Pod, refusal: Refusal) -> None:
        """Its workload bounces: report once until when it waits."""
        if refusal.limit == BOUNCE and refusal.until is not None and refusal.until != claim.bounced_until:
            claim.bounced_until = refusal.until
            until = self._step.now.wall_at(refusal.until)
            self._step.report(commands.HeldAsBouncing(pod, claim.verdict, refusal.detail, until))

    def _evict(self, claim: Claim, pod: Pod, request: Request) -> None:
        step, verdict = self._step, claim.verdict
        policy = verdict.policy
        waited = step.now.monotonic - claim.ready_since
        if policy.mode is Mode.DRY_RUN:
            self._queues.move(claim, Phase.REHEARSED)
            self._limiter.rehearse(request)
            step.report(commands.Rehearsed(pod, verdict, claim.due_at))
            return
        evictee = self._claims.evictees[claim.uid]
        for other in evictee.claims:
            if other is not claim and other.phase in QUEUED:
                self._queues.move(other, Phase.ASIDE)
        self._queues.move(claim, Phase.IN_FLIGHT)
        claim.withdrawn = False
        self.in_flight += 1
        self._limiter.reserve(request)
        in_a_row = self._limiter.bounces.leave(pod, policy.name, verdict.taint, step.now.monotonic)
        self._spread.leave(pod)
        if not claim.attempts:
            step.report(commands.Decided(pod, verdict, claim.due_at, waited, claim.waited_for))
        if in_a_row:
            step.report(commands.Bounced(pod, verdict, in_a_row))
        grace, grace_cut = self._grace_of(claim, pod)
        order = commands.Evict(pod, verdict, request.deletes, grace)
        evictee.call = Call(claim, order, grace_cut)
        step.command(order)

    def _grace_of(self, claim: Claim, pod: Pod) -> tuple[int | None, bool]:
        """Seconds that the pod gets to stop, None for its own; and whether the removal of its node makes it less."""
        verdict = claim.verdict
        given, hard_at = verdict.policy.eviction.grace_period_seconds, verdict.hard_at
        if hard_at is None:
            return given, False
        left = int(hard_at - self._step.now.wall)
        is_cut = left + 1 < claim.grace_seconds(pod)
        return (max(1, left), True) if is_cut else (given, False)

    # -- outcomes -------------------------------------------------------------------------------------------------

    def settled(self, event: events.Settled) -> None:
        """A call ended.

        Raises:
            ValueError: no call was in progress.

        """
        evictee = self._claims.evictees.get(event.uid)
        call = None if evictee is None else evictee.call
        if evictee is None or call is None or call.is_answered:
            msg = f"no eviction of {event.uid} is in progress"
            raise ValueError(msg)
        self.in_flight -= 1
        call.is_answered = True
        pod = call.order.pod
        if event.outcome in _OVER:
            # If a call may have been carried out and the pod is gone, that call most likely evicted it.
            evicted = event.outcome is Outcome.EVICTED or evictee.is_uncertain
            self._limiter.settle(event.uid, Settlement.EVICTED if evicted else Settlement.STAYS)
            self._report_done(call, event.outcome)
            self._expect_gone(evictee, call)
            return
        evictee.call = None
        if event.outcome is Outcome.FAILED:  # the call may have been carried out: the pod counts as terminating
            self._limiter.settle(event.uid, Settlement.UNKNOWN)
        else:
            self._limiter.settle(event.uid, Settlement.STAYS)
            self._evictees.stay(evictee.node, evictee.uid)
        evictee.is_uncertain = event.outcome is Outcome.FAILED
        self._resume(evictee, call, event, pod)

    def _report_done(self, call: Call, outcome: Outcome) -> None:
        claim, pod, policy = call.claim, call.order.pod, call.claim.verdict.policy
        if outcome is Outcome.GONE:
            self._step.report(commands.Left(pod, claim.verdict))
            return
        self.accepted[policy.name] += 1
        lateness = max(0.0, self._step.now.wall - claim.due_at)
        self._step.report(commands.Evicted(pod, claim.verdict, lateness))
        if call.grace_cut:
            self._step.report(*self._evictees.reclaims.miss(claim, pod, "grace-cut"))

    def _expect_gone(self, evictee: Evictee, call: Call) -> None:
        """The watch decides: a pod that it continues to show is evaluated again."""
        for claim in evictee.claims:
            self._evictees.forget(claim)
        if self._cluster.pod(evictee.node, evictee.uid) is None:
            self._evictees.end_all(evictee)
        else:
            by = later(self._step.now.monotonic, self._timings.leaving)
            self._queues.expect_gone(call.claim, by)

    def _resume(self, evictee: Evictee, call: Call, event: events.Settled, pod: Pod) -> None:
        """The call did not evict the pod: every claim that is still valid continues."""
        claim, now = call.claim, self._step.now
        current = self._cluster.pod(evictee.node, evictee.uid)
        if claim.withdrawn or current is None:
            self._evictees.end(claim)
            notice = commands.Left if current is None else commands.Cancelled
            self._step.report(notice(pod, claim.verdict))
        elif event.outcome is Outcome.NOT_LEADING:
            claim.not_before = later(now.monotonic, self._timings.not_leading)
            self._queues.delay(claim)
        else:
            claim.note_failure(event, current, now, self._timings)
            retry_at = now.wall_at(claim.not_before)
            details = (event.outcome.value, event.message, claim.attempts, retry_at)
            self._step.report(commands.Hindered(current, claim.verdict, *details))
            self._queues.delay(claim)
        for other in evictee.claims:
            if other.phase is Phase.ASIDE:
                if current is None:
                    self._evictees.end(other)
                else:
                    self._queues.wait(other)
            if current is not None:
                self._evictees.expect(other, current)
