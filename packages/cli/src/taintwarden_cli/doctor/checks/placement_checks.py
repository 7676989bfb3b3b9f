"""Placement: what keeps pods off nodes that they would have to leave, and pods that find no node."""

from collections.abc import Iterator, Mapping

from taintwarden.api.placement_labels import Kept, is_mirror_label
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Operator
from taintwarden_cli.doctor.check import Found, Severity, about, check
from taintwarden_cli.doctor.checks.evictions import unplaceable
from taintwarden_cli.doctor.context import Context
from taintwarden_cli.doctor.inventory import PodGroup
from taintwarden_cli.rehearsal.node_candidates import ObstacleKind
from taintwarden_cli.rehearsal.places import Place
from taintwarden_cli.rehearsal.returning import REMEDY, Returning
from taintwarden_cli.rehearsal.sources import EVALUATION, OWNERS, TEMPLATES, Source, Subject
from taintwarden_placement.admission.own_objects import INJECT
from taintwarden_placement.node_labels import NodeLabels, wanted_labels

_DAEMON_SET = "DaemonSet"
_OF_PODS = (ObstacleKind.IMPOSSIBLE, ObstacleKind.NATIVE, ObstacleKind.OUTDATED, ObstacleKind.UNPUBLISHED)
"""What concerns pods that were created already, and not those that their template would get now."""


@check(
    "placement-missing",
    Severity.WARNING,
    "workloads whose evicted pods the scheduler may put on the same node again, as it reads no comparison",
    f"{REMEDY}: docs/placement.md, docs/scheduling.md",
    needs=EVALUATION,
    uses=(*TEMPLATES, Source.MUTATING, Source.OPERATOR),
)
def unplaced(context: Context) -> Iterator[Found]:
    """The trap of a native Exists beside a comparison."""
    is_injected = context.mutating is not None or not context.snapshot.knows(Source.MUTATING)
    injected = frozenset(context.opted_in if is_injected else ())
    returning = Returning(context.view, context.gates, injected, has_extender=context.snapshot.has_extender)
    for group in context.groups:
        if group.pod_class.daemon_set or group.subject.kind == "Pod":
            continue  # they are not replaced on another node
        if keys := returning.keys(group.pod_class, group.shape.place):
            told = ", ".join(keys)
            yield about(group, f"the scheduler does not compare {told}: evicted pods may come back to the same node")


@check(
    "placement-labels",
    Severity.WARNING,
    "nodes whose labels for the scheduler do not say what their taints say, or cannot express a value",
    "the operator writes them while it leads: look at its log, and at its right to patch nodes",
    needs=(Source.NODES, Source.POLICIES),
)
def stale_labels(context: Context) -> Iterator[Found]:
    """New pods are kept off such nodes, or get to them."""
    for name, node in context.nodes.items():
        wanted = wanted_labels(node.node, context.view.policies)
        if told := ", ".join(_differences(node.node.labels, wanted)):
            yield Found(Subject("Node", name), f"its labels for placement are not in step: {told}")
        for what, reason in wanted.faults:
            remedy = "use values that the scheduler can compare: integers, or versions of ordinary length"
            yield Found(Subject("Node", name), f"{what}: {reason}", remedy)


def _differences(labels: Mapping[str, str], wanted: NodeLabels) -> Iterator[str]:
    for label in wanted.owned:
        value, present = wanted.labels.get(label), labels.get(label)
        if value is None and present is not None:
            yield f"{label}={present} is left over"
        elif value is not None and present is None:
            yield f"{label}={value} is missing"
        elif value != present:
            yield f"{label} is {present} and should be {value}"


@check(
    "placement-mismatch",
    Severity.WARNING,
    "running pods that do not match their node any more: the kubelet ends them when it restarts",
    "let the policy evict them, or delete them one by one, before a kubelet restarts; or raise the value",
    needs=EVALUATION,
    uses=OWNERS,
)
def mismatch(context: Context) -> Iterator[Found]:
    """A kubelet checks the node affinity of running pods again when it restarts."""
    for group in context.running:
        place = group.shape.place
        if not any(map(is_mirror_label, place.labels)):
            continue
        for name, count in sorted(group.pods.items()):
            node = context.nodes.get(name)
            if node is not None and not _matches(context, place, node):
                message = f"do not match the labels of their node {name} any more: a kubelet that restarts ends them"
                yield Found(group.subject, message, pods=count)


def _matches(context: Context, place: Place, node: NodeView) -> bool:
    """Whether pods match their node, or will as soon as the operator has written its labels."""
    name, labels = node.node.name, node.node.labels
    wanted = wanted_labels(node.node, context.view.policies)
    return place.fits(name, labels) or place.fits(name, wanted.on(labels))


@check(
    "daemonset-incomplete",
    Severity.WARNING,
    "templates of DaemonSets without what extended tolerations need: their controller reads nothing else",
    "restart the DaemonSet in a namespace with injection: the webhook then completes its template",
    needs=(*EVALUATION, Source.MUTATING, Source.DAEMON_SETS),
)
def incomplete(context: Context) -> Iterator[Found]:
    """What their pods get later is too late."""
    for group in context.groups:
        if group.template and group.subject.kind == _DAEMON_SET:
            told = _fault(context, group)
            if told:
                yield about(group, told, _remedy(context, group))


def _fault(context: Context, group: PodGroup) -> str:
    written = context.written(group).written
    compared = written.compared_keys
    native = group.pod_class.tolerations.native
    if context.injects(group) and (missing := written.missing_natives()):
        keys = ", ".join(dict.fromkeys(str(one["key"]) for one in missing))
        return (
            f"its template has no native toleration for {keys}: its controller creates no pod on nodes with the taint"
        )
    entered = [
        key for key in compared if any(one.key in ("", key) and one.operator == Operator.EXISTS for one in native)
    ]
    if unplaced_keys := [key for key in entered if key not in written.keys]:
        return (
            f"nothing in its template keeps pods off nodes whose value of {', '.join(unplaced_keys)} is not tolerated"
        )
    gone = [key for key in written.ended() if Kept(key) not in context.carried]
    if outdated := [*written.outdated(), *gone]:
        return f"the node affinity of its template is not the one that it would get now, for {', '.join(outdated)}"
    return ""


def _remedy(context: Context, group: PodGroup) -> str:
    restart = f"kubectl rollout restart daemonset/{group.subject.name} -n {group.subject.namespace}"
    placed = {selector.key for policy in context.policies for selector in policy.taints if selector.placement}
    missing = [key for key in context.written(group).written.compared_keys if key not in placed]
    steps = [f"set placement for {', '.join(missing)} in a policy"] if missing else []
    if not context.injects(group):
        steps.append(f"kubectl label namespace {group.subject.namespace} {INJECT}=true")
    return "; then ".join([*steps, restart])


@check(
    "pending-pods",
    Severity.WARNING,
    "Pending pods that no node may get by taints, labels and tolerations",
    "add a node, correct a value or label, or loosen the toleration; resources were not looked at",
    needs=(*EVALUATION, Source.PENDING),
    uses=(*TEMPLATES, Source.MUTATING),
)
def pending_pods(context: Context) -> Iterator[Found]:
    """Those for which the scheduler found no node. Labels that are late, and templates, are found by other checks."""
    found = [pair for pair in context.pending if not pair[1].has_node and pair[1].kind is not ObstacleKind.LABELS]
    known = {one.subject for one in unplaceable(context)} if found else set()
    for pods, diagnosis in found:
        if pods.subject not in known or diagnosis.kind in _OF_PODS:
            yield Found(pods.subject, diagnosis.reason, diagnosis.remedy, pods=pods.count)
