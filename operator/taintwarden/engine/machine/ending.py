"""How claims end, and what counts no longer then."""

from collections.abc import Iterable

from taintwarden.engine.guard import Guard
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.claims import Claim, Evictee, Phase
from taintwarden.engine.machine.reclaims import Reclaims
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Pod


class Ending:
    """Ends claims: the counterpart of :class:`~.judging.Judging`, which makes them.

    Args:
        world: the state.
        reclaims: reports hard deadlines that pods miss.

    """

    def __init__(self, world: World, reclaims: Reclaims) -> None:
        self._world = world
        self._reclaims = reclaims

    def withdraw(self, claim: Claim, *, node_gone: bool = False) -> None:
        """A policy no longer evicts the pod; if an eviction was expected, that is reported.

        A call that was issued is asked whether its decision stands before it is sent, and again when it is answered.
        """
        if claim.phase in (Phase.LEAVING, Phase.IN_FLIGHT):
            return
        pod = self._world.cluster.pod(claim.node, claim.uid)
        was_expected = claim.was_expected
        self.end(claim)
        if pod is not None and was_expected:
            self.report_cancelled(claim, pod, node_gone=node_gone)

    def rest(self, claim: Claim, pod: Pod, *, was_expected: bool) -> None:
        """The policy still evicts the pod, but does not act: it was paused, or leaves the pod on its node."""
        guard = self._guard(claim)
        if guard is not None and claim.grounds.exempt:
            guard.rest(claim.uid)
        claim.rest()
        if was_expected:
            self.report_cancelled(claim, pod)

    def report_cancelled(self, claim: Claim, pod: Pod, *, node_gone: bool = False) -> None:
        """If another policy's claim remains, the pod still has to leave and nothing is reported."""
        if not any(one.is_enforced for one in self._world.claims.of(claim.uid)):
            self._world.report(commands.Cancelled(pod, claim.verdict, node_gone))

    def cancel(self, uids: Iterable[str]) -> None:
        """The node of these pods is gone: no taint evicts them."""
        for uid in uids:
            for claim in self._world.claims.of(uid):
                pod = self._world.cluster.pod(claim.node, uid)
                if pod is not None:
                    self._world.report(*self._reclaims.miss(claim, pod, "not-evicted"))
                self.withdraw(claim, node_gone=True)

    def gone(self, uid: str) -> None:
        """The pod is gone. A call in progress is still to be answered."""
        world = self._world
        evictee = world.claims.evictees.get(uid)
        if evictee is None:
            return
        for claim in evictee.claims:
            if claim.phase is not Phase.IN_FLIGHT:
                self._close(claim)
        if uid not in world.claims.evictees:
            world.limiter.guards.stay(uid)

    def end(self, claim: Claim) -> None:
        """The claim ends. With the last one the pod counts as one that stays on its node, if it still exists."""
        self._close(claim)
        if claim.uid not in self._world.claims.evictees:
            self.stay(claim.node, claim.uid)

    def end_all(self, evictee: Evictee) -> None:
        """End all claims on the pod."""
        for claim in evictee.claims:
            self.end(claim)

    def _close(self, claim: Claim) -> None:
        world = self._world
        evictee = world.claims.evictees[claim.uid]
        if evictee.call is not None and evictee.call.claim is claim:
            evictee.call = None
        if claim.phase is not Phase.LEAVING:  # its call was accepted, so no eviction is ahead
            self.forget(claim)
        world.queues.move(claim, Phase.ENDED)
        world.claims.remove(claim)

    def forget(self, claim: Claim) -> None:
        """The eviction is not ahead any more."""
        if self._reclaims.claims:
            self._reclaims.forget(claim.key)
        if (guard := self._guard(claim)) is not None:
            guard.forget(claim.uid)

    def _guard(self, claim: Claim) -> Guard | None:
        return self._world.limiter.guards.by_policy.get(claim.policy.name)

    def stay(self, node: str, uid: str) -> None:
        """No call is in progress: the pod counts as one that stays on its node, if it still exists."""
        world = self._world
        pod = world.cluster.pod(node, uid)
        world.limiter.stay(uid)
        if pod is not None:
            world.spread.stay(pod)
