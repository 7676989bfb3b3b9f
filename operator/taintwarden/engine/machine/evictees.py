"""The pods that have to leave: verdicts create, replace and withdraw the claims on them."""

from collections.abc import Iterable, Sequence

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits import Limiter
from taintwarden.engine.limits.guard import ROUNDING_SECONDS, Due
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.claims import QUEUED, SETTLED, Claim, Claims, Evictee, Phase
from taintwarden.engine.machine.cluster import Cluster, NodeState
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.machine.reclaims import Reclaims
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.model import MonotonicTime, Pod, Policy, WallTime, later
from taintwarden.engine.spread import Spread

Wanted = Sequence[tuple[WallTime, TaintVerdict]]
"""The deadlines of a pod, each with the verdict that sets it, one for each policy."""


class Evictees:
    """Updates claims from verdicts, and informs limits and forecasts about them.

    Args:
        step: the current step.
        cluster: what is known.
        claims: all claims.
        queues: the queues of claims.
        limiter: the limits, whose guards count the evictions ahead.
        spread: the numbers of pods by topology domain.
        timings: the waits of the machine.

    """

    def __init__(
        self,
        step: Step,
        cluster: Cluster,
        claims: Claims,
        queues: Queues,
        limiter: Limiter,
        spread: Spread,
        timings: Timings,
    ) -> None:
        self.reclaims = Reclaims(cluster, timings)
        self.deletions: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        """Claims that a budget blocks, by the time at which the pod is deleted instead."""
        self._step = step
        self._cluster = cluster
        self._claims = claims
        self._queues = queues
        self._limiter = limiter
        self._spread = spread
        self._timings = timings

    # -- what verdicts say ----------------------------------------------------------------------------------------

    def decide(self, pod: Pod, wanted: Wanted, *, arrives: bool = False) -> None:
        """These policies evict the pod, and no others: this replaces all earlier decisions.

        ``arrives``: it was not known before, and this decision is due to its arrival, not to a change of its node.
        """
        evictee = self._claims.evictees.get(pod.uid)
        if evictee is not None:
            names = [verdict.policy.name for _, verdict in wanted]
            for claim in evictee.claims:
                if claim.verdict.policy.name not in names:
                    self.withdraw(claim)
        if not wanted:
            return
        evictee = self._claims.evictee(pod)  # again, since it ends with its last claim
        for due_at, verdict in wanted:
            known = evictee.claim_of(verdict.policy.name)
            if known is None:
                claim = self._make(evictee, pod, verdict, due_at)
                claim.is_latecomer = arrives and pod.bound_at > verdict.counts_from + ROUNDING_SECONDS
            else:
                claim = known
                self._update(evictee, claim, verdict, due_at)
            if claim.phase not in SETTLED:
                self.expect(claim, pod)
            if not claim.announced:
                self._announce(claim, pod)

    def _make(self, evictee: Evictee, pod: Pod, verdict: TaintVerdict, due_at: WallTime) -> Claim:
        claim = Claim.of(pod, verdict, due_at)
        claim.not_before = self._settles_at(verdict.policy)
        self._claims.add(evictee, claim)
        if evictee.call is None:
            self._queues.begin(claim)
        else:
            self._queues.move(claim, Phase.ASIDE)
        return claim

    def _update(self, evictee: Evictee, claim: Claim, verdict: TaintVerdict, due_at: WallTime) -> None:
        before = claim.verdict
        same = claim.due_at == due_at and (before.policy is verdict.policy or before.policy == verdict.policy)
        if due_at < claim.due_at:
            claim.not_before = max(claim.not_before, self._settles_at(verdict.policy))
        elif due_at > claim.due_at:
            claim.blocked_since = None
        claim.announced = claim.announced and claim.due_at == due_at
        claim.verdict, claim.due_at = verdict, due_at
        claim.withdrawn = False
        if evictee.call is not None:
            return
        if not same:
            self._queues.wait(claim)
        elif claim.phase is Phase.BLOCKED and before.taint != verdict.taint:
            self._queues.ask_again(claim)

    def pod_changed(self, before: Pod, pod: Pod) -> None:
        """A pod with claims differs from ``before``: its place, and what limits answer, may change."""
        evictee = self._claims.evictees.get(pod.uid)
        if evictee is None:
            return
        for claim in evictee.claims:
            if before.shared is not pod.shared and claim.phase in (*QUEUED, Phase.REHEARSED):
                self._queues.wait(claim)
            elif before.ready != pod.ready and claim.phase is Phase.BLOCKED:
                self._queues.ask_again(claim)

    def _settles_at(self, policy: Policy) -> MonotonicTime:
        """The end of settling for an eviction decided now: the guard has to count the complete wave before it."""
        guard = self._limiter.guards.by_policy.get(policy.name)
        now = self._step.now.monotonic
        return now if guard is None else later(now, guard.settings.settle_seconds)

    def _announce(self, claim: Claim, pod: Pod) -> None:
        step = self._step
        ahead = claim.due_at - step.now.wall
        if ahead > self._timings.announced_ahead and step.leading:
            claim.announced = True
            step.report(commands.Scheduled(pod, claim.verdict, claim.due_at))

    def announce_again(self) -> None:
        """What was announced counts no longer, since another process may have led since."""
        for claim in self._claims:
            claim.announced = False

    # -- what is ahead --------------------------------------------------------------------------------------------

    def expect(self, claim: Claim, pod: Pod) -> None:
        """Inform guards and forecasts."""
        if claim.verdict.hard_at is not None:
            self.reclaims.expect(claim)
        guard = self._limiter.guards.by_policy.get(claim.policy.name)
        if guard is not None and not self._limiter.departures.is_leaving(pod.uid):
            due = Due(pod.uid, claim.due_at, pod.bound_at, claim.verdict.counts_from, claim.is_latecomer)
            guard.expect(due, self._step.now)

    def expect_all_again(self) -> None:
        """The guards changed: inform them about all claims."""
        for claim in self._claims:
            pod = self._cluster.pod(claim.node, claim.uid)
            if pod is not None and claim.phase not in SETTLED:
                self.expect(claim, pod)

    def forget(self, claim: Claim) -> None:
        """The eviction is not ahead any more."""
        self.reclaims.forget(claim.key)
        self.deletions.cancel(claim.key)
        guard = self._limiter.guards.by_policy.get(claim.verdict.policy.name)
        if guard is not None:
            guard.forget(claim.uid)

    # -- ends -----------------------------------------------------------------------------------------------------

    def withdraw(self, claim: Claim) -> None:
        """A policy no longer evicts the pod; if an eviction was expected, that is reported."""
        if claim.phase is Phase.LEAVING:
            return
        if claim.phase is Phase.IN_FLIGHT:
            claim.withdrawn = True
            return
        pod = self._cluster.pod(claim.node, claim.uid)
        tried = claim.attempts or claim.blocked_since is not None or claim.bounced_until is not None
        was_expected = claim.announced or tried or claim.phase is Phase.REHEARSED
        self.end(claim)
        if pod is not None and was_expected:
            self._report_cancelled(claim, pod)

    def _report_cancelled(self, claim: Claim, pod: Pod) -> None:
        """If another policy's claim remains, the pod still has to leave and nothing is reported."""
        evictee = self._claims.evictees.get(claim.uid)
        if evictee is None or not any(one.is_enforced for one in evictee.claims):
            self._step.report(commands.Cancelled(pod, claim.verdict))

    def cancel(self, uids: Iterable[str]) -> None:
        """The node of these pods is gone: no taint evicts them."""
        for uid in uids:
            evictee = self._claims.evictees.get(uid)
            for claim in evictee.claims if evictee is not None else ():
                pod = self._cluster.pod(claim.node, uid)
                if pod is not None:
                    self._step.report(*self.reclaims.miss(claim, pod, "not-evicted"))
                self.withdraw(claim)

    def gone(self, uid: str) -> None:
        """The pod is gone. A call in progress is still to be answered."""
        evictee = self._claims.evictees.get(uid)
        if evictee is None:
            return
        for claim in evictee.claims:
            if claim.phase is Phase.IN_FLIGHT:
                claim.withdrawn = True
            else:
                self._close(claim)
        if uid not in self._claims.evictees:
            self._limiter.over(uid)

    def end(self, claim: Claim) -> None:
        """The claim ends. With the last one the pod counts as one that stays on its node, if it still exists."""
        self._close(claim)
        if claim.uid not in self._claims.evictees:
            self.stay(claim.node, claim.uid)

    def _close(self, claim: Claim) -> None:
        evictee = self._claims.evictees[claim.uid]
        if evictee.call is not None and evictee.call.claim is claim:
            evictee.call = None
        if claim.phase is not Phase.LEAVING:  # its call was accepted, so no eviction is ahead
            self.forget(claim)
        self._queues.move(claim, Phase.ENDED)
        self._claims.remove(claim)

    def end_all(self, evictee: Evictee) -> None:
        """End all claims on the pod."""
        for claim in evictee.claims:
            self.end(claim)

    def stay(self, node: str, uid: str) -> None:
        """No call is in progress: the pod counts as one that stays on its node, if it still exists."""
        pod = self._cluster.pod(node, uid)
        self._limiter.stay(uid)
        if pod is not None:
            self._spread.stay(pod)

    # -- time -----------------------------------------------------------------------------------------------------

    def let_time_pass(self, overall_rate: float | None) -> None:
        """Report pods that will miss, or missed, a hard deadline; retry those that a budget blocked long enough."""
        now = self._step.now
        self._step.report(*self.reclaims.missed(now.wall))
        self._step.report(*self.reclaims.forecast(overall_rate, now))
        while (key := self.deletions.pop_due(now.monotonic)) is not None:
            claim = self._claims.by_key[key]
            if claim.phase is Phase.BLOCKED:
                self._queues.ask_again(claim)

    def ask_blocked_again(self, state: NodeState) -> None:
        """The node's labels changed: it may be in another zone, to which other limits apply."""
        for uid in state.pods:
            evictee = self._claims.evictees.get(uid)
            for claim in evictee.claims if evictee is not None else ():
                if claim.phase is Phase.BLOCKED:
                    self._queues.ask_again(claim)
