"""Which nodes may get a pod, and why the others may not: by the scheduler's rules for taints and labels, and by ours.

Not considered: resources, ports, affinity to pods, topology spread, the places of volumes.
"""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from taintwarden.engine.model import Gates, Node, PodClass, Taint, Toleration, Tolerations
from taintwarden.engine.profile_selection import Profiles
from taintwarden.kube.wire.kinds import PodAnnotations, PodMeta
from taintwarden_cli.rehearsal.places import Place, PlacedPod, labels_of
from taintwarden_cli.rehearsal.rehearsal import Rehearsal
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_placement.admission.injection import NO_NODE
from taintwarden_placement.admission.merged_affinity import merge
from taintwarden_placement.admission.placing import Restrictions, concerning_policies, restrictions
from taintwarden_placement.node_labels import NodeLabels, wanted_labels
from taintwarden_placement.node_labels.names import is_mirror_label
from taintwarden_placement.node_labels.wanted import placed_keys, published_labels
from taintwarden_placement.scheduling.demands import Demands, UnboundPod
from taintwarden_placement.scheduling.feasibility import REPELLING, Demand, NodeFilter, Preferences, RefusalCause

NATIVE = "only an extended toleration tolerates it, and the scheduler reads native ones: add Exists for the key"
NOT_LABELLED = "the operator has not written its labels of placement"


class ObstacleKind(StrEnum):
    """The kinds of obstacles, in the order in which they are reported. The last two are what you may have intended."""

    IMPOSSIBLE = "impossible"
    """What restricts the pod could not be written, so no node matches."""
    NATIVE = "native"
    """A taint that only an extended toleration tolerates: the native one is missing."""
    LABELS = "labels"
    """The labels of the node do not say what its taints say."""
    PLACEMENT = "placement"
    """What placement has written matches the node no longer, or cannot say what the pod tolerates."""
    TAINT = "taint"
    """A taint is not tolerated."""
    AFFINITY = "affinity"
    """Its own nodeSelector or node affinity does not match."""


class Obstacle(msgspec.Struct, frozen=True):
    """One reason why the pod may not be scheduled on a node."""

    kind: ObstacleKind
    text: str


_KINDS = {
    RefusalCause.TAINT: ObstacleKind.TAINT,
    RefusalCause.AFFINITY: ObstacleKind.AFFINITY,
    RefusalCause.INVALID: ObstacleKind.IMPOSSIBLE,
}


class Candidate:
    """A pod that is to be scheduled.

    Args:
        demand: what it demands, with extended tolerations and node affinity.
        place: what the scheduler reads in its ``nodeSelector`` and node affinity.
        wanted: what placement would write now.
        candidates: what it is one of.

    """

    def __init__(
        self,
        demand: Demand,
        place: Place,
        wanted: Restrictions,
        candidates: "Candidates",
    ) -> None:
        gates = candidates.gates
        self.demand = demand
        self.wanted = wanted
        self.is_impossible = bool(NO_NODE.items() & set(place.selector))
        """Whether no node matches it, since its restrictions could not be written."""
        self._candidates = candidates
        self._judge = NodeFilter(demand, gates)
        self._native = NodeFilter(Demand(Tolerations(demand.tolerations.native)), gates)
        selector = tuple(pair for pair in place.selector if pair not in NO_NODE.items())
        self._own = Place(selector, place.terms).without(is_mirror_label).judge(gates)
        """Without what placement has written."""
        self._place = place.judge(gates)
        self._labels = place.labels

    def tolerates(self, taint: Taint) -> bool:
        """Whether the taint does not keep it off: by all its tolerations, and by those that the scheduler reads."""
        if taint.effect not in REPELLING or self._judge.untolerated(taint):
            return taint.effect not in REPELLING
        return bool(taint.source) or not self._native.untolerated(taint)

    def fits(self, node: Node) -> bool:
        """Whether nothing that is considered keeps it off the node."""
        return next(self.obstacles(node), None) is None

    def obstacles(self, node: Node) -> Iterator[Obstacle]:
        """Why it may not be scheduled on the node."""
        taints, labels = [taint for taint, _ in node.taints], labels_of(node)
        refused = self._judge.refusal(taints, labels)
        if refused is not None:
            yield Obstacle(_KINDS[refused.cause], refused.reason)
        else:
            lacking = (taint for taint in taints if not self.tolerates(taint))
            yield from (Obstacle(ObstacleKind.NATIVE, f"taint {taint}: {NATIVE}") for taint in lacking)
        if own := self._own.refusal((), labels):
            yield Obstacle(ObstacleKind.AFFINITY, own.reason)
        elif refused is None and (placed := self._place.refusal((), labels)):  # otherwise it is said already
            yield self._of_placement(node, placed.reason)

    def preferences(self, node: Node) -> Preferences:
        """How well the node suits."""
        return self._judge.preferences([taint for taint, _ in node.taints], node.labels)

    def _of_placement(self, node: Node, mismatch: str) -> Obstacle:
        """A node that does not match by its labels of placement."""
        if self.is_impossible:
            words = f"{mismatch}: what restricts it to nodes could not be written when it was created"
            return Obstacle(ObstacleKind.IMPOSSIBLE, words)
        wanted = self._candidates.wanted(node)
        if self._place.refusal((), wanted.applied_to(labels_of(node))) is None:
            differing = ", ".join(
                f"{label} is {node.labels.get(label, 'not there')} and should be {value}"
                for label, value in wanted.labels.items()
                if label in self._labels and node.labels.get(label) != value
            )
            return Obstacle(ObstacleKind.LABELS, f"{mismatch}: {NOT_LABELLED}: {differing}")
        faults = [*(f"{subject}: {why}" for subject, why in wanted.faults), *self.wanted.warnings]
        return Obstacle(ObstacleKind.PLACEMENT, ": ".join(filter(None, (mismatch, "; ".join(faults)))))


class Candidates:
    """Reads pods that are to be scheduled.

    Args:
        snapshot: the objects of the cluster.
        taught: a machine that knows them.
        gates: which operators are enabled.

    """

    def __init__(self, snapshot: Snapshot, taught: Rehearsal, gates: Gates) -> None:
        self.gates = gates
        self._taught = taught
        self._published = published_labels(taught.policies)
        self._by_labels = bool(self._published or placed_keys(taught.policies))
        profiles = Profiles()
        for profile in taught.profiles:
            profiles.put(profile.namespace, profile.name, profile)
        self._demands = Demands(taught.decoder, profiles)

    def wanted(self, node: Node) -> NodeLabels:
        """The labels of placement that a node should have."""
        return wanted_labels(node, self._taught.view.policies)

    def of(self, pod: PlacedPod) -> Candidate:
        """What a pod demands."""
        pod_class = self._taught.decoder.pod_class(pod)
        return self._candidate(self._demands.of(pod), pod.spec.place, pod_class)

    def of_class(
        self, pod_class: PodClass, place: Place, node_affinity: str | None, natives: tuple[Toleration, ...]
    ) -> Candidate:
        """What pods of a class demand that require these labels, with this annotation.

        ``natives``: native tolerations that they get in addition.
        """
        metadata = PodMeta(namespace=pod_class.namespace, labels=pod_class.labels)
        metadata.annotations = PodAnnotations(node_affinity=node_affinity)
        own = self._taught.view.tolerations_of(pod_class)
        tolerations = msgspec.structs.replace(own, native=(*own.native, *natives))
        demand = Demand(tolerations, self._demands.of(UnboundPod(metadata)).affinities)
        return self._candidate(demand, place, pod_class)

    def _candidate(self, demand: Demand, place: Place, pod_class: PodClass) -> Candidate:
        policies = concerning_policies(
            self._taught.policies, pod_class, self._taught.view.namespace_labels(pod_class.namespace)
        ).placing
        wanted = restrictions(demand, policies, self._published, self.gates)
        found = Candidate(demand, place, wanted, self)
        is_written = found.is_impossible or merge(required := place.required(), wanted.affinities)[0] is required
        if self._by_labels and not is_written:  # nothing evaluates its affinities then
            return Candidate(Demand(demand.tolerations), place, wanted, self)
        return found
