"""The sentences of Events, logs, status and ``explain``: which taint, why, until when."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

from msgspec.structs import replace

from taintwarden.engine import rfc3339
from taintwarden.engine.commands import BadNodes, GuardReport
from taintwarden.engine.evaluate import TaintVerdict, VerdictKind
from taintwarden.engine.limits import refusal
from taintwarden.engine.limits.zones import ZoneState
from taintwarden.engine.model import Gates, Pod, Taint, Toleration
from taintwarden.engine.operators import ROWS, SEMVER, TYPED, why_not
from taintwarden.engine.policy import Mode, OnInvalidValue, Policy
from taintwarden.engine.reported_status import MAX_STUCK, InvalidTaint, LimitStatus, StuckPod

NOT_EVICTED = "not-evicted"
MISSED = {
    NOT_EVICTED: "It was not evicted in time and ends with its node",
    "grace-cut": "It had less time to stop than its terminationGracePeriodSeconds",
}
"""Reason of a missed deadline -> sentence about the pod."""
HAS_TRIPPED = "it has tripped"
"""Reason why a guard holds pods, even if fewer pods are left than it allows."""
PACED = "evictions continue at a pace"
"""Effect of a tripped guard with ``action: Pace``."""
PUBLISHER = "taintwarden-publisher"
"""Field manager of the taints that the publisher writes."""
DAY_SECONDS = 86_400


def relative(at: float, now: float) -> str:
    """Return the time from ``now`` to ``at`` in its two largest units: ``in 4m30s``, ``2d3h ago`` or ``now``."""
    distance = duration(abs(at - now))
    if distance == "0s":
        return "now"
    return f"in {distance}" if at > now else f"{distance} ago"


def ago(at: float, now: float) -> str:
    """Return the time since ``at`` in its two largest units: ``2d3h ago``; ``0s ago`` if ``at`` is in the future."""
    return f"{duration(max(now - at, 0.0))} ago"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units, such as ``4m30s``."""
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
    """Return a number of pods, such as ``1 pod`` or ``3 pods``."""
    return several(number, "pod")


def several(number: int, what: str) -> str:
    """Return a number with its noun, which gets an ``s`` unless the number is 1."""
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def following(listed: Sequence[object], what: str, *, is_full: bool) -> str:
    """Return how many follow the first. ``is_full``: True if a status lists no more, though there may be others."""
    return f"and {'at least ' * is_full}{several(len(listed) - 1, f'more {what}')}"


def in_spite_of(budgets: Sequence[str]) -> str:
    """Return the phrase for a deletion that these PodDisruptionBudgets did not allow."""
    return f"in spite of PodDisruptionBudget{'s' * (len(budgets) > 1)} {', '.join(budgets)}"


def leaving(number: int, stuck: Sequence[StuckPod]) -> str:
    """Return the number of pods that terminate, and which of them should have ended."""
    terminate = f"{pods(number)} {'terminates' if number == 1 else 'terminate'}"
    return "; ".join(filter(None, (terminate, not_ended(stuck))))


def not_ended(stuck: Sequence[StuckPod]) -> str:
    """Return which pod should have ended, and what may keep it; empty if there is none."""
    if not stuck:
        return ""
    first, others = stuck[0], f" ({following(stuck, 'pod', is_full=len(stuck) == MAX_STUCK)})" * (len(stuck) > 1)
    return f"{first.namespace}/{first.name} on {first.node} should have ended at {first.since}{others}: {what_keeps()}"


def what_keeps(finalizers: Sequence[str] | None = None, *, is_finished: bool = False) -> str:
    """Return what may keep a pod that should have ended. ``finalizers``: those of the pod; None if unknown."""
    named = ["a finalizer"] if finalizers is None else [f"finalizer {finalizer}" for finalizer in finalizers]
    if is_finished:
        return f"{' or '.join(named) or 'a volume'} keeps it"
    return f"{', '.join([*named, 'a volume'])}, or a kubelet that does not answer keeps it"


def held(limit: LimitStatus, detail: str = "") -> str:
    """Return the limit, the number of pods that it delays, the start, the reason, and the end of the delay if known."""
    why = detail or HAS_TRIPPED if limit.limit == refusal.GUARD else why_held(limit.limit, detail)
    text = f"{limit.limit} delays {limit.pods} since {limit.since}: {why}"
    return text if limit.until is None else f"{text}; {next_one(limit.limit, f'at {limit.until}')}"


def next_one(limit: str, when: str) -> str:
    """Return the end of a wait for a limit or after a failed call. Pods that stop or are replaced may end it early."""
    if limit in (refusal.FAILING, refusal.CALLS):
        return f"the next call is made {when}"
    is_bound = limit in (refusal.NODE, refusal.WORKLOAD, refusal.BUDGET)
    return f"the next may be evicted {when}" + (" at the latest" if is_bound else "")


def waiting(limit: str, policy: str, detail: str) -> str:
    """Return the reason why due pods wait, in one clause."""
    why = why_held(limit, detail)
    if limit == refusal.GUARD:
        return why.replace("the guard", f"the guard of policy {policy}", 1)
    return why if limit in (refusal.FAILING, refusal.BUDGET) else f"limit {limit} of policy {policy}: {why}"


def why_held(limit: str, detail: str) -> str:
    """Return why a limit delays pods. ``detail``: its message about one of them.

    A guard without a detail has tripped. The details of the limits ``budget``, ``calls`` and ``place``, and of armed
    guards, are the whole reason.
    """
    if (limit in (refusal.BUDGET, refusal.CALLS, refusal.PLACE) and detail) or detail.startswith("the guard "):
        return detail
    why = refusal.DELAYS[limit].why if limit in refusal.DELAYS else limit
    if limit == refusal.GUARD and PACED in detail:
        why = "the guard paces evictions"
    elif limit == refusal.GUARD and not detail:
        why += f": {HAS_TRIPPED}"
    return why + (f": {detail}" if detail else "")


def blind(streams: Iterable[str]) -> str:
    """Return that nothing is evicted, because the operator is cut off from these streams."""
    return f"nothing is evicted: {no_changes(streams)}, so it cannot know which pods have to leave"


def no_changes(streams: Iterable[str]) -> str:
    """Return that the operator is cut off from these streams."""
    return f"the operator receives no changes of {', '.join(streams)}"


def devices_unserved(missing: Iterable[str]) -> str:
    """Return that the API server does not serve these resources, and which Kubernetes version does."""
    text = " and ".join(sorted(missing))
    return f"the API server does not serve {text} of resource.k8s.io/v1, which it does from Kubernetes 1.34"


def devices_unknown(why: str) -> str:
    """Return that no taint of a device evicts a pod, and why devices are unknown."""
    return f"no taint of a device evicts a pod: {why}"


def not_replaced(why: str) -> str:
    """Return the effect of a refused request for a replacement, and the reason."""
    return f"pods get no replacement first: {why}"


def would_be_due(due: int, later: int) -> str:
    """Return the effect of a pause: the numbers of pods that would be due now, and later, without it."""
    return f"paused, {pods(due)} would be due" + (f", {later} more later" if later else "")


def paused(due: int, later: int, first: str | None) -> str:
    """Return the effect of a pause for a later reader. The first deadline is named until it has passed."""
    if due or first is None:
        return would_be_due(due, later)
    return f"paused, {pods(later)} would have to leave, the first at {first}"


def zone_health(nodes: int, unhealthy: int, state: str) -> str:
    """Return the state of a zone, and the number of its unhealthy nodes."""
    text = f"{state}, {unhealthy} of {several(nodes, 'node')} {'is' if unhealthy == 1 else 'are'} unhealthy"
    few = state == ZoneState.NORMAL and 0 < nodes == unhealthy
    return text + (" (too few nodes for another state)" if few else "")


def due(text: str, seconds_left: float) -> str:
    """Return a deadline with the time left: ``at 22:58:31Z, in 36s``, or ``overdue since 22:58:31Z (36s)``."""
    if seconds_left < 0:
        return f"overdue since {text} ({duration(-seconds_left)})"
    return f"at {text}, {relative(seconds_left, 0)}"


def tripped(policy: Policy, guard: GuardReport, scope: str) -> str:
    """Return the effect of a tripped guard, its current counts, and the nodes that still make pods leave.

    ``scope``: text that names the namespace which it holds; empty if it holds all pods.
    """
    holds, window = guard.halts and policy.mode is not Mode.DRY_RUN, duration(guard.window_seconds)
    effect = f"it holds {scope} only" if scope and policy.mode is not Mode.PAUSED else "no pod is evicted"
    if guard.pace is not None:
        effect = paced(guard) if policy.mode is Mode.ENFORCE else effect
    elif not holds:
        effect = "it holds nothing" + " (action Report)" * (not guard.halts and policy.mode is not Mode.DRY_RUN)
    counted = f"{pods(guard.due)} due in the next {window}"
    if guard.evicted:
        whole = guard.evicted + guard.due
        counted = f"{guard.evicted} evicted in the last {window} + {guard.due} due in the next {window} = {whole}"
    text = f"{effect}: {counted}, {guard.allowance} {'is' if guard.allowance == 1 else 'are'} allowed"
    if holds and guard.evicted + guard.due <= guard.allowance:
        text += "; it holds them until none of the wave has to leave any more"
    return text + still_bad(guard.bad)


def written_by(manager: str, operation: str, at: str, key: str) -> str:
    """Return the client that last wrote the taints of a node. For the publisher, also name the object to correct."""
    text = f"last written by {manager or 'an unnamed client'} ({operation}, {at})"
    return f"{text}: correct the TaintPublisher with key {key}" if manager == PUBLISHER else text


def paced(guard: GuardReport) -> str:
    """Return how a tripped guard with ``action: Pace`` lets evictions continue; empty if it does not."""
    if guard.pace is None:
        return ""
    pods, ends_at = guard.pace
    text = f"{PACED} of {guard.allowance} in {duration(guard.window_seconds)}, {pods} left"
    if ends_at is None:
        return f"{text}, of which none may be evicted"
    day, _, time = rfc3339.at(ends_at).partition("T")
    is_today = ends_at < (guard.record.tripped_at or 0.0) + DAY_SECONDS
    return f"{text}, until about {'' if is_today else f'{day} '}{time[:5]} UTC"


def still_bad(bad: BadNodes) -> str:
    """Return a sentence, to follow another, that names some of the nodes that make pods leave; empty without any."""
    if not bad.named:
        return ""
    named = ", ".join(
        f"{node.name} {_short(node.taint)}" + ("" if node.before is None else f" ({node.before or 'no value'} before)")
        for node in bad.named
    )
    more = f" and {bad.number - len(bad.named)} more" if bad.number > len(bad.named) else ""
    return f". Still bad: node{'s' if bad.number > 1 else ''} {named}{more}"


def _short(taint: Taint) -> str:
    """Return a taint without its effect."""
    return f"{taint.key}={taint.value}" if taint.value else taint.key


def without_advice(message: str, policy: str) -> str:
    """Return the message of the condition GuardTripped without its advice: the effect, counts and bad nodes."""
    for mode, holds in product(Mode, (True, False)):
        message = message.removesuffix(guard_advice(policy, mode, holds=holds))
    return message.strip().removesuffix(".")


def pruned(fields: Sequence[str]) -> str:
    """Return the guard's fields that an older CustomResourceDefinition drops; empty if none. A restart loses them."""
    named = " and ".join(f"status.guard.{field}" for field in fields)
    return f"The installed CustomResourceDefinition drops {named}: kubectl apply -f crds/" if fields else ""


def guard_advice(policy: str, mode: Mode = Mode.ENFORCE, *, holds: bool = True) -> str:
    """Return the advice about a tripped guard, the cautious step first. ``holds``: False with ``action: Report``."""
    check = f"check with taintwarden plan --enforce {policy} what would be evicted"
    if mode is not Mode.ENFORCE:
        before = "it enforces" if mode is Mode.DRY_RUN else f"you resume it (taintwarden resume {policy})"
        return f"Correct the cause, and {check}, before {before}"
    release = f". Only if you want all of them evicted: taintwarden guard reset {policy}" * holds
    return (
        f"Pause the policy (taintwarden pause {policy}), correct the cause, and {check}; the guard is armed again when "
        f"none of these pods has to leave{release}"
    )


def tripped_advice(policy: Policy, guard: GuardReport) -> str:
    """Return the advice about the guard of a policy, which has tripped."""
    return guard_advice(policy.name, policy.mode, holds=guard.halts or guard.pace is not None)


def all_nodes_unhealthy(policy: Policy, waiting: int, nodes: int) -> str:
    """Return why nothing is evicted while all nodes are unhealthy, and what to do about it."""
    wait = f"{pods(waiting)} {'waits' if waiting == 1 else 'wait'}"
    advice = "Check the monitoring, and check with taintwarden plan what would be evicted"
    if policy.limits.guard.is_limit and policy.mode is Mode.ENFORCE:
        them = "it" if waiting == 1 else "them"
        advice += f". Only if you want {'this pod' if waiting == 1 else 'all these pods'} evicted, release {them}: "
        advice += f"taintwarden guard reset {policy.name}"
    return f"All {nodes} nodes are unhealthy, which looks like a fault of the monitoring: {wait}. {advice}"


def comes_back(pod: Pod) -> str:
    """Return the advice about a workload that comes back to a node that it has to leave."""
    owner = pod.shared.owner
    if owner is not None and owner.kind == "DaemonSet":
        return "A DaemonSet has no other node: see exclude.daemonSets, or keep it off by its node affinity"
    return (
        "The scheduler places it there because it does not compare the taint. To prevent that, set placement: true for "
        "the taint in the policy and label its namespace taintwarden.io/inject=true, or use the scheduler extender; a "
        "pod that names its node comes back regardless"
    )


def invalid_value(verdict: TaintVerdict) -> str:
    """Return why a taint's value cannot be compared."""
    return invalid_taint(verdict.taint, verdict.policy, verdict.tolerations.relevant_to(verdict.taint.key))


def invalid_effect(verdict: TaintVerdict, *, held: bool) -> str:
    """Return the effect of an invalid value on pods. ``held``: True if it evicts none or its last valid one decides."""
    if not held:
        fate = "are" if verdict.policy.mode is Mode.ENFORCE else "would be"
        return f"pods with a comparison toleration {fate} evicted (onInvalidValue: Evict)"
    if verdict.judged_value is None:
        return "it evicts no pod, as no valid value of it is known"
    return f"pods with a comparison toleration are judged by its last valid value, {verdict.judged_value}"


def not_comparable(taint: InvalidTaint, mode: str, on_invalid_value: str) -> str:
    """Return that a taint cannot be compared, and the effect on its pods, or on later pods if it concerns none now."""
    who, is_one = pods(taint.pods) if taint.pods else "pods that compare it", taint.pods == 1
    effect = f"{who} {'is' if is_one else 'are'} judged by its last valid value, or {'stays' if is_one else 'stay'}"
    if on_invalid_value == OnInvalidValue.EVICT:
        must = "would have" if mode != Mode.ENFORCE else "has" if is_one else "have"
        effect = f"{who} {must} to leave, since onInvalidValue is Evict"
    return f"{taint.taint} on {taint.node} cannot be compared: {effect}"


def invalid_taint(taint: Taint, policy: Policy | None, tolerations: Iterable[Toleration]) -> str:
    """Return why the value of a taint is invalid for the type in the policy, or for the operators of the tolerations.

    Empty if it can be compared.
    """
    selector = policy.selector_for(taint) if policy else None
    wanted = selector.value_type if selector else None
    asked = [row.family for one in tolerations if (row := ROWS.get(one.operator)) and row.family.value_type]
    families = [family for family in asked if wanted in (None, family.value_type)]
    if wanted is not None:
        families.insert(0, TYPED[wanted])
    # Without a type and a comparison, the value is read as a semantic version.
    return next((fault for family in families or [SEMVER] if (fault := family.explain(taint.value))), "")


@lru_cache(maxsize=256)  # enough for the pods of some nodes; each verdict holds all tolerations of a pod
def why(verdict: TaintVerdict, gates: Gates | None = None) -> str:
    """Return the reason of a verdict, in one clause."""
    taint = verdict.taint
    judged = f", judged by its last valid value {verdict.judged_value}," if verdict.judged_value is not None else ""
    match verdict.kind:
        case VerdictKind.HELD:
            return f"taint {taint} cannot be compared and never could, so it evicts no pod"
        case VerdictKind.TOLERATED:
            return f"taint {taint}{judged} is tolerated by {verdict.toleration}"
        case VerdictKind.TOLERATED_FOR:
            return f"taint {taint}{judged} is tolerated by {verdict.toleration} only{_protected(verdict)}"
        case VerdictKind.VIOLATED if verdict.policy.quarantine:
            grace = f", {verdict.seconds} s of grace" if verdict.seconds else ""
            return f"taint {taint}{judged} is a quarantine, and no toleration counts{grace}"
        case VerdictKind.VIOLATED:
            seen = taint if verdict.judged_value is None else Taint(taint.key, verdict.judged_value, taint.effect)
            reasons = why_not(verdict.tolerations.relevant_to(taint.key), seen, gates or Gates())
            # Omit its seconds, shown as the grace: "for 30s does not hold" would mean that it holds after them.
            text = "; ".join(
                f"{replace(toleration, toleration_seconds=None)} {answer}" for toleration, answer in reasons
            )
            grace = (f", {verdict.seconds} s of grace" if verdict.seconds else "") + _protected(verdict)
            return f"taint {taint}{judged} is not tolerated ({text or 'no toleration for it'}){grace}"


def _protected(verdict: TaintVerdict) -> str:
    seconds = verdict.protected_seconds
    return f", not within {duration(seconds)} of its binding (karpenter.sh/do-not-disrupt)" if seconds else ""


def no_value(source: str, key: str, nodes: int) -> str:
    """Return that no node has the source of a derived taint. ``nodes``: number of nodes that the policy selects."""
    return f"none of {several(nodes, 'node')} has {source}, so none has the taint {key} and no pod is evicted by it"
