"""The sentences people read in Events, logs, status and ``explain``: which taint, why, until when."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from msgspec.structs import replace

from taintwarden.engine.evaluate import Kind, TaintVerdict
from taintwarden.engine.limits import refusal
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import Gates, Pod, Taint, Toleration

END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Stands for everything later: no calendar goes further, and a huge ``tolerationSeconds`` means "very late"."""

HOLDS = {
    refusal.WINDOW: "it is outside the windows of the policy",
    refusal.GUARD: "the guard is open, since too many would leave",
    refusal.GUARD_RECORD: "the guard waits for its record to be stored",
    refusal.ALL_ZONES_FULL: "every zone is Full, which looks like a fault of the monitoring",
    refusal.POLICY_RATE: "the rate of the policy",
    refusal.OVERALL_RATE: "the rate over all policies",
    refusal.PER_NODE: "enough pods of their node are on their way out",
    refusal.PER_NAMESPACE: "the rate of their namespace",
    refusal.PER_ZONE: "the rate of their zone",
    refusal.ZONE_DEGRADED: "their zone is Degraded, and slowed down",
    refusal.ZONE_FULL: "their zone is Full, and slowed down",
    refusal.ZONE_HALTED: "their zone is small and Degraded, and halted",
    refusal.MAX_UNAVAILABLE: "their workload can spare no Ready pod now",
    refusal.WORKLOAD_UNKNOWN: "nobody knows how many pods their workload wants",
    refusal.BOUNCE: "their workload comes back to the node it is evicted from",
    refusal.BUDGET: "their PodDisruptionBudget allows no disruption now",
    refusal.SEVERAL_BUDGETS: "more than one PodDisruptionBudget selects them",
    refusal.BUDGET_UNREADABLE: "a PodDisruptionBudget of their namespace cannot be read",
    refusal.STALE_VIEW: "the operator is cut off from the API server",
}
"""Limit -> why it holds pods."""


def at(moment: float) -> str:
    """A time as RFC 3339 in UTC, to the second."""
    known = END_OF_TIME if moment >= END_OF_TIME.timestamp() else datetime.fromtimestamp(math.floor(moment), UTC)
    return known.strftime("%Y-%m-%dT%H:%M:%SZ")


def exactly(moment: float) -> str:
    """A time as Kubernetes' MicroTime, which is read back as the same time."""
    return datetime.fromtimestamp(min(moment, END_OF_TIME.timestamp()), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def pods(number: int) -> str:
    """So many pods."""
    return "1 pod" if number == 1 else f"{number} pods"


def held(limit: str, number: int, since: float, until: float | None) -> str:
    """Which limit holds so many pods, since when, why, and when the next may go, if that is known."""
    told = f"{limit} holds {number} since {at(since)}: {HOLDS.get(limit, limit)}"
    return told if until is None else f"{told}; the next may go at {at(until)}"


def guard_reset(policy: str, generation: int) -> str:
    """What a person types to let go what an open guard holds."""
    return f"kubectl annotate tep/{policy} taintwarden.io/guard-reset={generation} --overwrite"


def comes_back(pod: Pod) -> str:
    """What to do about a workload that comes back to where it may not stay."""
    owner = pod.shared.owner
    if owner is not None and owner.kind == "DaemonSet":
        return "A DaemonSet has no other node: see exclude.daemonSets, or keep it off by its node affinity"
    return (
        "Whoever places it there does not know why it has to leave: it lacks a toleration that the scheduler compares, "
        "or node affinity (which label taintwarden.io/inject=true on its namespace adds for taints with placement), "
        "or it names its node"
    )


@lru_cache(maxsize=4_096)
def why(verdict: TaintVerdict, gates: Gates | None = None) -> str:
    """Why a verdict is what it is, in one clause."""
    taint = verdict.taint
    judged = f", judged by its last valid value {verdict.judged_value}" if verdict.judged_value is not None else ""
    match verdict.kind:
        case Kind.HELD:
            return f"taint {taint} cannot be compared and never could, so it evicts nobody"
        case Kind.TOLERATED:
            return f"taint {taint}{judged} is tolerated by {verdict.toleration}"
        case Kind.TOLERATED_FOR:
            return f"taint {taint}{judged} is tolerated by {verdict.toleration} only"
        case Kind.VIOLATED:
            seen = taint if verdict.judged_value is None else Taint(taint.key, verdict.judged_value, taint.effect)
            reasons = refusals(verdict.tolerations.relevant_to(taint.key), seen, gates or Gates())
            # Without its seconds, which are told as the grace: "for 30s does not hold" reads as if it held again then.
            told = "; ".join(
                f"{replace(toleration, toleration_seconds=None)} {answer}" for toleration, answer in reasons
            )
            grace = f", {verdict.seconds} s of grace" if verdict.seconds else ""
            return f"taint {taint}{judged} is not tolerated ({told or 'no toleration for it'}){grace}"


def refusals(tolerations: Sequence[Toleration], taint: Taint, gates: Gates) -> list[tuple[Toleration, Match]]:
    """The tolerations that speak of this taint and do not hold, each with the reason."""
    answers = [(toleration, match(toleration, taint, gates)) for toleration in tolerations]
    return [
        (toleration, answer)
        for toleration, answer in answers
        if answer not in (Match.OTHER_KEY, Match.OTHER_EFFECT, Match.HOLDS)
    ]
