"""What a pod demands of a node, from all sources: its tolerations, its annotation, its profiles, its volumes."""

from collections.abc import Callable, Iterator

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION, Parsed, parse_node_affinity
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.decoding.remembered import Remembered
from taintwarden.engine.profile_selection import Profiles
from taintwarden.fields.text import printable
from taintwarden.kube.wire.kinds import PodVolume
from taintwarden_placement.scheduling.feasibility import Demand, Sourced
from taintwarden_placement.scheduling.objects import UnboundPod

MAX_FAULT_CHARACTERS = 400
"""Of the errors of one affinity: an Event has 1,024 characters."""


class Demands:
    """Reads pods.

    Args:
        decoder: makes engine values of pods.
        profiles: those of all namespaces.
        claims: the volume that the claim ``namespace/name`` names, bound or not; None without one.
        volumes: what the annotation of the volume of a name says; None without one.

    """

    def __init__(
        self,
        decoder: Decoder,
        profiles: Profiles,
        claims: Callable[[str], str | None] = lambda _: None,
        volumes: Callable[[str], Parsed | None] = lambda _: None,
    ) -> None:
        self._decoder = decoder
        self._profiles = profiles
        self._claims = claims
        self._volumes = volumes
        self._parse = Remembered(parse_node_affinity)

    def of(self, pod: UnboundPod) -> Demand:
        """All that the pod demands.

        A claim that names no volume demands nothing. Of the claims of pods that a scheduler asks about, only those have
        none whose volume the scheduler itself chooses, after the node (``WaitForFirstConsumer``).
        """
        pod_class = self._decoder.pod_class(pod)
        profiles = self._profiles.of(pod_class)
        affinities = list(self._annotated(pod))
        affinities += [Sourced(f"profile {one.name}", one.affinity) for one in profiles if one.affinity is not None]
        affinities += self._of_volumes(pod)
        return Demand(self._profiles.tolerations(pod_class, profiles), tuple(affinities))

    def _annotated(self, pod: UnboundPod) -> Iterator[Sourced]:
        annotations = pod.metadata.annotations
        if annotations is not None and annotations.node_affinity is not None:
            yield _sourced(f"annotation {AFFINITY_ANNOTATION}", self._parse(annotations.node_affinity))

    def _of_volumes(self, pod: UnboundPod) -> Iterator[Sourced]:
        for volume in pod.spec.volumes:
            claim = claim_of(volume, pod)
            name = claim and self._claims(f"{pod.metadata.namespace}/{claim}")
            parsed = self._volumes(name) if name else None
            if parsed is not None:
                yield _sourced(f"PersistentVolume {name}", parsed)


def claim_of(volume: PodVolume, pod: UnboundPod) -> str:
    """The name of the claim of a volume; empty without one."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    # As pkg/volume/util and the ephemeral volume controller name it.
    return "" if volume.ephemeral is None else f"{pod.metadata.name}-{volume.name}"


def _sourced(source: str, parsed: Parsed) -> Sourced:
    affinity, errors = parsed
    return Sourced(source, affinity, printable("; ".join(map(str, errors)), MAX_FAULT_CHARACTERS))
