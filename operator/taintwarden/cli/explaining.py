"""Writes down what the machine says about a pod: from :mod:`judging` to the structure of :mod:`explanation`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from taintwarden.cli.budgets import covering, refusal
from taintwarden.cli.explanation import (
    Answer,
    BudgetExplanation,
    Fate,
    Passed,
    PodExplanation,
    PodReference,
    PolicyExplanation,
    ProfileExplanation,
    TaintExplanation,
)
from taintwarden.cli.facts import Facts
from taintwarden.cli.judging import Judged, untouchable
from taintwarden.cli.output import duration, relative
from taintwarden.controller import wording
from taintwarden.engine.evaluate import Kind
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.machine.pending import Pending
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import Gates, Method, Mode, Policy, Taint, TaintSelector, Toleration
from taintwarden.engine.profiles import effective, matching

NOT_SELECTED = "NotSelected"
_TIMED = (Kind.TOLERATED_FOR, Kind.VIOLATED)


def explain(facts: Facts, gates: Gates) -> PodExplanation:
    """The whole answer.

    Raises:
        BadInput: the facts do not suffice to tell, or a timestamp of the pod is none.

    """
    judged = Judged(facts, gates)
    meta, pod = facts.pod.metadata, judged.pod
    answer = PodExplanation(
        at=wording.at(facts.now),
        pod=PodReference(meta.namespace, meta.name, meta.uid, facts.pod.spec.node_name),
        fate=Fate.NOT_ACTED_ON,
        reason=untouchable(facts.pod),
        policies=[_policy(judged, policy) for policy in judged.policies]
        + [PolicyExplanation(name, None, selects=False, reason=why) for name, why in judged.problems.items()],
        profiles=list(_profiles(judged)),
        invalid_tolerations=[str(error) for issue in judged.issues for error in issue.errors],
        notes=list(_notes(judged)),
    )
    if pod is None:
        return answer
    answer.pod.bound_at = wording.at(pod.bound_at)
    answer.taints = [_taint(judged, taint, history) for taint, history in judged.taints()]
    answer.budgets_problem = facts.budgets_problem or None
    refusals = [(budget.metadata.name, refusal(budget, facts.pod)) for budget in covering(facts.budgets, facts.pod)]
    answer.budgets = [BudgetExplanation(name, not why, why or "it allows a disruption") for name, why in refusals]
    pending = judged.pending or judged.rehearsed
    if pending is None:
        answer.fate = Fate.STAYS
        answer.reason = "no taint that a policy acts on makes it leave"
    else:
        _fill_fate(answer, pending, judged)
    return answer


def _fill_fate(answer: PodExplanation, pending: Pending, judged: Judged) -> None:
    policy = next(one for one in judged.policies if one.name == pending.verdict.policy.name)
    evicts = policy.mode is Mode.ENFORCE and policy.name not in judged.rehearsed_policies
    answer.fate = Fate.LEAVES if evicts else Fate.WOULD_LEAVE
    answer.reason = wording.why(pending.verdict, judged.gates)
    answer.policy = policy.name
    answer.deadline = wording.at(pending.due_at)
    answer.seconds_left = round(pending.due_at - judged.now)
    answer.waits_for = _waits_for(answer, pending, policy, judged)


def _waits_for(answer: PodExplanation, pending: Pending, policy: Policy, judged: Judged) -> str:
    if policy.mode is not Mode.ENFORCE:
        return f"nothing: policy {policy.name} is in mode {policy.mode}, so the pod is not evicted"
    if policy.name in judged.rehearsed_policies:
        return "nothing: the operator runs with --dry-run, so the pod is not evicted"
    told: list[str] = []
    if pending.due_at > judged.now:
        told.append(f"its deadline, {relative(pending.due_at, judged.now)}")
    elif limit := _limited_by(judged.facts.policies, policy.name):
        told.append(f"its turn: limit {limit} holds the queue of policy {policy.name}")
    if policy.eviction.method is not Method.DELETE:
        told += _blocked_by(answer, policy)
    return "; then ".join(told) or "nothing: it is due now"


def _blocked_by(answer: PodExplanation, policy: Policy) -> Iterator[str]:
    names = ", ".join(budget.name for budget in answer.budgets)
    if len(answer.budgets) > 1:
        yield f"somebody to mend its PodDisruptionBudgets: the Eviction API refuses a pod with more than one ({names})"
    elif answer.budgets and not answer.budgets[0].allows:
        patience = policy.eviction.pdb_timeout_seconds
        limit = f", at most {duration(patience)}" if policy.eviction.method is Method.EVICT_THEN_DELETE else ""
        yield f"PodDisruptionBudget {names}{limit}: {answer.budgets[0].reason}"


def _limited_by(policies: Iterable[Mapping[str, Any]], name: str) -> str:
    """What the operator itself reports in the policy's status."""
    for policy in policies:
        status = policy.get("status")
        if policy.get("metadata", {}).get("name") == name and isinstance(status, Mapping):
            return str(status.get("limitedBy") or "")
    return ""


def _policy(judged: Judged, policy: Policy) -> PolicyExplanation:
    why = judged.refusal(policy)
    return PolicyExplanation(policy.name, policy.mode, why is None, why or "it selects the pod and its node")


def _taint(judged: Judged, taint: Taint, history: TaintHistory) -> TaintExplanation:
    acting = judged.acting(taint)
    verdict = judged.verdict(taint)
    judged_value = verdict.judged_value if verdict else None
    seen = taint if judged_value is None else Taint(taint.key, judged_value, taint.effect)
    recorded = judged.is_recorded(taint)
    answer = TaintExplanation(
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        verdict=NOT_SELECTED,
        reason="no policy acts on it: it is left to Kubernetes",
        other_policies=list(_others(judged, taint, acting)),
        tolerations=list(_answers(judged, seen)),
        added_at=wording.at(history.added_at) if recorded else None,
        clock_recorded=recorded,
    )
    if verdict is None or acting is None or judged.pod is None:
        return answer
    answer.verdict, answer.policy, answer.mode = verdict.kind, acting.name, acting.mode
    answer.reason = wording.why(verdict, judged.gates)
    answer.judged_value, answer.invalid_value = judged_value, verdict.invalid
    due_at = verdict.due_at(judged.pod.bound_at)
    if due_at is not None:
        answer.since = wording.at(max(verdict.counts_from, judged.pod.bound_at))
        answer.grace_seconds = verdict.seconds
        answer.deadline = wording.at(due_at)
        answer.seconds_left = round(due_at - judged.now)
    return answer


def _others(judged: Judged, taint: Taint, acting: Policy | None) -> Iterator[Passed]:
    """The other policies that name the taint's key, each with what keeps it from acting."""
    for policy in judged.policies:
        selector = policy.selector_for(taint)
        if policy is acting:
            continue
        if selector is None:
            if effects := _effects_for_key(policy, taint):
                yield Passed(policy.name, f"it selects this key only with effect {effects}")
        elif why := judged.refusal(policy):
            yield Passed(policy.name, why)
        elif acting is not None:
            mine, other = selector.specificity(taint), acting.selector_for(taint)
            is_closer = other is not None and other.specificity(taint) > mine
            better = "selects the key more closely" if is_closer else "is older, or comes first by its name"
            yield Passed(policy.name, f"policy {acting.name} {better}")


def _effects_for_key(policy: Policy, taint: Taint) -> str:
    closest = [one for one in policy.taints if TaintSelector(one.key, (taint.effect,)).specificity(taint)]
    return ", ".join(dict.fromkeys(effect for one in closest for effect in one.effects))


def _profiles(judged: Judged) -> Iterator[ProfileExplanation]:
    """The profiles of the pod's namespace, by name; for a pod that the operator never touches, which are valid."""
    selecting = matching(judged.profiles, judged.pod.shared) if judged.pod else ()
    for profile in judged.profiles:
        selects = profile in selecting
        yield ProfileExplanation(profile.name, selects, f"podSelector {'selects' if selects else 'does not select'} it")
    for name, why in judged.profile_problems.items():
        yield ProfileExplanation(name, None, why)


def _answers(judged: Judged, taint: Taint) -> Iterator[Answer]:
    """How each of the pod's tolerations with the taint's key answers to it, in the order they are tried."""
    if judged.pod is None:
        return
    pod_class = judged.pod.shared
    profiles = matching(judged.profiles, pod_class)
    relevant = effective(pod_class, profiles).relevant_to(taint.key)
    extended = [("annotation", pod_class.tolerations.extended)]
    extended += [(f"profile {profile.name}", profile.tolerations) for profile in profiles]
    naming = [source for source, listed in extended if any(one.key == taint.key for one in listed)]
    for source, listed in [("spec", pod_class.tolerations.native), *extended]:
        for toleration in listed:
            if toleration.key not in ("", taint.key):
                continue
            answer = match(toleration, taint, judged.gates)
            counts = any(one is toleration for one in relevant)
            who = "the annotation" if naming[:1] == ["annotation"] else "".join(naming[:1])
            told = answer if counts else f"does not count, since {who} names this key"
            yield Answer(toleration, source, counts and answer is Match.HOLDS, told, _text(toleration))


def _text(toleration: Toleration) -> str:
    grace = toleration.violation_grace_seconds
    return f"{toleration}" if grace is None else f"{toleration}, {grace} s of grace"


def _notes(judged: Judged) -> Iterator[str]:
    """What makes this answer less sure than it looks."""
    facts = judged.facts
    if facts.pod.spec.node_name and facts.node is None:
        yield f"node {facts.pod.spec.node_name} does not exist"
    if judged.node is not None and judged.node.history and not judged.recorded:
        yield "the node's annotation taintwarden.io/taint-history cannot be read and counts as absent"
    for name in judged.problems:
        yield f"policy {name} is not valid as stored; a running operator may still follow its last valid version"
    for name in judged.profile_problems:
        yield f"profile {name} is not valid as stored; a running operator may still follow its last valid version"
    for taint, _ in judged.taints():
        verdict = judged.verdict(taint)
        if verdict is not None and verdict.kind in _TIMED and not judged.is_recorded(taint):
            yield f"nobody has recorded yet since when the node has {taint}: its clock is taken to start now"
    if not judged.policies:
        yield "there is no valid TaintEvictionPolicy"
