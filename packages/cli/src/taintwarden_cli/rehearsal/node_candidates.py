"""Judges which nodes fit a pod, and why others do not, by the rules of the scheduler and of placement.

Resources, ports, affinity to pods, topology spread and the nodes of volumes are not considered.
"""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from taintwarden.engine.model import Gates, Node, PodClass, Taint, Toleration, Tolerations
from taintwarden.engine.profile_selection import Profiles
from taintwarden.kube.wire.kinds import PodAnnotations, PodMeta
from taintwarden_cli.rehearsal.node_requirements import FullPod, NodeRequirements, labels_of
from taintwarden_cli.rehearsal.rehearsal import Rehearsal
from taintwarden_placement.admission.injection import NO_NODE
from taintwarden_placement.admission.merged_affinity import merge
from taintwarden_placement.admission.placing import Restrictions, concerning_policies, restrictions
from taintwarden_placement.node_labels import NodeLabels, wanted_labels
from taintwarden_placement.node_labels.names import is_placement_label
from taintwarden_placement.node_labels.wanted import placed_keys, published_labels
from taintwarden_placement.scheduling.demands import Demands, UnboundPod
from taintwarden_placement.scheduling.feasibility import REPELLING, Demand, NodeFilter, Preferences, RefusalCause

NATIVE = "only an extended toleration tolerates it, and the scheduler reads native ones: add Exists for the key"
NOT_LABELLED = "the operator has not written its labels of placement"


class ObstacleKind(StrEnum):
    """The kinds of obstacles, in the order in which they are reported. The last two may be intended."""

    IMPOSSIBLE = "impossible"
    """The restrictions of the pod could not be written as affinity, so no node matches."""
    NATIVE = "native"
    """A taint that only an extended toleration tolerates: the native one is missing."""
    LABELS = "labels"
    """The node's labels of placement differ from its taints."""
    PLACEMENT = "placement"
    """The affinity that placement wrote does not match the node, or cannot express what the pod tolerates."""
    TAINT = "taint"
    """A taint is not tolerated."""
    AFFINITY = "affinity"
    """The pod's own nodeSelector or node affinity does not match."""


class Obstacle(msgspec.Struct, frozen=True):
    """One reason why the pod may not be scheduled on a node."""

    kind: ObstacleKind
    text: str


_KINDS = {
    RefusalCause.TAINT: ObstacleKind.TAINT,
    RefusalCause.AFFINITY: ObstacleKind.AFFINITY,
    RefusalCause.INVALID: ObstacleKind.IMPOSSIBLE,
}


class UnscheduledPod:
    """A pod that is to be scheduled.

    Args:
        demand: its tolerations, and its node affinities of annotation and profiles.
        requirements: what the scheduler reads in its ``nodeSelector`` and node affinity.
        wanted: the restrictions that placement would write now.
        unscheduled_pods: the maker of this pod, which knows the cluster.

    """

    def __init__(
        self, demand: Demand, requirements: NodeRequirements, wanted: Restrictions, unscheduled_pods: "UnscheduledPods"
    ) -> None:
        gates = unscheduled_pods.gates
        self.demand = demand
        self.wanted = wanted
        self.is_impossible = bool(NO_NODE.items() & set(requirements.selector))
        """True if no node matches it, since its restrictions could not be written."""
        self._unscheduled_pods = unscheduled_pods
        self._filter = NodeFilter(demand, gates)
        self._native = NodeFilter(Demand(Tolerations(demand.tolerations.native)), gates)
        selector = tuple(pair for pair in requirements.selector if pair not in NO_NODE.items())
        self._own = NodeRequirements(selector, requirements.terms).without(is_placement_label).as_filter(gates)
        """Judges by its own requirements only, without those that placement has written."""
        self._requirements = requirements.as_filter(gates)
        self._labels = requirements.labels

    def tolerates(self, taint: Taint) -> bool:
        """True if the taint does not repel the pod. Unless it is derived, native tolerations must tolerate it, too."""
        if taint.effect not in REPELLING or self._filter.untolerated(taint):
            return taint.effect not in REPELLING
        return bool(taint.source) or not self._native.untolerated(taint)

    def fits(self, node: Node) -> bool:
        """True if the pod has no obstacle on the node."""
        return next(self.obstacles(node), None) is None

    def obstacles(self, node: Node) -> Iterator[Obstacle]:
        """Reasons why the pod may not be scheduled on the node."""
        taints, labels = [taint for taint, _ in node.taints], labels_of(node)
        refused = self._filter.refusal(taints, labels)
        if refused is not None:
            yield Obstacle(_KINDS[refused.cause], refused.reason)
        else:
            lacking = (taint for taint in taints if not self.tolerates(taint))
            yield from (Obstacle(ObstacleKind.NATIVE, f"taint {taint}: {NATIVE}") for taint in lacking)
        if own := self._own.refusal((), labels):
            yield Obstacle(ObstacleKind.AFFINITY, own.reason)
        elif refused is None and (placed := self._requirements.refusal((), labels)):  # else the refusal covers it
            yield self._placement_obstacle(node, placed.reason)

    def preferences(self, node: Node) -> Preferences:
        """How well the node suits the pod."""
        return self._filter.preferences([taint for taint, _ in node.taints], node.labels)

    def _placement_obstacle(self, node: Node, mismatch: str) -> Obstacle:
        """The obstacle on a node whose labels of placement do not match."""
        if self.is_impossible:
            words = f"{mismatch}: its node affinity could not be written when it was created"
            return Obstacle(ObstacleKind.IMPOSSIBLE, words)
        wanted = self._unscheduled_pods.labels_for(node)
        if self._requirements.refusal((), wanted.applied_to(labels_of(node))) is None:
            differing = ", ".join(
                f"{label} is {node.labels.get(label, 'absent')} and should be {value}"
                for label, value in wanted.labels.items()
                if label in self._labels and node.labels.get(label) != value
            )
            return Obstacle(ObstacleKind.LABELS, f"{mismatch}: {NOT_LABELLED}: {differing}")
        faults = [*(f"{subject}: {why}" for subject, why in wanted.faults), *self.wanted.warnings]
        return Obstacle(ObstacleKind.PLACEMENT, ": ".join(filter(None, (mismatch, "; ".join(faults)))))


class UnscheduledPods:
    """Makes unscheduled pods from a rehearsal that has read the cluster. ``gates``: the enabled operators."""

    def __init__(self, rehearsal: Rehearsal, gates: Gates) -> None:
        self.gates = gates
        self._rehearsal = rehearsal
        self._published = published_labels(rehearsal.policies)
        self._by_labels = bool(self._published or placed_keys(rehearsal.policies))
        profiles = Profiles()
        for profile in rehearsal.profiles:
            profiles.put(profile.namespace, profile.name, profile)
        self._demands = Demands(rehearsal.decoder, profiles)

    def labels_for(self, node: Node) -> NodeLabels:
        """The labels of placement that a node should have."""
        return wanted_labels(node, self._rehearsal.view.policies)

    def of(self, pod: FullPod) -> UnscheduledPod:
        """The unscheduled pod of a stored pod."""
        pod_class = self._rehearsal.decoder.pod_class(pod)
        return self._unscheduled_pod(self._demands.of(pod), pod.spec.node_requirements, pod_class)

    def of_class(
        self,
        pod_class: PodClass,
        requirements: NodeRequirements,
        node_affinity: str | None,
        natives: tuple[Toleration, ...],
    ) -> UnscheduledPod:
        """An unscheduled pod of a class, with these requirements and the annotation ``node_affinity``.

        ``natives`` are native tolerations that it gets in addition.
        """
        metadata = PodMeta(namespace=pod_class.namespace, labels=pod_class.labels)
        metadata.annotations = PodAnnotations(node_affinity=node_affinity)
        own = self._rehearsal.view.tolerations_of(pod_class)
        tolerations = msgspec.structs.replace(own, native=(*own.native, *natives))
        demand = Demand(tolerations, self._demands.of(UnboundPod(metadata)).affinities)
        return self._unscheduled_pod(demand, requirements, pod_class)

    def _unscheduled_pod(self, demand: Demand, requirements: NodeRequirements, pod_class: PodClass) -> UnscheduledPod:
        policies = concerning_policies(
            self._rehearsal.policies, pod_class, self._rehearsal.view.namespace_labels(pod_class.namespace)
        ).placing
        wanted = restrictions(demand, policies, self._published, self.gates)
        found = UnscheduledPod(demand, requirements, wanted, self)
        is_written = found.is_impossible or merge(required := requirements.required(), wanted.affinities)[0] is required
        if self._by_labels and not is_written:  # the scheduler does not see its affinities then
            return UnscheduledPod(Demand(demand.tolerations), requirements, wanted, self)
        return found
