"""Why a pod stays Pending, in one sentence, and what to do about it."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from taintwarden.engine.model import Node
from taintwarden_cli.rehearsal.node_candidates import Candidate, Obstacle, ObstacleKind
from taintwarden_cli.rehearsal.places import PlacedPod
from taintwarden_placement.admission.own_objects import INJECT

NOT_CONSIDERED = "resources, ports, affinity to pods and the places of volumes are not considered"
DAEMON_SET = "DaemonSet"
_UNINTENDED = tuple(kind for kind in ObstacleKind if kind not in (ObstacleKind.TAINT, ObstacleKind.AFFINITY))
_NAME_FIELD = "metadata.name"
Told = tuple[str, str]
"""Why, and what to do."""


class PendingDiagnosis(msgspec.Struct, frozen=True):
    """Why a pod is Pending. ``kind`` None: a node may get it, or no kind of obstacle alone keeps it off a node."""

    kind: ObstacleKind | None
    reason: str
    remedy: str
    obstacles: Mapping[str, Sequence[Obstacle]] = {}
    """By the names of the nodes."""

    @property
    def has_node(self) -> bool:
        """Whether some node may get it."""
        return any(not found for found in self.obstacles.values())


def diagnose(
    pod: PlacedPod,
    candidate: Candidate,
    nodes: Sequence[Node],
    namespace_labels: Mapping[str, str],
    number: int | None = None,
) -> PendingDiagnosis:
    """Why a pod is Pending. ``nodes`` are all of the cluster, or the different ones of so many."""
    obstacles = {node.name: list(candidate.obstacles(node)) for node in nodes}
    is_of_daemon_set = pod.controller is not None and pod.controller.kind == DAEMON_SET
    own = set(_named_nodes(pod)) if is_of_daemon_set else obstacles.keys()
    own_obstacles = {name: found for name, found in obstacles.items() if name in own}
    alone = (kind for kind in _UNINTENDED if any(_only(kind, found) for found in own_obstacles.values()))
    kind = ObstacleKind.IMPOSSIBLE if candidate.written.is_impossible else next(alone, None)
    number = len(nodes) if number is None else number
    if not number:
        told = "there is no node", "add a node"
    elif taking := sum(not found for found in own_obstacles.values()):
        steps = "see what the scheduler says, in the Events of the pod: kubectl describe pod"
        told = f"{taking} of {number} nodes may get it: {NOT_CONSIDERED}", steps
    elif kind is None and is_of_daemon_set:
        told = _unsuitable_node(pod, own_obstacles)
    else:
        why, steps = _told(pod, candidate, kind, own_obstacles, namespace_labels)
        none = "the only node may not get it" if number == 1 else f"none of the {number} nodes may get it"
        told = f"{none}: {why}" if why else none, steps
    return PendingDiagnosis(kind, *told, obstacles)


def recreate(pod: PlacedPod) -> str:
    """How the pod is created again."""
    name, space, owner = pod.metadata.name, pod.metadata.namespace, pod.controller
    if owner is None:
        return f"delete pod {name} and create it again from its manifest"
    if owner.kind == DAEMON_SET:
        return f"kubectl rollout restart daemonset/{owner.name} -n {space}"
    return f"kubectl delete pod {name} -n {space}: its {owner.kind} creates it again"


def _told(
    pod: PlacedPod,
    candidate: Candidate,
    kind: ObstacleKind | None,
    obstacles: Mapping[str, Sequence[Obstacle]],
    namespace_labels: Mapping[str, str],
) -> Told:
    written, again = candidate.written, recreate(pod)
    labels = ", ".join(candidate.unpublished)
    match kind:
        case ObstacleKind.IMPOSSIBLE if written.is_possible_now:
            return "what restricts it to nodes could not be written when it was created, and can be now", again
        case ObstacleKind.IMPOSSIBLE:
            step = f"list {labels} under versionLabels of a policy" if labels else "correct what cannot be written"
            why = f"what restricts it to nodes cannot be written: {'; '.join(written.faults)}"
            return why, f"{step}, then {again}"
        case ObstacleKind.NATIVE:
            why, step = _native(pod, candidate, namespace_labels)
            return f"it has no native toleration beside its extended ones{why}", f"{step}, then {again}"
        case ObstacleKind.LABELS:
            why = "labels of placement do not say what the taints of the node say"
            return why, "look at the operator, which writes them: taintwarden doctor"
        case ObstacleKind.OUTDATED:
            every = (one for found in obstacles.values() for one in found)
            return next(one.cause for one in every if one.kind is kind), again
        case ObstacleKind.UNPUBLISHED:
            return f"no policy lists {labels} under versionLabels", f"list {labels} under versionLabels of a policy"
        case ObstacleKind.VOLUME:
            why = "the node affinity of its volume does not match, and Kubernetes does not change that"
            return why, "label a node so that it matches, or use another volume"
        case ObstacleKind.INEXPRESSIBLE:
            step = "use integers, and versions of ordinary length, for taint and toleration"
            return "labels cannot express a value, or a toleration", f"{step}, then {again}"
    if not any(one.kind is ObstacleKind.TAINT for found in obstacles.values() for one in found):
        return "", "label a node so that it matches, add one, or correct nodeSelector and affinity in the template"
    if written.compared_keys:
        step = "add a node, correct a value, or loosen the toleration in the annotation or profile"
    else:
        step = "add a node without these taints, or tolerate them in the template"
    return "", f"{step}, then {again}"


def _native(pod: PlacedPod, candidate: Candidate, namespace_labels: Mapping[str, str]) -> Told:
    if pod.metadata.labels.get(INJECT) == "false" or namespace_labels.get(INJECT) != "true":
        return "", f"add a native Exists to the template, or label the namespace {INJECT}=true"
    if not candidate.written.missing_natives():
        why = ", and gets none, since nothing would keep it off nodes with other values"
        return why, "set placement for the key in a policy, or let one evict by NoSchedule"
    why = ": the webhook was away when it was created, or did not complete its pods yet"
    return why, "see that the webhook runs (taintwarden doctor)"


def _unsuitable_node(pod: PlacedPod, obstacles: Mapping[str, Sequence[Obstacle]]) -> Told:
    owner = pod.controller.name if pod.controller else ""
    why = "; ".join(one.text for found in obstacles.values() for one in found)
    told = f"its node {', '.join(obstacles)} does not suit it, and a rolling update of the DaemonSet waits for it"
    return f"{told}: {why}", (
        f"kubectl rollout restart daemonset/{owner} -n {pod.metadata.namespace}, in a namespace with {INJECT}=true, so "
        "that its template gets node affinity; or set updateStrategy.rollingUpdate.maxUnavailable higher than the "
        "number of such nodes"
    )


def _only(kind: ObstacleKind, found: Sequence[Obstacle]) -> bool:
    return bool(found) and all(one.kind is kind for one in found)


def _named_nodes(pod: PlacedPod) -> Iterator[str]:
    """The nodes that its affinity names: that of a DaemonSet's pod names one."""
    for term in pod.spec.place.terms or ():
        for requirement in term.match_fields:
            if requirement.key == _NAME_FIELD:
                yield from requirement.values
