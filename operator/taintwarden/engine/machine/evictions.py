"""From due to gone: lets pods go as limits and free slots admit, and takes what the API server answers."""

from collections import Counter
from collections.abc import Iterator, Mapping

from taintwarden.engine.limits import Limiter, Refusal
from taintwarden.engine.limits.refusal import BOUNCE, BUDGET_LIMITS, GUARD, GUARD_RECORD, WINDOW
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.events import Outcome
from taintwarden.engine.machine.freshness import Freshness
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.leavers import Leavers
from taintwarden.engine.machine.pending import Lane, Pending, Phase
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.machine.reclaims import miss
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.model import Instant, Method, Mode
from taintwarden.engine.spread import Spread

NOT_LEADING_SECONDS = 1.0
"""Pause after a call that was not made because the lease had run out, until that is told here, too."""
LEAVING_TIMEOUT_SECONDS = 60.0
"""How long an accepted eviction may go unseen in the watch before it is asked for again."""


class Evictions:
    """Calls under way, and why the next ones are not.

    Args:
        step: the step under way.
        nodes: what is known of the cluster.
        leavers: the pods that have to leave.
        queues: where they stand.
        limiter: the limits.
        spread: the numbers of pods that stand.
        freshness: whether a pod's node is known well enough.
        max_in_flight: how many calls may be under way at once.

    """

    def __init__(
        self,
        step: Step,
        nodes: Mapping[str, NodeState],
        leavers: Leavers,
        queues: Queues,
        limiter: Limiter,
        spread: Spread,
        freshness: Freshness,
        max_in_flight: int,
    ) -> None:
        self.in_flight = 0
        self.accepted: Counter[str] = Counter()
        """Policy -> evictions that the API server accepted."""
        self.refused: dict[Lane, Refusal] = {}
        """Why the first pod of a lane may not go, where that holds for all of its policy."""
        self._step = step
        self._nodes = nodes
        self._leavers = leavers
        self._queues = queues
        self._limiter = limiter
        self._spread = spread
        self._freshness = freshness
        self._max_in_flight = max_in_flight

    @property
    def is_busy(self) -> bool:
        """Whether calls under way fill half the slots."""
        return self.in_flight * 2 >= self._max_in_flight

    def turns(self, now: Instant) -> Iterator[float]:
        """Seconds until the first pod of each lane may be let go, unless something else has to change first."""
        if self.in_flight >= self._max_in_flight:
            return
        for lane in self._queues.ready_lanes():
            refusal = self.refused.get(lane)
            if refusal is None:
                yield 0.0
            elif refusal.until is not None:
                yield refusal.until - now.monotonic

    def reconsider(self, policy: str) -> None:
        """What held all pods of a policy may be another answer now."""
        for lane in [lane for lane in self.refused if lane.policy == policy]:
            del self.refused[lane]

    # -- letting go -----------------------------------------------------------------------------------------------

    def let_go(self, most: int) -> None:
        """Let due pods go, the earliest deadline of all policies first. Looks at ``most`` pods."""
        refused: dict[Lane, Refusal] = {}
        for _ in range(most):
            if self.in_flight >= self._max_in_flight:
                break
            pending = self._queues.first_ready(besides=refused)
            if pending is None:
                break
            if self._freshness.is_missing(pending):
                self._step.command(*self._freshness.park(pending))
                continue
            deletes = self._deletes(pending)
            state = self._nodes.get(pending.pod.node)
            labels = state.labels if state else {}
            args = (pending.pod, pending.policy, pending.verdict.taint, labels, self._step.now)
            refusal = self._limiter.admit(*args, deletes=deletes)
            if refusal is None:
                self._queues.remove(pending)
                self._let_go(pending, deletes=deletes)
                continue
            pending.refusal = refusal
            if refusal.limit != GUARD_RECORD or not pending.waited_for:
                pending.waited_for = refusal.limit
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
        blocks = self._limiter.budgets.refuse(pending.pod) is not None
        if not blocks and pending.outcome not in (Outcome.BLOCKED, Outcome.MISCONFIGURED):
            pending.blocked_since = None
        return pending.delete_at is not None and self._step.now.wall >= pending.delete_at

    def _note_budget(self, pending: Pending, refusal: Refusal) -> None:
        """A budget holds it: tell once, and wake it where it is to be deleted in the end."""
        if refusal.limit not in BUDGET_LIMITS:
            return
        news = pending.blocked_since is None
        if pending.blocked_since is None:
            pending.blocked_since = self._step.now.wall
        delete_at = pending.delete_at
        if delete_at is not None:
            self._leavers.deletions.schedule(pending.pod.uid, delete_at)
        if news:
            self._step.tell(commands.HeldByBudget(pending.pod, pending.verdict, refusal.detail, delete_at))

    def _note_bounce(self, pending: Pending, refusal: Refusal) -> None:
        """Its workload comes back again and again: tell once until when it is held."""
        if refusal.limit == BOUNCE and refusal.until is not None and refusal.until != pending.bounce_until:
            pending.bounce_until = refusal.until
            now = self._step.now
            until = now.wall + refusal.until - now.monotonic
            self._step.tell(commands.HeldAsBouncing(pending.pod, pending.verdict, refusal.detail, until))

    def _let_go(self, pending: Pending, *, deletes: bool) -> None:
        step, policy, verdict = self._step, pending.policy, pending.verdict
        waited = step.now.monotonic - pending.ready_since
        if policy.mode is Mode.DRY_RUN:
            pending.phase = Phase.REHEARSED
            self._limiter.rehearse(pending.pod, policy, step.now)
            step.tell(commands.Rehearsed(pending.pod, verdict, pending.due_at))
            return
        pending.phase = Phase.IN_FLIGHT
        pending.unwanted = False
        self.in_flight += 1
        in_a_row = self._limiter.leave(pending.pod, policy, verdict.taint, step.now, asks_budgets=not deletes)
        self._spread.discount(pending.pod)
        if not pending.attempts:
            step.tell(commands.Decided(pending.pod, verdict, pending.due_at, waited, pending.waited_for))
        if in_a_row:
            step.tell(commands.Bounced(pending.pod, verdict, in_a_row))
        step.command(commands.Evict(pending.pod, verdict, deletes, self._grace_of(pending)))

    def _grace_of(self, pending: Pending) -> int | None:
        """Seconds to give the pod to stop, None for its own: no more than its node will be there."""
        given, hard_at = pending.policy.eviction.grace_period_seconds, pending.verdict.hard_at
        left = pending.grace_seconds if hard_at is None else int(hard_at - self._step.now.wall)
        pending.grace_cut = left + 1 < pending.grace_seconds
        return max(1, left) if pending.grace_cut else given

    # -- outcomes -------------------------------------------------------------------------------------------------

    def settled(self, event: events.Settled) -> None:
        """A call ended.

        Raises:
            ValueError: none was under way.

        """
        pending = self._leavers.pending.get(event.uid)
        if pending is None or pending.phase is not Phase.IN_FLIGHT:
            msg = f"no eviction of {event.uid} is under way"
            raise ValueError(msg)
        self.in_flight -= 1
        uncertain = event.outcome is Outcome.FAILED  # the call may have been carried out: the pod counts as leaving
        done = event.outcome in (Outcome.EVICTED, Outcome.GONE)
        # A pod that is gone after a call that may have been carried out was evicted by that, most likely.
        evicted = event.outcome is Outcome.EVICTED or (done and pending.outcome is Outcome.FAILED)
        self._limiter.settle(event.uid, evicted=evicted, uncertain=uncertain)
        if not done:
            if not uncertain:
                self._leavers.stay(pending.pod)
            self._leavers.expect(pending)
        if event.outcome is Outcome.EVICTED:
            self._was_evicted(pending)
        elif event.outcome is Outcome.GONE:
            self._step.tell(commands.Left(pending.pod, pending.verdict))
            self._expect_gone(pending)
        elif pending.unwanted:
            pending.phase = Phase.WAITING
            notice = commands.Cancelled if self._leavers.is_here(pending.pod) else commands.Left
            self._step.tell(notice(pending.pod, pending.verdict))
            self._leavers.drop(pending)
        elif event.outcome is Outcome.NOT_LEADING:
            pending.retry_at = self._step.now.wall + NOT_LEADING_SECONDS
            self._queues.wait(pending)
        else:
            self._try_again(pending, event)

    def _was_evicted(self, pending: Pending) -> None:
        self.accepted[pending.policy.name] += 1
        lateness = max(0.0, self._step.now.wall - pending.due_at)
        self._step.tell(commands.Evicted(pending.pod, pending.verdict, lateness))
        if pending.grace_cut:
            self._step.tell(*miss(pending, "grace-cut"))
        self._expect_gone(pending)

    def _expect_gone(self, pending: Pending) -> None:
        """The watch has the last word: a pod that it goes on showing is judged afresh."""
        self._leavers.forget(pending)
        pending.attempts = 0
        if self._leavers.is_here(pending.pod):
            self._queues.expect_gone(pending, by=self._step.now.wall + LEAVING_TIMEOUT_SECONDS)
        else:
            self._leavers.drop(pending)

    def _try_again(self, pending: Pending, event: events.Settled) -> None:
        pending.note_failure(event, self._step.now.wall)
        args = (pending.pod, pending.verdict, event.outcome.value, event.message, pending.attempts, pending.retry_at)
        self._step.tell(commands.Hindered(*args))
        self._queues.wait(pending)
