"""Explains in one sentence why a pod stays Pending, and what to do about it."""

from collections.abc import Mapping, Sequence

from taintwarden.controller.words.wording import several
from taintwarden.engine.model import Node
from taintwarden_cli.rehearsal.liveness import LIST_PODS
from taintwarden_cli.rehearsal.node_candidates import Obstacle, ObstacleKind, UnscheduledPod
from taintwarden_cli.rehearsal.node_requirements import NAME_FIELD, FullPod
from taintwarden_placement.admission.own_objects import INJECT

NOT_CONSIDERED = "resources, ports, affinity to pods and the places of volumes are not considered"
DAEMON_SET = "DaemonSet"
_UNINTENDED = tuple(kind for kind in ObstacleKind if kind not in (ObstacleKind.TAINT, ObstacleKind.AFFINITY))
Explanation = tuple[str, str]
"""The reason, and what to do."""
Obstacles = Mapping[str, Sequence[Obstacle]]
"""Obstacles of a pod, by the names of nodes."""


def diagnose(
    pod: FullPod, unscheduled: UnscheduledPod, nodes: Sequence[Node], namespace_labels: Mapping[str, str]
) -> tuple[Explanation, Obstacles]:
    """Find why a pod is Pending, and what keeps it off each of ``nodes``, which are all of the cluster."""
    obstacles = {node.name: list(unscheduled.obstacles(node)) for node in nodes}
    is_of_daemon_set = pod.controller is not None and pod.controller.kind == DAEMON_SET
    own = {name: found for name, found in obstacles.items() if not is_of_daemon_set or name in _named_nodes(pod)}
    sole_kinds = (
        kind for kind in _UNINTENDED if any(found and {one.kind for one in found} == {kind} for found in own.values())
    )
    kind = ObstacleKind.IMPOSSIBLE if unscheduled.is_impossible else next(sole_kinds, None)
    if not nodes:
        answer = "no node is known", "add a node, or with -f its manifest"
    elif fitting := sum(not found for found in own.values()):
        steps = "see what the scheduler says, in the Events of the pod: "
        steps += f"kubectl -n {pod.metadata.namespace} describe pod {pod.metadata.name}"
        fit = f"{several(len(nodes), 'node')} {'fits' if fitting == 1 else 'fit'}"
        answer = f"{fitting} of {fit}: {NOT_CONSIDERED}", steps
    elif kind is None and is_of_daemon_set:
        answer = _unsuitable_node(pod, own)
    else:
        why, steps = _explain(pod, unscheduled, kind, own, namespace_labels)
        none = "the only node does not fit" if len(nodes) == 1 else f"none of the {len(nodes)} nodes fits"
        answer = f"{none}: {why}" if why else none, steps
    return answer, obstacles


def _recreate(pod: FullPod) -> str:
    """How to get the pod created again."""
    name, space, owner = pod.metadata.name, pod.metadata.namespace, pod.controller
    if owner is None:
        return f"delete pod {name} and create it again from its manifest"
    if owner.kind == DAEMON_SET:
        return f"kubectl rollout restart daemonset/{owner.name} -n {space}"
    return f"kubectl delete pod {name} -n {space}: its {owner.kind} creates it again"


def _explain(
    pod: FullPod,
    unscheduled: UnscheduledPod,
    kind: ObstacleKind | None,
    obstacles: Obstacles,
    namespace_labels: Mapping[str, str],
) -> Explanation:
    is_injected = pod.metadata.labels.get(INJECT) != "false" and namespace_labels.get(INJECT) == "true"
    again, faults = _recreate(pod), "; ".join(unscheduled.wanted.warnings)
    express = "use integers, and versions of ordinary length, for taint and toleration, or list the label under "
    express += "versionLabels of a policy (docs/placement.md)"
    match kind:
        case ObstacleKind.IMPOSSIBLE if faults:
            return f"its node affinity cannot be written: {faults}", f"{express}, then {again}"
        case ObstacleKind.IMPOSSIBLE:
            return "its node affinity could not be written when it was created, but can be now", again
        case ObstacleKind.PLACEMENT:
            why = "the node affinity from placement does not match"
            return f"{why}: {faults}" if faults else why, f"{again}; if that does not help, {express}"
        case ObstacleKind.NATIVE if not is_injected:
            step = f"add a native Exists to the template, or label the namespace {INJECT}=true, then {again}"
            return "it has no native toleration for its extended ones", step
        case ObstacleKind.NATIVE:
            why = "it has no native toleration for its extended ones: the webhook was down, or no policy places it"
            step = f"see that the webhook runs ({LIST_PODS}), and set placement for the key in a policy"
            return why, f"{step}, then {again}"
        case ObstacleKind.LABELS:
            why = "labels of placement differ from the taints of the node"
            return why, f"check the operator, which writes them: {LIST_PODS}"
    kinds = [{obstacle.kind for obstacle in found} for found in obstacles.values()]
    if all(ObstacleKind.AFFINITY in one for one in kinds) or not any(ObstacleKind.TAINT in one for one in kinds):
        return "", "label a node so that it matches, add one, or correct nodeSelector and affinity in the template"
    if unscheduled.demand.tolerations.extended:
        step = "add a node, correct a value, or loosen the toleration in the annotation or profile"
    else:
        step = "add a node without these taints, or tolerate them in the template"
    return "", f"{step}, then {again}"


def _unsuitable_node(pod: FullPod, obstacles: Obstacles) -> Explanation:
    owner = pod.controller.name if pod.controller else ""
    why = "; ".join(obstacle.text for found in obstacles.values() for obstacle in found)
    fault = f"its node {', '.join(obstacles)} does not suit it, and a rolling update of the DaemonSet waits for it"
    return f"{fault}: {why}", (
        f"kubectl rollout restart daemonset/{owner} -n {pod.metadata.namespace}, in a namespace with {INJECT}=true, so "
        "that its template gets node affinity; or set updateStrategy.rollingUpdate.maxUnavailable higher than the "
        "number of such nodes"
    )


def _named_nodes(pod: FullPod) -> set[str]:
    """The nodes that the pod's affinity names. That of a DaemonSet's pod names one."""
    terms = pod.spec.node_requirements.terms or ()
    named = (requirement for term in terms for requirement in term.match_fields if requirement.key == NAME_FIELD)
    return {value for requirement in named for value in requirement.values}
