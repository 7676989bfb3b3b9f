"""Checks of evictions: pods that find no other node or come back, that Kubernetes evicts, or that budgets block."""

from collections import Counter
from collections.abc import Iterable, Iterator

from taintwarden.engine.evaluate import TaintVerdict, VerdictKind, acting_on, judge
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import DeviceEffect, Effect, Taint, cannot_compute, several_budgets
from taintwarden.engine.policy import Method, Mode, Policy, TolerationSecondsMode, has_replace_first
from taintwarden.kube.wire.kinds import BudgetObject
from taintwarden_cli.doctor.check import Finding, Severity, check, group_finding
from taintwarden_cli.doctor.context import Context
from taintwarden_cli.doctor.doctor_snapshot import BuiltIn
from taintwarden_cli.doctor.inventory import PodGroup
from taintwarden_cli.output import listed
from taintwarden_cli.rehearsal.node_candidates import UnscheduledPod
from taintwarden_cli.rehearsal.node_requirements import labels_of
from taintwarden_cli.rehearsal.returning import REMEDY, ReturnFinder, compared_taints
from taintwarden_cli.rehearsal.snapshot import FullBudget
from taintwarden_cli.rehearsal.sources import EVALUATION, OWNERS, TEMPLATES, WORKLOADS, Source, Subject
from taintwarden_cli.status.lasting_problems import why_spec_never_allows
from taintwarden_devices.handlers import device_claim, device_slice, taint_rule
from taintwarden_devices.inventory import DeviceInventory

_MAX_NAMED = 3
"""Maximum number of taints or owners named."""
_KINDS = tuple(listing.kind for listing in WORKLOADS.values())
APP_LABELS = ("app.kubernetes.io/name", "app")
"""Labels that select the pods of one workload, the preferred one first."""
_PART_LABELS = ("app.kubernetes.io/instance", "app.kubernetes.io/component")


# -- nowhere ----------------------------------------------------------------------------------------------------------


@check(
    "nowhere-to-go",
    Severity.ERROR,
    "pods that must leave, and workloads, that fit no node by taints, nodeSelector and nodeAffinity",
    "add nodes, loosen the tolerations, or pause the policy until there are; resources were not considered",
    needs=EVALUATION,
    uses=(*TEMPLATES, Source.MUTATING),
)
def nowhere_to_go(context: Context) -> Iterator[Finding]:
    """Resources, affinity to pods, topology spread, volumes, ports and future nodes are not considered."""
    reported, nodes = set[Subject](), _FittingNodes(context)
    for group in context.groups:
        if group.pod_class.daemon_set or group.subject.kind == "Pod":
            continue  # they are not replaced on another node
        leaving = _evicting_verdicts(context, group)
        if leaving and not nodes.any_fits(group):
            reported.add(group.subject)
            for verdict, pods in leaving:
                enforced = verdict.policy.mode is Mode.ENFORCE
                how = "have to leave" if enforced else "would have to leave"
                message = f"{how} because of {verdict.taint} (policy {verdict.policy.name}), and fit no other node"
                yield Finding(group.subject, message, severity=None if enforced else Severity.WARNING, pods=pods)
    yield from (finding for finding in _unplaceable_workloads(context, nodes) if finding.subject not in reported)


def _unplaceable_workloads(context: Context, nodes: "_FittingNodes") -> Iterator[Finding]:
    """Workloads whose pods would fit no node, by their templates, only because of taints that policies act on."""
    for group in context.groups:
        if not group.template or group.wanted <= 0 or group.pod_class.daemon_set or nodes.any_fits(group):
            continue
        unscheduled, own = context.unscheduled_pod(group), group.shape.node_requirements.as_filter(context.gates)
        there = [node for node in context.nodes.values() if own.refusal((), labels_of(node.node)) is None]
        blocking = [_blocking_taint(context, group, unscheduled, node) for node in there]
        if there and None not in blocking:
            different = list(dict.fromkeys(map(str, blocking)))
            taints = ", ".join(different[:_MAX_NAMED]) + (" and others" if len(different) > _MAX_NAMED else "")
            where = "do not hold on the only node" if len(there) == 1 else f"hold on none of the {len(there)} nodes"
            message = f"its tolerations {where} that it could be on: {taints}"
            yield Finding(group.subject, message, severity=Severity.WARNING)


def _evicting_verdicts(context: Context, group: PodGroup) -> list[tuple[TaintVerdict, int]]:
    """The verdicts that evict pods of a group, one for each taint, with the number of pods."""
    found: dict[str, tuple[TaintVerdict, int]] = {}
    for _, count, verdicts in context.evaluated(group):
        verdict = next((judged for judged in verdicts if judged.evicts), None)
        if verdict is not None:
            first, pods = found.setdefault(str(verdict.taint), (verdict, 0))
            found[str(verdict.taint)] = (first, pods + count)
    return [*found.values()]


class _FittingNodes:
    """Searches the nodes for one that fits. The one found last is tried first: it probably fits the next pod, too."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._nodes = list(context.nodes.values())

    def any_fits(self, group: PodGroup) -> bool:
        """True if the pods of a group fit a node from which no policy would evict them."""
        unscheduled = self._context.unscheduled_pod(group)
        for index, node in enumerate(self._nodes):
            verdicts = self._context.verdicts(node.node.name, group)
            if unscheduled.fits(node.node) and not any(verdict.evicts for verdict in verdicts):
                self._nodes.insert(0, self._nodes.pop(index))
                return True
        return False


def _blocking_taint(context: Context, group: PodGroup, unscheduled: UnscheduledPod, node: NodeView) -> Taint | None:
    """A taint that keeps the pods off a node, and that a policy acts on."""
    evicting = (verdict.taint for verdict in context.verdicts(node.node.name, group) if verdict.evicts)
    refused = (
        taint
        for taint, _ in node.taints
        if any(policy.selector_for(taint) for policy in node.policies) and not unscheduled.tolerates(taint)
    )
    return next(evicting, None) or next(refused, None)


@check(
    "placement-missing",
    Severity.WARNING,
    "workloads whose evicted pods the scheduler may put on the same node again, as it reads no comparison",
    f"{REMEDY}: docs/placement.md, docs/scheduling.md",
    needs=EVALUATION,
    uses=(*TEMPLATES, Source.MUTATING, Source.OPERATOR),
)
def placement_missing(context: Context) -> Iterator[Finding]:
    """Pods with a native Exists beside a comparison may come back to a node that evicts them."""
    is_injected = context.mutating is not None or not context.snapshot.has_read(Source.MUTATING)
    injected = frozenset(context.opted_in if is_injected else ())
    finder = ReturnFinder(context.view, context.gates, injected, has_extender=context.snapshot.has_extender)
    for group in context.groups:
        if group.pod_class.daemon_set or group.subject.kind == "Pod":
            continue  # they are not replaced on another node
        if keys := finder.uncompared_keys(group.pod_class, group.shape.node_requirements):
            named_keys = ", ".join(keys)
            taints = [taint for taint in compared_taints(context.view, group.pod_class) if taint.key in keys]
            policies = context.view.policies_for(group.pod_class)
            asks = has_replace_first(policy for policy in policies if any(map(policy.selector_for, taints)))
            none_first = ", so no replacement is asked for first" * asks
            effect = f"evicted pods may come back to the same node{none_first}"
            yield group_finding(group, f"the scheduler does not compare {named_keys}: {effect}")


# -- the built-in controllers -----------------------------------------------------------------------------------------


@check(
    "builtin-evicts",
    Severity.ERROR,
    "pods that an enforcing policy lets stay, and Kubernetes' own controller for taints of nodes or devices does not",
    "add a native Exists for the key; or run kube-controller-manager with --controllers=*,-taint-eviction-controller",
    needs=EVALUATION,
    uses=(*OWNERS, Source.BUILT_IN, Source.OPERATOR, Source.SLICES, Source.DEVICE_CLAIMS, Source.TAINT_RULES),
)
def builtin_evicts(context: Context) -> Iterator[Finding]:
    """The built-in controllers know neither extended tolerations nor budgets nor limits."""
    if context.snapshot.built_in is not BuiltIn.ABSENT:
        sure = context.snapshot.built_in is BuiltIn.RUNS
        fate = "they are evicted" if sure else "they are evicted if the built-in controller is on"
        for group in context.running_groups:
            found: dict[tuple[str, str], int] = {}
            for _, count, verdicts in context.evaluated(group):
                for verdict in verdicts:
                    if _lets_stay(verdict) and not _is_tolerated_natively(context, verdict):
                        key = (str(verdict.taint), verdict.policy.name)
                        found[key] = found.get(key, 0) + count
            for (taint, policy), pods in found.items():
                message = (
                    f"policy {policy} lets them stay with {taint}, and no native toleration does indefinitely: {fate}"
                )
                yield Finding(group.subject, message, pods=pods)
    if context.snapshot.built_in_for_devices is not BuiltIn.ABSENT:
        yield from _device_findings(context)


def _lets_stay(verdict: TaintVerdict) -> bool:
    if verdict.taint.source:  # the built-in controller does not know derived taints
        return False
    is_enforced = verdict.policy.mode is Mode.ENFORCE and verdict.taint.effect == Effect.NO_EXECUTE
    return is_enforced and verdict.kind in (VerdictKind.TOLERATED, VerdictKind.HELD)


def _is_tolerated_natively(context: Context, verdict: TaintVerdict) -> bool:
    """True if the native tolerations let the pod stay indefinitely."""
    native = verdict.tolerations.native
    judgement = judge(native, verdict.taint, TolerationSecondsMode.KUBERNETES, gates=context.gates)
    return judgement.tolerated and judgement.seconds is None


def _device_findings(context: Context) -> Iterator[Finding]:
    fate = "deletes" if context.snapshot.built_in_for_devices is BuiltIn.RUNS else "deletes, if it is on,"
    remedy = "tolerate it in the claim with Exists and NoExecute; or run kube-controller-manager with "
    remedy += "--controllers=*,-device-taint-eviction-controller"
    inventory = devices_of(context)
    for obj in context.snapshot.device_claims:
        claim, subject = device_claim(obj), Subject("ResourceClaim", obj.metadata.name, obj.metadata.namespace)
        for use in claim.uses if claim is not None else ():
            for taint, _ in inventory.taints(use.device):
                acting = acting_on(taint, context.policies)
                # Kubernetes ignores a toleration without effect (pkg/controller/devicetainteviction of 1.37).
                counted = [toleration for toleration in use.tolerations if toleration.effect == DeviceEffect.NO_EXECUTE]
                judgement = judge(counted, taint, TolerationSecondsMode.KUBERNETES)
                is_kept = judgement.tolerated and judgement.seconds is None
                if acting is not None and taint.effect == DeviceEffect.NO_EXECUTE and not is_kept and claim is not None:
                    message = f"has {taint}, on which policy {acting[0].name} acts, and does not tolerate it "
                    message += f"indefinitely: the built-in device taint eviction {fate} its pods without a budget"
                    yield Finding(subject, message, remedy, Severity.WARNING, pods=len(claim.consumers))


def devices_of(context: Context) -> DeviceInventory:
    """The devices of the cluster, with their taints."""
    found = DeviceInventory()
    for slice_ in context.snapshot.slices:
        found.put_slice(slice_.metadata.name, device_slice(slice_))
    for rule in context.snapshot.taint_rules:
        found.put_rule(rule.metadata.name, taint_rule(rule))
    return found


# -- budgets ----------------------------------------------------------------------------------------------------------


@check(
    "budget-never-allows",
    Severity.ERROR,
    "PodDisruptionBudgets that never allow an eviction: two select one pod, their controller fails, or by their spec",
    "allow at least one disruption, or give the policy eviction.method EvictThenDelete",
    needs=(Source.BUDGETS, *EVALUATION),
    uses=OWNERS,
)
def budget_never_allows(context: Context) -> Iterator[Finding]:
    """Budgets for which pods wait indefinitely, if their policy always respects budgets."""
    found: dict[Subject, tuple[FullBudget, list[PodGroup]]] = {}
    for group in context.running_groups:
        budgets = context.budgets(group)
        if len(budgets) > 1:
            message = several_budgets(budget.metadata.name for budget in budgets)
            remedy = "leave one budget for each pod: narrow the selectors, or remove one"
            yield Finding(group.subject, message, remedy, pods=group.count)
        for budget in budgets if _respecting_budgets(context, group) else ():
            found.setdefault(_budget_subject(budget), (budget, []))[1].append(group)
    for subject, (budget, groups) in found.items():
        if why := why_spec_never_allows(budget):
            policies = dict.fromkeys(policy.name for group in groups for policy in _respecting_budgets(context, group))
            named = f"{'policy' if len(policies) == 1 else 'policies'} {', '.join(policies)}"
            message = f"{why}, and {named} may evict pods that it selects"
            yield Finding(subject, message, severity=Severity.WARNING, pods=sum(group.count for group in groups))
    for budget in context.snapshot.budgets:
        if problem := budget.status.problem if budget.status else "":
            remedy = "narrow the selector to pods of one kind of workload, or use minAvailable with a number"
            yield Finding(_budget_subject(budget), f"it {cannot_compute(problem)}", remedy)


def _budget_subject(budget: BudgetObject) -> Subject:
    return Subject("PodDisruptionBudget", budget.metadata.name, budget.metadata.namespace)


def _respecting_budgets(context: Context, group: PodGroup) -> list[Policy]:
    """The policies that may evict the group's pods, and always respect budgets."""
    return [policy for policy in context.evicting_policies(group) if policy.eviction.method is Method.EVICT]


# -- workloads --------------------------------------------------------------------------------------------------------

_ONE_BUDGET = "create one PodDisruptionBudget that selects the pods of all these controllers"


@check(
    "workload-split",
    Severity.WARNING,
    "workloads whose pods have several controllers, so that limits.perWorkload lets each lose its share at once",
    f"set limits.perWorkload.label to a label whose value all these pods share, and no others; or {_ONE_BUDGET}",
    needs=(*EVALUATION, Source.BUDGETS),
    uses=TEMPLATES,
)
def workload_split(context: Context) -> Iterator[Finding]:
    """Examples: replicas of a database, each with a StatefulSet of its own; StatefulSets below one custom object."""
    split: dict[tuple[object, ...], list[PodGroup]] = {}
    for group in context.running_groups:
        is_limited = any(policy.limits.per_workload.is_limit for policy in context.evicting_policies(group))
        if is_limited and not group.pod_class.daemon_set and not context.budgets(group):
            split.setdefault(_workload_key(group), []).append(group)
    for groups in split.values():
        pods = Counter[str]()
        for group in groups:
            pods[group.pod_class.owner.uid if group.pod_class.owner else ""] += group.count
        is_custom = groups[0].subject.kind not in _KINDS
        limits = [policy.limits.per_workload for group in groups for policy in context.evicting_policies(group)]
        counts_together = all(_shared_label(groups, (limit.label,)) for limit in limits if limit.is_limit)
        # StatefulSets with one label and several pods each may do different things.
        if len(pods) > 1 and (is_custom or max(pods.values()) == 1) and not counts_together:
            named = "" if is_custom else f": {named_subjects(group.subject for group in groups)}"
            message = f"its pods have {len(pods)} controllers, each a workload of its own for limits.perWorkload{named}"
            label = _shared_label(groups, (_PART_LABELS[0], *APP_LABELS, *groups[0].pod_class.labels))
            remedy = f"set limits.perWorkload.label: {label} if no other pods have its value; or {_ONE_BUDGET}"
            yield Finding(groups[0].subject, message, remedy if label else _ONE_BUDGET, pods=pods.total())


def _shared_label(groups: list[PodGroup], labels: Iterable[str | None]) -> str | None:
    """The first of these labels that all pods have, with the same value."""
    common = set.intersection(*(set(group.pod_class.labels.items()) for group in groups))
    return next((label for label in labels if any(name == label and value for name, value in common)), None)


def _workload_key(group: PodGroup) -> tuple[object, ...]:
    """A key that is equal for pods of several controllers that seem to be one workload."""
    subject, labels = group.subject, group.pod_class.labels
    app = next((labels[name] for name in (*APP_LABELS, _PART_LABELS[0]) if labels.get(name)), None)
    if subject.kind == "StatefulSet" and app is not None:
        return (subject.namespace, app, *(labels.get(name) for name in _PART_LABELS))
    owner = group.pod_class.owner if subject.kind in _KINDS else None  # not two ReplicaSets of a Deployment
    return (subject, owner and owner.uid)


def named_subjects(subjects: Iterable[Subject]) -> str:
    """Names of the first subjects, and the number of the others."""
    return listed(list(dict.fromkeys(map(str, subjects))), _MAX_NAMED)
