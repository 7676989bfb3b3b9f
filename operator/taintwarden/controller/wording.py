"""The sentences of Events, logs, status and ``explain``: which taint, why, until when."""

import math
from datetime import UTC, datetime
from functools import lru_cache

from msgspec.structs import replace

from taintwarden.engine.evaluate import Kind, TaintVerdict
from taintwarden.engine.limits import refusal
from taintwarden.engine.matching.tolerations import why_not
from taintwarden.engine.model import Gates, Pod, Policy, Taint

END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The latest time of a calendar. It replaces all later times, as a huge ``tolerationSeconds`` means "very late"."""
_BEGINNING = datetime.min.replace(tzinfo=UTC).timestamp()
_END = END_OF_TIME.timestamp()

HOLDS = {
    refusal.WINDOW: "it is outside the windows of the policy",
    refusal.GUARD: "the guard has tripped, because too many would be evicted",
    refusal.GUARD_RECORD: "the guard waits for its record to be stored",
    refusal.ALL_ZONES_FULL: "every zone is Full, which looks like a fault of the monitoring",
    refusal.POLICY_RATE: "the rate of the policy",
    refusal.OVERALL_RATE: "the rate over all policies",
    refusal.PER_NODE: "the maximum number of pods of their node is terminating",
    refusal.PER_NAMESPACE: "the rate of their namespace",
    refusal.PER_ZONE: "the rate of their zone",
    refusal.ZONE_DEGRADED: "their zone is Degraded, and slowed down",
    refusal.ZONE_FULL: "their zone is Full, and slowed down",
    refusal.ZONE_HALTED: "their zone is small and Degraded, and halted",
    refusal.MAX_UNAVAILABLE: "their workload cannot lose another Ready pod now",
    refusal.WORKLOAD_UNKNOWN: "the number of desired pods of their workload is not known",
    refusal.BOUNCE: "their workload comes back to the node it is evicted from",
    refusal.BUDGET: "their PodDisruptionBudget allows no disruption now",
    refusal.SEVERAL_BUDGETS: "more than one PodDisruptionBudget selects them",
    refusal.BUDGET_UNREADABLE: "a PodDisruptionBudget of their namespace cannot be read",
    refusal.STALE_VIEW: "the operator is disconnected from the API server",
}
"""Limit -> why it delays pods."""


def at(moment: float) -> str:
    """A time as RFC 3339 in UTC, to the second."""
    return _written(math.floor(_within(moment)), "seconds")


def exactly(moment: float) -> str:
    """A time as Kubernetes' MicroTime, which is read back as the same time."""
    return _written(_within(moment), "microseconds")


def _within(moment: float) -> float:
    """The nearest moment that a calendar has. NaN counts as never."""
    return _END if math.isnan(moment) else min(max(moment, _BEGINNING), _END)


@lru_cache(maxsize=1_000)  # the pods of a wave are due at few times
def _written(moment: float, precision: str) -> str:
    return datetime.fromtimestamp(moment, UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def relative(at: float, now: float) -> str:
    """How far ``at`` is from ``now``, in the two largest units: ``in 4m30s``, ``2d3h ago``."""
    distance = duration(abs(at - now))
    if distance == "0s":
        return "now"
    return f"in {distance}" if at > now else f"{distance} ago"


def duration(seconds: float) -> str:
    """Seconds as people say them, in the two largest units."""
    rest = round(seconds)
    parts: list[str] = []
    for unit, size in (("y", 31_536_000), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"


def pods(number: int) -> str:
    """So many pods."""
    return several(number, "pod")


def several(number: int, what: str) -> str:
    """So many of something."""
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def held(limit: str, number: int, since: float, until: float | None) -> str:
    """Which limit delays how many pods, since when, why, and when the next may be evicted, if that is known."""
    told = f"{limit} holds {number} since {at(since)}: {HOLDS.get(limit, limit)}"
    return told if until is None else f"{told}; the next may be evicted at {at(until)}"


def waiting(limit: str, policy: str) -> str:
    """What a due pod waits for, in one clause."""
    if limit == refusal.GUARD:
        return f"the guard of policy {policy} has tripped"
    return f"limit {limit} of policy {policy}: {HOLDS.get(limit, limit)}"


def would_be_due(due: int, later: int) -> str:
    """What would follow without a pause: so many pods whose deadline has passed, and so many with one ahead."""
    return f"paused, {pods(due)} would be due" + (f", {later} more later" if later else "")


def due(moment: float | str, seconds_left: float) -> str:
    """A deadline as people read it: ``at 22:58:31Z, in 36s``, or ``overdue since 22:58:31Z (36s)``."""
    told = moment if isinstance(moment, str) else at(moment)
    if seconds_left < 0:
        return f"overdue since {told} ({duration(-seconds_left)})"
    return f"at {told}, {relative(seconds_left, 0)}"


def too_many(waiting: int, evicted: int, limit: int) -> str:
    """What a tripped guard has counted."""
    beside = f" beside {evicted} already evicted" if evicted else ""
    return f"{pods(waiting)} would be evicted within one window{beside}, and {limit} may be"


def guard_advice(policy: str) -> str:
    """What to do about a tripped guard, the cautious first."""
    return (
        f"Pause the policy (taintwarden pause {policy}), repair the cause, and check with taintwarden plan what would "
        f"be evicted; the guard is armed again when the cause is gone. Only if you want all these pods evicted: "
        f"taintwarden guard reset {policy}"
    )


def all_zones_full(policy: Policy, waiting: int, zones: int) -> str:
    """Why nothing is evicted while every zone is Full, and what to do about it."""
    count = "Its only zone is" if zones == 1 else f"All its {zones} zones are"
    wait = f"{pods(waiting)} {'waits' if waiting == 1 else 'wait'}"
    advice = "Check the monitoring, and check with taintwarden plan what would be evicted"
    if policy.limits.guard is not None:
        them = "it" if waiting == 1 else "them"
        advice += f". Only if you want {'this pod' if waiting == 1 else 'all these pods'} evicted, release {them}: "
        advice += f"taintwarden guard reset {policy.name}"
    return f"{count} Full, which looks like a fault of the monitoring: {wait}. {advice}"


def guard_reset(policy: str, generation: int) -> str:
    """The command that releases the evictions that the guard is holding now."""
    return f"kubectl annotate tep/{policy} taintwarden.io/guard-reset={generation} --overwrite"


def comes_back(pod: Pod) -> str:
    """What to do about a workload that comes back to a node that it has to leave."""
    owner = pod.shared.owner
    if owner is not None and owner.kind == "DaemonSet":
        return "A DaemonSet has no other node: see exclude.daemonSets, or keep it off by its node affinity"
    return (
        "The scheduler places it there because it does not know why the pod has to leave: the pod lacks a toleration "
        "that the scheduler compares, or node affinity (which label taintwarden.io/inject=true on its namespace adds "
        "for taints with placement), or it names its node"
    )


@lru_cache(maxsize=256)  # of the pods of some nodes; a verdict holds all tolerations of a pod
def why(verdict: TaintVerdict, gates: Gates | None = None) -> str:
    """Why a verdict is what it is, in one clause."""
    taint = verdict.taint
    judged = f", judged by its last valid value {verdict.judged_value}" if verdict.judged_value is not None else ""
    match verdict.kind:
        case Kind.HELD:
            return f"taint {taint} cannot be compared and never could, so it evicts no pod"
        case Kind.TOLERATED:
            return f"taint {taint}{judged} is tolerated by {verdict.toleration}"
        case Kind.TOLERATED_FOR:
            return f"taint {taint}{judged} is tolerated by {verdict.toleration} only"
        case Kind.VIOLATED:
            seen = taint if verdict.judged_value is None else Taint(taint.key, verdict.judged_value, taint.effect)
            reasons = why_not(verdict.tolerations.relevant_to(taint.key), seen, gates or Gates())
            # Without its seconds, which are shown as the grace: "for 30s does not hold" would mean that it then holds.
            told = "; ".join(
                f"{replace(toleration, toleration_seconds=None)} {answer}" for toleration, answer in reasons
            )
            grace = f", {verdict.seconds} s of grace" if verdict.seconds else ""
            return f"taint {taint}{judged} is not tolerated ({told or 'no toleration for it'}){grace}"
