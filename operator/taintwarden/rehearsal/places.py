"""The nodes that match a pod's ``nodeSelector`` and required ``nodeAffinity``: the scheduler's rules for labels.

As ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``: terms are alternatives, an empty one matches no node.
"""

from collections.abc import Iterator, Mapping

import msgspec

from taintwarden.kube.objects import Condition, PodStatus, UnboundPod, UnboundPodSpec
from taintwarden.rehearsal.node_requirements import NodeRequirement


class NodeTerm(msgspec.Struct, frozen=True, rename="camel"):
    """One of ``nodeSelectorTerms``: all its requirements have to match."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()

    def holds(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node matches it."""
        is_empty = not (self.match_expressions or self.match_fields)
        return not is_empty and next(self.failing(name, labels), None) is None

    def failing(self, name: str, labels: Mapping[str, str]) -> Iterator[NodeRequirement]:
        """The requirements that the node does not match."""
        fields = {"metadata.name": name}
        yield from (one for one in self.match_fields if not one.holds(fields))
        yield from (one for one in self.match_expressions if not one.holds(labels))


class Place(msgspec.Struct, frozen=True):
    """A pod's requirements on node labels. ``terms`` None: no affinity is required."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    def fits(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the scheduler would accept the node's labels."""
        return not list(self.failing(name, labels))

    def failing(self, name: str, labels: Mapping[str, str]) -> Iterator[NodeRequirement | None]:
        """What the node does not match: of ``nodeSelector``, and the first of each term; None for an empty term."""
        for key, value in self.selector:
            if labels.get(key) != value:
                yield NodeRequirement(key, "In", (value,))
        if self.terms is not None and not any(term.holds(name, labels) for term in self.terms):
            if not self.terms:
                yield None
            yield from (next(term.failing(name, labels), None) for term in self.terms)


class _NodeSelector(msgspec.Struct, rename="camel"):
    node_selector_terms: tuple[NodeTerm, ...] = ()


class _NodeAffinity(msgspec.Struct):
    required: _NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class PlacedSpec(UnboundPodSpec, rename="camel"):
    """``spec`` of a pod, with what the scheduler reads of the labels of nodes."""

    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: _Affinity | None = None

    @property
    def place(self) -> Place:
        """Its requirements on node labels."""
        required = self.affinity and self.affinity.node_affinity and self.affinity.node_affinity.required
        terms = required.node_selector_terms if required else None
        return Place(tuple(sorted(self.node_selector.items())), terms)


class _ToldCondition(Condition):
    reason: str = ""
    message: str = ""


class _ToldStatus(PodStatus, rename="camel"):
    conditions: list[_ToldCondition] = msgspec.field(default_factory=list)  # type: ignore[assignment] # only read


class PlacedPod(UnboundPod):
    """A v1 Pod as commands read it."""

    spec: PlacedSpec = msgspec.field(default_factory=PlacedSpec)
    status: _ToldStatus = msgspec.field(default_factory=_ToldStatus)

    @property
    def is_pending(self) -> bool:
        """Whether the scheduler has yet to bind it."""
        is_over = self.metadata.deletion_timestamp is not None or self.status.phase in ("Succeeded", "Failed")
        return not (self.spec.node_name or is_over)

    @property
    def unschedulable(self) -> str:
        """Why the scheduler found no node; empty if it did not say so."""
        found = (one for one in self.status.conditions if (one.type, one.status) == ("PodScheduled", "False"))
        return next((one.message for one in found), "")
