"""The pods that have to leave: each verdict sets, moves or clears a deadline, and those who look ahead hear of it."""

from collections.abc import Mapping

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits import Limiter
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.pending import Pending, Phase
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.machine.reclaims import Reclaims
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.model import Pod, Policy
from taintwarden.engine.spread import Spread

ANNOUNCED_AHEAD_SECONDS = 1.0
"""An eviction that is due sooner is not announced: the next thing anybody hears is that it was carried out."""


class Leavers:
    """Pods with a deadline, by UID.

    Args:
        step: the step under way.
        nodes: what is known of the cluster.
        queues: where pods stand.
        limiter: the limits, whose guards look ahead.
        spread: the numbers of pods that stand.

    """

    def __init__(
        self, step: Step, nodes: Mapping[str, NodeState], queues: Queues, limiter: Limiter, spread: Spread
    ) -> None:
        self.pending: dict[str, Pending] = {}
        self.reclaims = Reclaims()
        self.deletions = DeadlineQueue()
        """Pods that a budget holds, by when they are deleted instead."""
        self._step = step
        self._nodes = nodes
        self._queues = queues
        self._limiter = limiter
        self._spread = spread

    def judged(self, pod: Pod, verdict: TaintVerdict, due_at: float) -> None:
        """The pod has to leave: this replaces whatever was decided before."""
        pending = self.pending.get(pod.uid)
        if pending is None:
            pending = self.pending[pod.uid] = Pending(pod, verdict, due_at)
            pending.retry_at = self._settles_at(verdict.policy)
            self._queues.wait(pending)
        else:
            self._replace(pending, pod, verdict, due_at)
        if pending.phase not in (Phase.IN_FLIGHT, Phase.LEAVING, Phase.REHEARSED):
            self.expect(pending)
        self._announce(pending)

    def _replace(self, pending: Pending, pod: Pod, verdict: TaintVerdict, due_at: float) -> None:
        before, policy = pending.pod, pending.policy
        same_taint = pending.verdict.taint == verdict.taint
        same = pending.due_at == due_at and policy == verdict.policy and before.shared is pod.shared
        queued = pending.phase in (Phase.WAITING, Phase.READY, Phase.HELD, Phase.REHEARSED)
        if not same:
            if queued:
                self._queues.remove(pending)
            if policy.name != verdict.policy.name:
                self.forget(pending)
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

    def _settles_at(self, policy: Policy) -> float:
        """Until when an eviction that was decided now waits, so that the guard sees a wave whole before its first."""
        guard = self._limiter.guards.get(policy.name)
        return 0.0 if guard is None else self._step.now.wall + guard.settings.settle_seconds

    def _announce(self, pending: Pending) -> None:
        step = self._step
        if not pending.announced and pending.due_at > step.now.wall + ANNOUNCED_AHEAD_SECONDS and step.leading:
            pending.announced = True
            step.tell(commands.Scheduled(pending.pod, pending.verdict, pending.due_at))

    def expect(self, pending: Pending) -> None:
        """Let those know who look ahead."""
        self.reclaims.expect(pending)
        guard = self._limiter.guards.get(pending.policy.name)
        if guard is not None and not self._limiter.departures.is_leaving(pending.pod.uid):
            guard.expect(pending.pod.uid, pending.due_at, self._step.now)

    def forget(self, pending: Pending) -> None:
        """It is not ahead any more."""
        self.reclaims.forget(pending.pod.uid)
        self.deletions.cancel(pending.pod.uid)
        guard = self._limiter.guards.get(pending.policy.name)
        if guard is not None:
            guard.forget(pending.pod.uid)

    def cancel(self, uid: str) -> None:
        """The pod may stay; whoever heard that it leaves hears that, too."""
        pending = self.pending.get(uid)
        if pending is None or pending.phase is Phase.LEAVING:
            return
        if pending.phase is Phase.IN_FLIGHT:
            pending.unwanted = True
            return
        tried = pending.attempts or pending.blocked_since is not None or pending.bounce_until
        if pending.announced or tried or pending.phase is Phase.REHEARSED:
            self._step.tell(commands.Cancelled(pending.pod, pending.verdict))
        self.drop(pending)

    def gone(self, uid: str) -> None:
        """The pod is not there any more. A call under way is still to be answered."""
        pending = self.pending.get(uid)
        if pending is None:
            return
        if pending.phase is Phase.IN_FLIGHT:
            pending.unwanted = True
            return
        self.drop(pending)

    def drop(self, pending: Pending) -> None:
        """It need not leave any more, or has left."""
        self._queues.remove(pending)
        self.forget(pending)
        del self.pending[pending.pod.uid]
        self.stay(pending.pod)

    def stay(self, pod: Pod) -> None:
        """Whatever call was under way, the pod counts as standing on its node if it does."""
        self._limiter.stay(pod)
        if self.is_here(pod):
            self._spread.count(pod)

    def is_here(self, pod: Pod) -> bool:
        """Whether the watch shows it."""
        state = self._nodes.get(pod.node)
        return state is not None and pod.uid in state.pods

    def foretell(self, overall_rate: float | None) -> None:
        """Tell who will miss, or has missed, a hard deadline; wake whom a budget has held long enough."""
        now = self._step.now
        self._step.tell(*self.reclaims.missed(now.wall))
        self._step.tell(*self.reclaims.foretell(overall_rate, now))
        while (uid := self.deletions.pop_due(now.wall)) is not None:
            pending = self.pending[uid]
            if pending.phase is Phase.HELD:
                self._queues.ask_again(pending)

    def ask_held_again(self, state: NodeState) -> None:
        """The node's labels changed: it may be in another zone, where other limits hold."""
        for uid in state.pods:
            if uid in self.pending and self.pending[uid].phase is Phase.HELD:
                self._queues.ask_again(self.pending[uid])
