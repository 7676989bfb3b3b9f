"""The demand of a pod on nodes, from all sources: its tolerations, its annotation, its profiles."""

from collections.abc import Iterator

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION, parse_node_affinity
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.decoding.text_cache import cached_by_text
from taintwarden.engine.profile_selection import Profiles
from taintwarden.fields.text import printable
from taintwarden.kube.wire.kinds import PodObject
from taintwarden_placement.scheduling.feasibility import Demand, SourcedAffinity

MAX_FAULT_CHARACTERS = 400
"""Maximum length of the errors of one affinity. An Event has 1,024 characters."""


class UnboundPod(PodObject):
    """A v1 Pod that is not scheduled yet. Schedulers and API servers send it; no stream delivers it."""


class Demands:
    """Reads the demands of pods.

    Args:
        decoder: decodes pods into engine values.
        profiles: the profiles of all namespaces.

    """

    def __init__(self, decoder: Decoder, profiles: Profiles) -> None:
        self._decoder = decoder
        self._profiles = profiles
        self._parse = cached_by_text(parse_node_affinity)

    def of(self, pod: UnboundPod) -> Demand:
        """Return the demand of a pod."""
        pod_class = self._decoder.pod_class(pod)
        profiles = self._profiles.of(pod_class)
        affinities = list(self._annotated(pod))
        affinities += [
            SourcedAffinity(f"profile {one.name}", one.affinity) for one in profiles if one.affinity is not None
        ]
        return Demand(self._profiles.tolerations(pod_class), tuple(affinities))

    def _annotated(self, pod: UnboundPod) -> Iterator[SourcedAffinity]:
        annotations = pod.metadata.annotations
        if annotations is not None and annotations.node_affinity is not None:
            affinity, errors = self._parse(annotations.node_affinity)
            fault = printable("; ".join(map(str, errors)), MAX_FAULT_CHARACTERS)
            yield SourcedAffinity(f"annotation {AFFINITY_ANNOTATION}", affinity, fault)
