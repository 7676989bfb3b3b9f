"""What other packages may read of a claim: a frozen value, created on request."""

from collections.abc import Collection

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.limits.refusal import ALL_ZONES_FULL, BUDGET_LIMITS, GUARD, STALE_VIEW, WINDOW
from taintwarden.engine.machine.claims import Claim, Evictee, Phase
from taintwarden.engine.machine.cluster import Cluster
from taintwarden.engine.machine.events import Outcome
from taintwarden.engine.machine.evictions import Evictions
from taintwarden.engine.machine.queues import Lane
from taintwarden.engine.model import MonotonicTime, Pod, Policy, WallTime


class ClaimView(msgspec.Struct, frozen=True):
    """One policy evicts one pod: when, why, and the phase of that."""

    pod: Pod
    verdict: TaintVerdict
    due_at: WallTime
    phase: Phase
    limit: str = ""
    """The limit that refuses it now."""
    until: MonotonicTime | None = None
    """When that limit may admit it, if known."""
    detail: str = ""
    """The message of the limit or the API server."""
    budgets: tuple[str, ...] = ()
    """``namespace/name`` of the PodDisruptionBudgets that block it."""
    outcome: Outcome | None = None
    """The outcome of the last call, if that did not evict the pod."""
    ready_since: MonotonicTime = MonotonicTime(0.0)

    @property
    def policy(self) -> Policy:
        """The policy that evicts the pod."""
        return self.verdict.policy


class ClaimViews:
    """Makes views of claims.

    Args:
        cluster: the pods.
        budgets: the PodDisruptionBudgets.
        evictions: the refusals that concern all pods of a policy.
        blind: the streams that are cut off from the API server.

    """

    def __init__(self, cluster: Cluster, budgets: Budgets, evictions: Evictions, blind: Collection[str]) -> None:
        self._cluster = cluster
        self._budgets = budgets
        self._evictions = evictions
        self._blind = blind

    def of(self, evictee: Evictee) -> tuple[ClaimView, ...]:
        """Of all claims on a pod: enforced ones first, then the earliest deadline."""
        standing = (claim for claim in evictee.claims if not claim.withdrawn)
        ordered = sorted(standing, key=lambda one: (not one.is_enforced, one.due_at, one.key))
        return tuple(view for claim in ordered if (view := self.view(claim, evictee)) is not None)

    def view(self, claim: Claim, evictee: Evictee) -> ClaimView | None:
        """Of one claim; None if its pod is not known."""
        pod = self._cluster.pod(claim.node, claim.uid)
        if pod is None and evictee.call is not None:
            pod = evictee.call.order.pod
        if pod is None:
            return None
        holding = self.holding(claim)
        detail = claim.refusal.detail if claim.refusal else claim.message
        return ClaimView(
            pod,
            claim.verdict,
            claim.due_at,
            claim.phase,
            limit=holding[0] if holding else "",
            until=holding[1] if holding else None,
            detail=detail,
            budgets=tuple(self.budgets(claim, pod)),
            outcome=claim.outcome,
            ready_since=claim.ready_since,
        )

    def holding(self, claim: Claim) -> tuple[str, MonotonicTime | None] | None:
        """The limit that refuses a due claim, and until when; None if none does."""
        if claim.phase not in (Phase.READY, Phase.BLOCKED):
            return None
        if self._blind:
            return STALE_VIEW, None
        refusal, of_all = claim.refusal, self._evictions.refused.get(Lane.of(claim.policy))
        if claim.phase is Phase.READY or (of_all is not None and of_all.limit in (WINDOW, GUARD, ALL_ZONES_FULL)):
            refusal = of_all  # all claims behind the first of their lane wait for the same limit
        return None if refusal is None else (refusal.limit, refusal.until)

    def budgets(self, claim: Claim, pod: Pod) -> list[str]:
        """The budgets that block a due pod, by their status or by an answer of the API server."""
        blocked = claim.phase is Phase.BLOCKED and claim.limit in BUDGET_LIMITS
        asked = claim.phase is Phase.DELAYED and claim.outcome in (Outcome.BLOCKED, Outcome.MISCONFIGURED)
        return [str(budget) for budget in self._budgets.of(pod.shared)] if blocked or asked else []
