"""Converts an ``Evaluation`` of a pod to the structure of :mod:`explanation`."""

from collections.abc import Iterator

from taintwarden.api.status import PolicyStatus
from taintwarden.controller.decoding.deployments import revision, why_not_replaced
from taintwarden.controller.words import wording
from taintwarden.engine import rfc3339
from taintwarden.engine.derived import concerns
from taintwarden.engine.evaluate import OTHER_NODES, VerdictKind
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.machine import ClaimView
from taintwarden.engine.model import Gates, Taint, Tolerations
from taintwarden.engine.operators import Match, applies, caution, match
from taintwarden.engine.policy import AnySelector, Mode, Policy, TaintSelector
from taintwarden.engine.profile_selection import effective, matching
from taintwarden_cli.explain.explanation import (
    ClaimExplanation,
    Fate,
    InactivePolicy,
    NodeExplanation,
    PodExplanation,
    PodReference,
    PolicyExplanation,
    ProfileExplanation,
    TaintExplanation,
    TolerationAnswer,
)
from taintwarden_cli.explain.waiting import blocked_by, explain_budgets, tripped_guard, waiting
from taintwarden_cli.rehearsal.evaluation import Evaluation, why_not_acted_on
from taintwarden_cli.rehearsal.node_candidates import UnscheduledPods
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.pending import diagnose
from taintwarden_cli.rehearsal.rehearsal import Rehearsal, namespaced_name, rehearse
from taintwarden_cli.rehearsal.snapshot import Snapshot, status_of
from taintwarden_cli.rehearsal.sources import REPLACING, Source

NOT_SELECTED = "NotSelected"
_TIMED = (VerdictKind.TOLERATED_FOR, VerdictKind.VIOLATED)


def explain(snapshot: Snapshot, gates: Gates) -> PodExplanation:
    """Explain the first pod of a snapshot.
    Raises BadInput if the input is not sufficient, or a timestamp of the pod is invalid.
    """
    return explain_pod(snapshot, gates, rehearse(snapshot, gates), snapshot.pods[0])


def explain_pod(snapshot: Snapshot, gates: Gates, rehearsal: Rehearsal, obj: FullPod) -> PodExplanation:
    """Explain a pod by a rehearsal of the snapshot.
    Raises BadInput if the input is not sufficient, or a timestamp of the pod is invalid.
    """
    evaluation = Evaluation(snapshot, gates, rehearsal, obj)
    meta, pod = obj.metadata, evaluation.pod
    answer = PodExplanation(
        at=rfc3339.at(snapshot.now),
        pod=PodReference(meta.namespace, meta.name, meta.uid, obj.spec.node_name),
        fate=Fate.NOT_ACTED_ON if obj.metadata.deletion_timestamp is None else Fate.TERMINATES,
        reason=why_not_acted_on(obj, snapshot.now),
        problem=snapshot.operator_problem or None,
        policies=list(_explain_policies(evaluation)),
        profiles=list(_explain_profiles(evaluation)),
        invalid_tolerations=[str(error) for issue in evaluation.issues for error in issue.errors],
        ignored_values=[str(error) for issue in evaluation.issues for error in issue.ignored],
        notes=list(_notes(evaluation)),
    )
    if pod is None:
        return _explain_pending(answer, evaluation, rehearsal) if obj.is_pending else answer
    answer.pod.bound_at = rfc3339.at(pod.bound_at)
    answer.taints = [_explain_taint(evaluation, taint, history) for taint, history in evaluation.taints()]
    answer.budgets_problem = snapshot.problems.get(Source.BUDGETS)
    for problem in (snapshot.problems[source] for source in REPLACING if source in snapshot.problems):
        answer.notes.append(f"not known whether its Deployment replaces it first: {problem}")
    answer.budgets = list(explain_budgets(evaluation.budgets(), snapshot.budgets))
    claims = evaluation.claims()
    answer.node_end = next((end for claim in claims if (end := _node_end(claim, evaluation))), None)
    if not claims:
        answer.fate = Fate.STAYS
        answer.reason = _why_it_stays(answer.taints)
        return answer
    first, *others = (_explain_claim(answer, claim, evaluation) for claim in claims)
    acting = claims[0].policy
    is_enforced = acting.mode is Mode.ENFORCE and acting.name not in evaluation.dry_run_policies
    answer.fate = Fate.LEAVES if is_enforced else Fate.WOULD_LEAVE
    answer.reason, answer.policy = first.reason, first.policy
    answer.deadline, answer.seconds_left, answer.waits_for = first.deadline, first.seconds_left, first.waits_for
    answer.claims = others
    answer.notes += _why_not_replaced(claims[0], evaluation)
    return answer


def _why_it_stays(taints: list[TaintExplanation]) -> str:
    """The reasons why no taint evicts the pod."""
    sentences = [why for taint in taints for why in _why_it_evicts_no_pod(taint)]
    return "; ".join(sentences) or ("no policy acts on its taints" if taints else "its node has no taints")


def _why_it_evicts_no_pod(taint: TaintExplanation) -> Iterator[str]:
    if taint.verdict != NOT_SELECTED:
        by = next((toleration.source for toleration in taint.tolerations if toleration.holds), "")
        yield f"{taint.reason} of {by}" if by.startswith("profile ") else taint.reason
        return
    subject = f"taint {Taint(taint.key, taint.value, taint.effect)}"
    here = [one for one in taint.other_policies if one.reason != OTHER_NODES]
    if taint.other_policies and not here:
        yield f"{subject}: no policy for its key selects the node"
    for other in here:
        yield f"{subject}: policy {other.policy} does not act: {other.reason}"


def _explain_pending(answer: PodExplanation, evaluation: Evaluation, rehearsal: Rehearsal) -> PodExplanation:
    """Complete ``answer`` for a pod that is not bound yet: what keeps it off each node, and what to do."""
    answer.fate = Fate.PENDING
    answer.scheduler = evaluation.object.unschedulable or None
    pod, unscheduled_pods = evaluation.object, UnscheduledPods(rehearsal, evaluation.gates)
    found, obstacles = diagnose(pod, unscheduled_pods.of(pod), evaluation.nodes, evaluation.namespace_labels or {})
    answer.nodes = [NodeExplanation(name, [obstacle.text for obstacle in why]) for name, why in obstacles.items()]
    answer.reason, answer.remedy = found
    return answer


def _node_end(claim: ClaimView, evaluation: Evaluation) -> str | None:
    """When a policy with ``reclaim`` expects the node to be removed, as text; None without one that enforces."""
    hard_at = claim.grounds.hard_at if claim.grounds is not None else None
    if hard_at is None or claim.policy.mode is not Mode.ENFORCE:
        return None
    is_past = hard_at <= evaluation.now
    return f"node {claim.pod.node} {'counts as removed since' if is_past else 'is removed at'} {rfc3339.at(hard_at)}"


def _explain_claim(answer: PodExplanation, claim: ClaimView, evaluation: Evaluation) -> ClaimExplanation:
    return ClaimExplanation(
        policy=claim.policy.name,
        mode=claim.policy.mode,
        reason=wording.why(claim.verdict, evaluation.gates),
        deadline=rfc3339.at(claim.due_at),
        seconds_left=round(claim.due_at - evaluation.now),
        waits_for=_waits_for(answer, claim, evaluation),
    )


def _waits_for(answer: PodExplanation, claim: ClaimView, evaluation: Evaluation) -> str:
    policy = claim.policy
    status = _status(policy, evaluation)
    if policy.mode is Mode.PAUSED:
        paused = status.message_if("Progressing", "Paused") or "paused"
        resume = f"policy {policy.name} is {paused}: taintwarden resume {policy.name}"
        return "; then ".join(filter(None, (resume, tripped_guard(policy, status))))
    if policy.mode is not Mode.ENFORCE:
        return f"for nothing: policy {policy.name} is in mode {policy.mode}, so the pod is not evicted"
    if policy.name in evaluation.dry_run_policies:
        return "for nothing: the operator runs with --dry-run, so the pod is not evicted"
    # While other requests to Deployments are refused or not made, the status says what the pod waits for.
    deployment = claim.deployment if claim.was_asked or not status.message_if("ReplacesFirst", "False") else ""
    budgets = [] if deployment else answer.budgets
    found = waiting(claim.pod, policy, status, budgets, evaluation.now)
    if claim.due_at > evaluation.now:
        deadline = f"for its deadline, {wording.relative(claim.due_at, evaluation.now)}"
        found = [deadline, *filter(None, [tripped_guard(policy, status), blocked_by(budgets, policy)])]
    if deployment and not any("asked Deployment" in one for one in found):
        most = wording.duration(policy.replacement_seconds)
        found.append(f"for Deployment {deployment}, which starts the replacement first ({most} at most)")
    return "; then ".join(found) or ("for an operator" if answer.problem else "for nothing: it is due now")


def _status(policy: Policy, evaluation: Evaluation) -> PolicyStatus:
    return status_of(next(one for one in evaluation.snapshot.policies if namespaced_name(one)[1] == policy.name))


def _why_not_replaced(claim: ClaimView, evaluation: Evaluation) -> Iterator[str]:
    """Why the Deployment of the pod is not asked for a replacement, although the policy has ``replaceFirst``."""
    snapshot, owner = evaluation.snapshot, evaluation.object.controller
    refused = _status(claim.policy, evaluation).message_if("ReplacesFirst", "False")
    if claim.deployment and refused and not claim.was_asked:
        yield f"Deployment {claim.deployment}: {refused}"
    if claim.deployment or claim.policy.eviction.replace_first is None or owner is None:
        return
    replica_sets = (one for one in snapshot.workloads.get("replicasets", ()) if one.metadata.uid == owner.uid)
    uids = [made.deployment for workload in replica_sets if (made := revision(workload)) is not None]
    for deployment in snapshot.deployments:
        if deployment.metadata.uid in uids:
            why = why_not_replaced(deployment) or "would start it on the same node, or too late for the end of the node"
            yield f"Deployment {deployment.metadata.name} {why}, so no replacement is asked for"


def _explain_policies(evaluation: Evaluation) -> Iterator[PolicyExplanation]:
    for policy in evaluation.policies:
        why = evaluation.refusal(policy)
        yield PolicyExplanation(policy.name, policy.mode, why is None, why or "it selects the pod and its node")
    for name, why in evaluation.policy_problems.items():
        yield PolicyExplanation(name, None, selects=False, reason=why)


def _explain_taint(evaluation: Evaluation, taint: Taint, history: TaintHistory) -> TaintExplanation:
    acting = evaluation.acting_policy(taint)
    verdict = evaluation.verdict(taint)
    judged_value = verdict.judged_value if verdict else None
    seen = taint if judged_value is None else Taint(taint.key, judged_value, taint.effect)
    recorded = evaluation.is_recorded(taint, history)
    answer = TaintExplanation(
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        source=taint.source,
        device=str(taint.origin.device) if taint.origin else "",
        rule=taint.origin.rule if taint.origin else "",
        verdict=NOT_SELECTED,
        reason=_not_selected(evaluation, taint),
        other_policies=list(_other_policies(evaluation, taint, acting)),
        tolerations=list(_toleration_answers(evaluation, seen)),
        added_at=rfc3339.at(history.added_at) if recorded else None,
        clock_recorded=recorded,
    )
    if verdict is None or acting is None or evaluation.pod is None:
        return answer
    answer.verdict, answer.policy, answer.mode = verdict.kind, acting.name, acting.mode
    answer.reason = wording.why(verdict, evaluation.gates)
    answer.judged_value, answer.invalid_value = judged_value, verdict.invalid
    due_at = verdict.due_at(evaluation.pod.bound_at)
    if due_at is not None:
        answer.since = rfc3339.at(max(verdict.counts_from, evaluation.pod.bound_at))
        answer.grace_seconds = verdict.seconds
        answer.deadline = rfc3339.at(due_at)
        answer.seconds_left = round(due_at - evaluation.now)
    return answer


def _not_selected(evaluation: Evaluation, taint: Taint) -> str:
    if not taint.source:
        return "no policy acts on it: it is left to Kubernetes"
    if not concerns(taint, evaluation.tolerations):
        return f"the pod has no toleration for {taint.key}, so a value that is read from the node does not concern it"
    return "no policy acts on it for this pod"


def _other_policies(evaluation: Evaluation, taint: Taint, acting: Policy | None) -> Iterator[InactivePolicy]:
    """The other policies that name the taint's key, each with the reason why it does not act."""
    for policy in evaluation.policies:
        selector = policy.selector_for(taint)
        effects = "" if selector else _effects_for_key(policy, taint)
        if policy is acting or not (selector or effects):
            continue
        if why := evaluation.refusal(policy):
            yield InactivePolicy(policy.name, why)
        elif selector is None:
            yield InactivePolicy(policy.name, f"it selects this key only with effect {effects}")
        elif acting is not None:
            mine, other = selector.specificity(taint), acting.selector_for(taint)
            is_closer = other is not None and other.specificity(taint) > mine
            better = "selects the key more specifically" if is_closer else "is older, or comes first by its name"
            yield InactivePolicy(policy.name, f"policy {acting.name} {better}")


def _effects_for_key(policy: Policy, taint: Taint) -> str:
    selectors: tuple[AnySelector, ...] = policy.taints
    if taint.origin is not None:
        device, taint = taint.origin.device, Taint(taint.key, effect=taint.effect)
        selectors = tuple(selector for selector in policy.devices if selector.driver in (None, device.driver))
    closest = [selector for selector in selectors if TaintSelector(selector.key, (taint.effect,)).specificity(taint)]
    return ", ".join(dict.fromkeys(effect for selector in closest for effect in selector.effects))


def _explain_profiles(evaluation: Evaluation) -> Iterator[ProfileExplanation]:
    """The profiles of the pod's namespace, by name. A pod on which the operator never acts is selected by none."""
    selecting = matching(evaluation.profiles, evaluation.pod.shared) if evaluation.pod else ()
    for profile in evaluation.profiles:
        selects = profile in selecting
        yield ProfileExplanation(profile.name, selects, f"podSelector {'selects' if selects else 'does not select'} it")
    for name, why in evaluation.profile_problems.items():
        yield ProfileExplanation(name, None, why)


def _toleration_answers(evaluation: Evaluation, taint: Taint) -> Iterator[TolerationAnswer]:
    """Each of the pod's tolerations with the taint's key and whether it holds, in the order of evaluation."""
    if evaluation.pod is None:
        return
    pod_class = evaluation.pod.shared
    profiles = matching(evaluation.profiles, pod_class)
    own, native, every = "spec", pod_class.tolerations.native, effective(pod_class, profiles)
    if taint.origin is not None:
        uses = [device for device in pod_class.devices if device.device == taint.origin.device]
        own, native = "claim", tuple(one for use in uses for one in use.tolerations)
        every = Tolerations(native, every.annotated, every.shared)
    relevant = every.relevant_to(taint.key)
    extended = [("annotation", pod_class.tolerations.extended)]
    extended += [(f"profile {profile.name}", profile.tolerations) for profile in profiles]
    naming = [source for source, listed in extended if any(one.key == taint.key for one in listed)]
    for source, listed in [(own, native), *extended]:
        for toleration in listed:
            if toleration.key not in ("", taint.key):
                continue
            answer = match(toleration, taint, evaluation.gates)
            counts = any(one is toleration for one in relevant)
            who = "the annotation" if naming[:1] == ["annotation"] else "".join(naming[:1])
            result = answer if counts else f"does not count, since {who} names this key"
            grace = toleration.violation_grace_seconds
            text = f"{toleration}" if grace is None else f"{toleration}, {grace} s of grace"
            yield TolerationAnswer(toleration, source, counts and answer is Match.HOLDS, result, text)


def _notes(evaluation: Evaluation) -> Iterator[str]:
    """Reasons why this explanation is uncertain."""
    if evaluation.object.spec.node_name and evaluation.node is None:
        yield f"node {evaluation.object.spec.node_name} does not exist"
    if evaluation.node is not None and evaluation.node.history and not evaluation.recorded:
        yield "the node's annotation taintwarden.io/taint-history cannot be read and counts as absent"
    for name in evaluation.policy_problems:
        yield f"policy {name} is not valid as stored; a running operator may still follow its last valid version"
    for name in evaluation.profile_problems:
        yield f"profile {name} is not valid as stored; a running operator may still follow its last valid version"
    for taint, history in evaluation.taints():
        verdict = evaluation.verdict(taint)
        if verdict is not None and verdict.kind in _TIMED and not evaluation.is_recorded(taint, history):
            yield f"it is not recorded since when the node has {taint}: its time counts from now"
        for toleration in verdict.tolerations.relevant_to(taint.key) if verdict is not None else ():
            reason, remedy = caution(toleration, taint.value) if applies(toleration, taint) else ("", "")
            if reason:
                yield f"{toleration} with {taint.value}: {reason}; {remedy}"
    yield from _unread(evaluation)
    if not evaluation.policies:
        yield "there is no valid TaintEvictionPolicy"


def _unread(evaluation: Evaluation) -> Iterator[str]:
    """Objects that the explanation lacks since they cannot be read."""
    snapshot = evaluation.snapshot
    for policy in evaluation.policies:
        if policy.devices and snapshot.devices_problem:
            yield f"policy {policy.name}: {wording.devices_unknown(snapshot.devices_problem)}"
    for subject, why in snapshot.unreadable:
        yield f"{subject} cannot be read and counts as absent: {why}"
