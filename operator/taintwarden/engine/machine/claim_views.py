"""Read access to claims for other packages: frozen values, created on request."""

import msgspec
from msgspec.structs import replace

from taintwarden.engine.evaluate import Grounds, TaintVerdict
from taintwarden.engine.limits.protocol import Replacement
from taintwarden.engine.limits.refusal import BUDGET, FAILING, GUARD, PLACE, VIEW, Refusal
from taintwarden.engine.machine.claims import Claim, Evictee, Phase
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import MonotonicTime, Pod, WallTime
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy
from taintwarden.engine.rfc3339 import at

BLIND = "the operator receives no changes of some objects from the API server"
ACCEPTED = "the API server accepted the eviction, and the pod is not seen to leave yet"
SETTLING = "the guard waits for the rest of the wave (settleSeconds)"


class ClaimView(msgspec.Struct, frozen=True):
    """Decision of one policy to evict one pod: when, why, and its phase."""

    pod: Pod
    verdict: TaintVerdict
    due_at: WallTime
    phase: Phase
    limit: str = ""
    """Limit that refuses it now; empty if none does."""
    until: MonotonicTime | None = None
    """Time at which that limit may admit it, if known."""
    detail: str = ""
    """Message of the limit or the API server."""
    budgets: tuple[str, ...] = ()
    """``namespace/name`` of the PodDisruptionBudgets that block it."""
    outcome: Outcome | None = None
    """Outcome of the last call that did not evict the pod; None if there was none."""
    attempts: int = 0
    """Number of calls that did not evict the pod."""
    grounds: Grounds | None = None
    deployment: str = ""
    """Deployment that is or was asked for a replacement first; empty if the pod is evicted."""
    was_asked: bool = False
    """True if that Deployment was asked already."""

    @property
    def policy(self) -> Policy:
        """Policy that evicts the pod."""
        return self.verdict.policy

    @property
    def failed(self) -> Outcome | None:
        """Outcome of the last failed call while the claim is RETRYING, READY or IN_FLIGHT; otherwise None."""
        return self.outcome if self.phase in (Phase.RETRYING, Phase.READY, Phase.IN_FLIGHT) else None


class ClaimViews:
    """Creates views of claims.

    Args:
        world: the state.

    """

    def __init__(self, world: World) -> None:
        self._world = world

    def of(self, evictee: Evictee) -> tuple[ClaimView, ...]:
        """Views of the claims by which a pod still has to leave: enforced ones first, then by deadline."""
        standing = [claim for claim in evictee.claims if self.has_to_leave(claim)]
        ordered = sorted(standing, key=lambda claim: (not claim.is_enforced, claim.due_at, claim.key))
        return tuple(view for claim in ordered if (view := self.view(claim)) is not None)

    def has_to_leave(self, claim: Claim) -> bool:
        """True if the pod of a claim still has to leave. A call may have lost its reason since it was issued."""
        if claim.phase in (Phase.IN_FLIGHT, Phase.ACCEPTED):
            return self._world.grounds_of(claim) is not None
        return claim.phase is not Phase.ENDED

    def view(self, claim: Claim) -> ClaimView | None:
        """View of a claim; None if its pod is not known, such as a pod that was deleted during its call."""
        pod = self._world.cluster.pod(claim.node, claim.uid)
        if pod is None:
            return None
        refusal, replacement = self.current_refusal(claim), self._replacement(claim, pod)
        return ClaimView(
            pod,
            claim.verdict,
            claim.due_at,
            claim.phase,
            limit=refusal.limit if refusal else "",
            until=refusal.until if refusal else None,
            detail=refusal.detail if refusal else "",
            budgets=tuple(self.budgets(claim, pod)),
            outcome=claim.outcome,
            attempts=claim.attempts,
            grounds=claim.grounds,
            deployment=replacement.deployment.name if replacement else "",
            was_asked=replacement is not None and replacement.asked_at is not None,
        )

    def _replacement(self, claim: Claim, pod: Pod) -> Replacement | None:
        if claim.policy.eviction.replace_first is None:
            return None
        return self._world.limiter.replacements.of(claim.grounds, pod, self._world.now)

    def current_refusal(self, claim: Claim) -> Refusal | None:
        """Why a due claim waits; None if nothing delays it. ``limit`` is empty for calls accepted, or not yet slow."""
        phase = claim.phase
        if phase is Phase.IN_FLIGHT:
            return self._unanswered(claim)
        if phase is Phase.ACCEPTED:
            return Refusal("", detail=ACCEPTED)
        if phase is Phase.SETTLING:
            return self._settling(claim)
        if phase is Phase.RETRYING:
            return claim.refusal
        if phase not in (Phase.READY, Phase.BLOCKED):
            return None
        if self._world.blind:
            return Refusal(VIEW, detail=BLIND)
        refusals, lane = self._world.refusals, self._world.queues.lane_of(claim)
        found = refusals.of_claim(claim, lane)
        nodes = self._world.limiter.places.by_policy.get(claim.policy.name)
        if found is None or found.limit != PLACE or found.is_brief or nodes is None:
            return found
        if claim.node in nodes.held:  # it waits for its turn: only the first pods of its lane are checked
            return refusals.of_policy(lane.group) or refusals.lanes.get(lane)
        return replace(found, detail=nodes.describe_wait(claim.node))

    def _unanswered(self, claim: Claim) -> Refusal:
        since, is_slow = self._world.limiter.calls.begun(claim.uid)
        asked_at = at(self._world.now.wall_at(since))
        return Refusal(FAILING if is_slow else "", detail=f"requested at {asked_at}, the API server has not answered")

    def _settling(self, claim: Claim) -> Refusal:
        """Refusal of a due claim whose wave may still grow. Its guard may hold it by now."""
        guard = self._world.limiter.guards.by_policy.get(claim.policy.name)
        pod = self._world.cluster.pod(claim.node, claim.uid)
        is_held = guard is not None and pod is not None and guard.holds(pod.namespace)
        return Refusal(GUARD) if is_held else Refusal(GUARD, claim.settles_at, detail=SETTLING, is_brief=True)

    def budgets(self, claim: Claim, pod: Pod) -> list[str]:
        """Budgets that block a due pod, by their status or in an answer of the API server."""
        limit = claim.refusal.limit if claim.refusal is not None else ""
        blocked = claim.phase is Phase.BLOCKED and limit == BUDGET
        answered = claim.failed is not None and claim.failed.row.by_budget
        return [str(budget) for budget in self._world.limiter.budgets.of(pod.shared)] if blocked or answered else []
