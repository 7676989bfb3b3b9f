"""Which nodes may get a pod, and why the others may not: by the scheduler's rules for taints and labels, and by ours.

Not considered: resources, ports, affinity to pods, topology spread, the places of volumes other than by labels.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

import msgspec

from taintwarden.api.node_affinity import Parsed, parse_volume_affinity
from taintwarden.api.placement_labels import is_mirror_label, keys_of
from taintwarden.engine.model import Gates, Node, PodClass, Profile
from taintwarden.engine.profile_selection import Profiles
from taintwarden.kube.wire.kinds import PodAnnotations, PodMeta, UnboundPod
from taintwarden_cli.rehearsal.places import NativeRequirement, Place, PlacedPod, PlacedVolume, accepts
from taintwarden_cli.rehearsal.rehearsal import Rehearsal
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.rehearsal.written import WrittenPod
from taintwarden_placement.admission.placing import ConcerningPolicies, acting, placed_keys, published_labels
from taintwarden_placement.node_labels import NodeLabels, wanted_labels
from taintwarden_placement.scheduling.demands import Demands, claim_of
from taintwarden_placement.scheduling.feasibility import MAX_TOLD, Demand, Judge, Preferences, RefusalCause

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
    OUTDATED = "outdated"
    """The node affinity of the pod is not the one that it would get now."""
    UNPUBLISHED = "unpublished"
    """A version of a label is compared that no policy lists."""
    VOLUME = "volume"
    """The node affinity of its volume does not match."""
    INEXPRESSIBLE = "inexpressible"
    """Labels cannot express a value of the node, or a toleration of the pod."""
    TAINT = "taint"
    """A taint is not tolerated."""
    AFFINITY = "affinity"
    """Its own nodeSelector or node affinity does not match."""


class Obstacle(msgspec.Struct, frozen=True):
    """One reason why the pod may not be scheduled on a node: what does not match, and why, if that is known."""

    kind: ObstacleKind
    mismatch: str
    cause: str = ""

    @property
    def text(self) -> str:
        """Both."""
        return f"{self.mismatch}: {self.cause}" if self.cause else self.mismatch


class Candidate:
    """A pod that is to be scheduled.

    Args:
        demand: what it demands, with extended tolerations and node affinity.
        place: what the scheduler reads in its ``nodeSelector`` and node affinity.
        volumes: those that its claims are bound to, with node affinity.
        written: what would be written now.
        wanted: the labels of placement that a node should have.
        gates: which operators are enabled.

    """

    def __init__(
        self,
        demand: Demand,
        place: Place,
        volumes: Sequence[PlacedVolume],
        written: WrittenPod,
        wanted: "WantedLabels",
        gates: Gates,
    ) -> None:
        self._demand = demand
        self._native = demand.tolerations.native
        self._place = place
        self._volumes = volumes
        self._wanted = wanted
        self._gates = gates
        self._judge = Judge(demand, gates)
        self.written = written

    def refusals(self, node: Node) -> Iterator[str]:
        """Why it may not be scheduled on the node. Empty: nothing that is considered keeps it off."""
        yield from (one.text for one in self.obstacles(node))

    def obstacles(self, node: Node) -> Iterator[Obstacle]:
        """The same, each with its kind."""
        taints = [taint for taint, _ in node.taints]
        refused = self._judge.refusal(taints, node.labels)
        if refused is not None:
            kinds = {
                RefusalCause.TAINT: ObstacleKind.TAINT,
                RefusalCause.AFFINITY: ObstacleKind.AFFINITY,
                RefusalCause.INVALID: ObstacleKind.IMPOSSIBLE,
            }
            yield Obstacle(kinds[refused.cause], refused.reason)
        else:
            lacking = (taint for taint in taints if not accepts(self._native, taint, self._gates))
            yield from (Obstacle(ObstacleKind.NATIVE, f"taint {taint}", NATIVE) for taint in lacking)
        failing = list(self._place.failing(node.name, node.labels))
        if failing and not (refused is not None and all(map(_is_ours, failing))):  # otherwise the same twice
            yield self._of_labels(node, failing)
        for volume in self._volumes:
            of_volume = list(volume.place.failing(node.name, node.labels))
            if of_volume:
                yield self._of_volume(node, volume, of_volume)

    def distinct(self, nodes: Iterable[Node]) -> list[Node]:
        """Of nodes that do not differ in what decides about the pod, the first: clusters have many alike."""
        labels = (*self._place.labels, *self.written.place.labels, *self._demand.keys)
        named = tuple(dict.fromkeys((*labels, *(label for one in self._volumes for label in one.place.labels))))
        found: dict[object, Node] = {}
        for node in nodes:
            name = node.name if self._place.names_nodes else ""
            values = tuple([node.labels.get(label) for label in named])
            is_labelled = any(map(is_mirror_label, node.labels))
            found.setdefault((name, tuple(taint for taint, _ in node.taints), values, is_labelled), node)
        return list(found.values())

    @property
    def unpublished(self) -> list[str]:
        """The labels whose versions are compared, by the pod or a volume, and that no policy lists."""
        of_volumes = keys_of(label for volume in self._volumes for label in volume.place.labels)
        asked = (
            *self.written.source_labels,
            *self.written.compared_labels,
            *(one.key for one in of_volumes if one.of_label),
        )
        return [key for key in dict.fromkeys(asked) if key not in self._wanted.published]

    def preferences(self, node: Node) -> Preferences:
        """How well the node suits."""
        return self._judge.preferences([taint for taint, _ in node.taints], node.labels)

    def _of_labels(self, node: Node, failing: Sequence[NativeRequirement | None]) -> Obstacle:
        mismatch = f"its nodeSelector or node affinity does not match ({_told(failing)})"
        if self.written.is_impossible:
            return Obstacle(ObstacleKind.IMPOSSIBLE, mismatch, _UNWRITTEN)
        if not self.written.own.fits(node.name, node.labels):  # then nothing of ours would help
            return Obstacle(ObstacleKind.AFFINITY, mismatch)
        wanted = self._wanted.of(node)
        if lag := self._lag(node, wanted, self._place):
            return Obstacle(ObstacleKind.LABELS, mismatch, lag)
        if self.written.is_possible_now and self.written.place.fits(node.name, node.labels):
            return Obstacle(ObstacleKind.OUTDATED, mismatch, self._outdated)
        if unpublished := self._unpublished(failing):
            return Obstacle(ObstacleKind.UNPUBLISHED, mismatch, _UNPUBLISHED.format(unpublished))
        faults = [*(f"{subject}: {why}" for subject, why in wanted.faults), *self.written.wanted.warnings]
        return Obstacle(ObstacleKind.INEXPRESSIBLE, mismatch, "; ".join(faults))

    def _of_volume(self, node: Node, volume: PlacedVolume, failing: Sequence[NativeRequirement | None]) -> Obstacle:
        told = f"the node affinity of PersistentVolume {volume.metadata.name} does not match ({_told(failing)})"
        if lag := self._lag(node, self._wanted.of(node), volume.place):
            return Obstacle(ObstacleKind.LABELS, told, lag)
        if unpublished := self._unpublished(failing):
            return Obstacle(ObstacleKind.UNPUBLISHED, told, _UNPUBLISHED.format(unpublished))
        return Obstacle(ObstacleKind.VOLUME, told)

    def _lag(self, node: Node, wanted: NodeLabels, place: Place) -> str:
        """What the operator has not written yet, if the node would match with it."""
        if not place.fits(node.name, wanted.on(node.labels)):
            return ""
        if not any(map(is_mirror_label, node.labels)):
            return NOT_LABELLED
        differing = (
            f"{label} is {node.labels.get(label, 'not there')} and should be {value}"
            for label, value in wanted.labels.items()
            if label in place.labels and node.labels.get(label) != value
        )
        return f"{NOT_LABELLED}: {', '.join(differing)}"

    def _unpublished(self, failing: Sequence[NativeRequirement | None]) -> str:
        """The labels whose versions no policy has repeated."""
        found = (one.key for one in keys_of(one.key for one in failing if one is not None) if one.of_label)
        return ", ".join(key for key in found if key not in self._wanted.published)

    @cached_property
    def _outdated(self) -> str:
        ended = self.written.ended()
        if ended:
            return f"no policy places it by {', '.join(ended)} any more, and it keeps the affinity of its creation"
        return "it keeps the affinity of its creation, and would get another one now"


_UNWRITTEN = "what restricts it to nodes could not be written when it was created"
_UNPUBLISHED = "no policy lists the label {} under versionLabels"


class WantedLabels:
    """The labels of placement that nodes should have.

    Args:
        taught: a machine that knows the cluster.

    """

    def __init__(self, taught: Rehearsal) -> None:
        self._view = taught.view
        self.published = published_labels(taught.policies)
        """The labels whose versions are repeated."""

    def of(self, node: Node) -> NodeLabels:
        """Those of a node."""
        return wanted_labels(node, self._view.policies)


class Candidates:
    """Reads pods that are to be scheduled.

    Args:
        snapshot: the objects of the cluster.
        taught: a machine that knows them.
        gates: which operators are enabled.

    """

    def __init__(self, snapshot: Snapshot, taught: Rehearsal, gates: Gates) -> None:
        self._claims = {
            f"{one.metadata.namespace}/{one.metadata.name}": one.spec.volume_name for one in snapshot.claims
        }
        self._volumes = {one.metadata.name: one for one in snapshot.volumes}
        self._gates = gates
        self._taught = taught
        self._wanted = WantedLabels(taught)
        self._by_labels = bool(self._wanted.published or placed_keys(taught.policies))
        annotated = _annotated(snapshot, by_labels=self._by_labels)
        self._demands = Demands(taught.decoder, _indexed(taught.profiles), self._claims, annotated)

    def of(self, pod: PlacedPod) -> Candidate:
        """What a pod demands."""
        pod_class = self._taught.decoder.pod_class(pod)
        return self._candidate(self._demands.of(pod), pod.spec.place, pod_class, self._bound(pod))

    def of_class(self, pod_class: PodClass, place: Place, node_affinity: str | None) -> Candidate:
        """What pods of a class demand that require these labels, with this annotation; their volumes are not known."""
        metadata = PodMeta(namespace=pod_class.namespace, labels=pod_class.labels)
        metadata.annotations = PodAnnotations(node_affinity=node_affinity)
        tolerations = self._taught.view.tolerations_of(pod_class)
        demand = Demand(tolerations, self._demands.of(UnboundPod(metadata)).affinities)
        return self._candidate(demand, place, pod_class, ())

    def _candidate(
        self, demand: Demand, place: Place, pod_class: PodClass, volumes: Sequence[PlacedVolume]
    ) -> Candidate:
        written = WrittenPod(place, demand, self._acting(pod_class), self._wanted.published, self._gates)
        if self._by_labels and not written.has_affinities:  # nothing evaluates them then
            demand = Demand(demand.tolerations)
        return Candidate(demand, place, volumes, written, self._wanted, self._gates)

    def _acting(self, pod_class: PodClass) -> ConcerningPolicies:
        labels = self._taught.view.namespace_labels(pod_class.namespace)
        return acting(self._taught.policies, pod_class, labels)

    def _bound(self, pod: PlacedPod) -> list[PlacedVolume]:
        names = (claim_of(volume, pod) for volume in pod.spec.volumes)
        bound = (self._claims.get(f"{pod.metadata.namespace}/{name}") for name in names if name)
        return [self._volumes[name] for name in bound if name and name in self._volumes]


def _is_ours(requirement: NativeRequirement | None) -> bool:
    return requirement is not None and is_mirror_label(requirement.key)


def _told(failing: Sequence[NativeRequirement | None]) -> str:
    return "; ".join("an empty term matches no node" if one is None else str(one) for one in failing[:MAX_TOLD])


def _indexed(profiles: tuple[Profile, ...]) -> Profiles:
    found = Profiles()
    for profile in profiles:
        found.put(profile.namespace, profile.name, profile)
    return found


def _annotated(snapshot: Snapshot, *, by_labels: bool) -> Mapping[str, Parsed]:
    """The annotations of volumes, which only the scheduler extender evaluates. Otherwise their own affinity counts."""
    if by_labels:
        return {}
    texts = ((one.metadata.name, one.metadata.annotations) for one in snapshot.volumes)
    given = {name: ours.node_affinity for name, ours in texts if ours is not None}
    return {name: parse_volume_affinity(text) for name, text in given.items() if text is not None}
