"""Why a pod stays Pending, in one sentence, and what to do about it."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from taintwarden.engine.model import Node
from taintwarden.placement.admission.own_objects import INJECT
from taintwarden.rehearsal.node_candidates import Candidate, Obstacle, ObstacleKind
from taintwarden.rehearsal.places import PlacedPod

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
    number = len(nodes) if number is None else number
    case = _Case(pod, candidate, obstacles, namespace_labels, number)
    reason, remedy = case.told()
    return PendingDiagnosis(case.kind, reason, remedy, obstacles)


def recreate(pod: PlacedPod) -> str:
    """How the pod is created again."""
    name, space, owner = pod.metadata.name, pod.metadata.namespace, pod.controller
    if owner is None:
        return f"delete pod {name} and create it again from its manifest"
    if owner.kind == DAEMON_SET:
        return f"kubectl rollout restart daemonset/{owner.name} -n {space}"
    return f"kubectl delete pod {name} -n {space}: its {owner.kind} creates it again"


class _Case:
    """One pod and what keeps it off each node."""

    def __init__(
        self,
        pod: PlacedPod,
        candidate: Candidate,
        obstacles: Mapping[str, Sequence[Obstacle]],
        namespace_labels: Mapping[str, str],
        number: int,
    ) -> None:
        self._pod = pod
        self._candidate = candidate
        self._written = candidate.written
        self._namespace_labels = namespace_labels
        self._number = number
        self._none = "the only node may not get it" if number == 1 else f"none of the {number} nodes may get it"
        self._again = recreate(pod)
        self._of_daemon_set = pod.controller is not None and pod.controller.kind == DAEMON_SET
        own = set(_named_nodes(pod)) if self._of_daemon_set else obstacles.keys()
        self._own = {name: found for name, found in obstacles.items() if name in own}
        """The nodes that come into question."""
        self.kind = self._kind()

    def _kind(self) -> ObstacleKind | None:
        """The first kind that alone keeps the pod off some node."""
        if self._written.is_impossible:
            return ObstacleKind.IMPOSSIBLE
        alone = (kind for kind in _UNINTENDED if any(_only(kind, found) for found in self._own.values()))
        return next(alone, None)

    def told(self) -> Told:
        """Why it is Pending, and what to do."""
        if not self._number:
            return "there is no node", "add a node"
        if taking := sum(not found for found in self._own.values()):
            told = f"{taking} of {self._number} nodes may get it: {NOT_CONSIDERED}"
            return told, "see what the scheduler says, in the Events of the pod: kubectl describe pod"
        kinds: dict[ObstacleKind | None, Callable[[], Told]] = {
            ObstacleKind.IMPOSSIBLE: self._impossible,
            ObstacleKind.NATIVE: self._native,
            ObstacleKind.LABELS: self._late_labels,
            ObstacleKind.OUTDATED: self._outdated,
            ObstacleKind.UNPUBLISHED: self._unpublished,
            ObstacleKind.VOLUME: self._volume,
            ObstacleKind.INEXPRESSIBLE: self._inexpressible,
        }
        return kinds.get(self.kind, self._unsuitable_node if self._of_daemon_set else self._unsuitable)()

    def _impossible(self) -> Told:
        if self._written.is_possible_now:
            told = "what restricts it to nodes could not be written when it was created, and can be now"
            return f"{self._none}: {told}", self._again
        told = f"{self._none}: what restricts it to nodes cannot be written: {'; '.join(self._written.faults)}"
        labels = ", ".join(self._candidate.unpublished)
        step = f"list {labels} under versionLabels of a policy" if labels else "correct what cannot be written"
        return told, f"{step}, then {self._again}"

    def _native(self) -> Told:
        told = f"{self._none}: it has no native toleration beside its extended ones"
        declines = self._pod.metadata.labels.get(INJECT) == "false"
        if declines or self._namespace_labels.get(INJECT) != "true":
            step = f"add a native Exists to the template, or label the namespace {INJECT}=true"
        elif not self._written.missing_natives():
            told += ", and gets none, since nothing would keep it off nodes with other values"
            step = "set placement for the key in a policy, or let one evict by NoSchedule"
        else:
            told += ": the webhook was away when it was created, or did not complete its pods yet"
            step = "see that the webhook runs (taintwarden doctor)"
        return told, f"{step}, then {self._again}"

    def _late_labels(self) -> Told:
        told = f"{self._none}: labels of placement do not say what the taints of the node say"
        return told, "look at the operator, which writes them: taintwarden doctor"

    def _outdated(self) -> Told:
        causes = (one.cause for found in self._own.values() for one in found if one.kind is ObstacleKind.OUTDATED)
        return f"{self._none}: {next(causes)}", self._again

    def _unpublished(self) -> Told:
        labels = ", ".join(self._candidate.unpublished)
        told = f"{self._none}: no policy lists {labels} under versionLabels"
        return told, f"list {labels} under versionLabels of a policy"

    def _volume(self) -> Told:
        told = f"{self._none}: the node affinity of its volume does not match, and Kubernetes does not change that"
        return told, "label a node so that it matches, or use another volume"

    def _inexpressible(self) -> Told:
        told = f"{self._none}: labels cannot express a value, or a toleration"
        return told, f"use integers, and versions of ordinary length, for taint and toleration, then {self._again}"

    def _unsuitable_node(self) -> Told:
        owner = self._pod.controller.name if self._pod.controller else ""
        why = "; ".join(one.text for found in self._own.values() for one in found)
        told = f"its node {', '.join(self._own)} does not suit it, and a rolling update of the DaemonSet waits for it"
        return f"{told}: {why}", (
            f"kubectl rollout restart daemonset/{owner} -n {self._pod.metadata.namespace}, in a namespace with "
            f"{INJECT}=true, so that its template gets node affinity; or set "
            f"updateStrategy.rollingUpdate.maxUnavailable higher than the number of such nodes"
        )

    def _unsuitable(self) -> Told:
        if not any(one.kind is ObstacleKind.TAINT for found in self._own.values() for one in found):
            step = "label a node so that it matches, add one, or correct nodeSelector and affinity in the template"
            return self._none, step
        if self._written.compared_keys:
            step = "add a node, correct a value, or loosen the toleration in the annotation or profile"
        else:
            step = "add a node without these taints, or tolerate them in the template"
        return self._none, f"{step}, then {self._again}"


def _only(kind: ObstacleKind, found: Sequence[Obstacle]) -> bool:
    return bool(found) and all(one.kind is kind for one in found)


def _named_nodes(pod: PlacedPod) -> Iterator[str]:
    """The nodes that its affinity names: that of a DaemonSet's pod names one."""
    for term in pod.spec.place.terms or ():
        for requirement in term.match_fields:
            if requirement.key == _NAME_FIELD:
                yield from requirement.values
