"""The requirements of pods on labels of nodes, by ``nodeSelector`` and required ``nodeAffinity``."""

from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.engine.affinity import NodeAffinity, NodeOperator, NodeRequirement, Term
from taintwarden.engine.model import Gates, Node
from taintwarden.kube.wire.kinds import ObjectCondition, OwnerReference, PodMeta, PodSpec, PodStatus
from taintwarden_placement.scheduling.demands import UnboundPod
from taintwarden_placement.scheduling.feasibility import Demand, NodeFilter, SourcedAffinity

NAME_FIELD = "metadata.name"
"""The key of ``matchFields`` for the name of a node, which is treated as a label here."""


def labels_of(node: Node) -> dict[str, str]:
    """The labels of a node, and its name."""
    return {**node.labels, NAME_FIELD: node.name}


class NodeTerm(msgspec.Struct, frozen=True, rename="camel"):
    """One of ``nodeSelectorTerms``: all its requirements have to match."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()

    @property
    def requirements(self) -> Term:
        """All requirements of the term."""
        return (*self.match_fields, *self.match_expressions)

    def as_json(self) -> dict[str, Any]:
        """The term in the form of the API."""
        parts = (("matchExpressions", self.match_expressions), ("matchFields", self.match_fields))
        return {name: [requirement.as_json() for requirement in found] for name, found in parts if found}


class NodeRequirements(msgspec.Struct, frozen=True):
    """A pod's requirements on node labels. ``terms`` is None if no affinity is required."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    @property
    def affinity(self) -> NodeAffinity:
        """All requirements. As in Kubernetes, terms are alternatives, and an empty one matches no node."""
        own = tuple(NodeRequirement(key, NodeOperator.IN, (value,)) for key, value in self.selector)
        if self.terms is None:
            return NodeAffinity((own,) if own else None)
        return NodeAffinity(tuple((*own, *found) for one in self.terms if (found := one.requirements)))

    def as_filter(self, gates: Gates, source: str = "the pod, or its nodeSelector,") -> NodeFilter:
        """Return a filter of nodes by labels, in which ``NAME_FIELD`` is the name."""
        return NodeFilter(Demand(affinities=(SourcedAffinity(source, self.affinity),)), gates)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it names, each once."""
        return self.affinity.keys

    def required(self) -> dict[str, Any] | None:
        """The required node affinity, in the form of the API."""
        return None if self.terms is None else {"nodeSelectorTerms": [term.as_json() for term in self.terms]}

    def without(self, is_left_out: Callable[[str], bool]) -> "NodeRequirements":
        """The requirements without those of node affinity on the labels that ``is_left_out`` selects."""
        if self.terms is None:
            return self
        rest = {
            NodeTerm(tuple(one for one in term.match_expressions if not is_left_out(one.key)), term.match_fields): None
            for term in self.terms
            if term.requirements
        }
        return NodeRequirements(self.selector, None if NodeTerm() in rest else tuple(rest))


class _NodeSelector(msgspec.Struct, rename="camel"):
    node_selector_terms: tuple[NodeTerm, ...] = ()


class _NodeAffinity(msgspec.Struct):
    required: _NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class FullPodSpec(PodSpec, rename="camel"):
    """``spec`` of a pod, with the fields that restrict it to nodes by labels."""

    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: _Affinity | None = None

    @property
    def node_requirements(self) -> NodeRequirements:
        """Its requirements on node labels."""
        required = self.affinity and self.affinity.node_affinity and self.affinity.node_affinity.required
        terms = required.node_selector_terms if required else None
        return NodeRequirements(tuple(sorted(self.node_selector.items())), terms)


class _FullCondition(ObjectCondition):
    reason: str = ""
    message: str = ""


class _FullStatus(PodStatus, rename="camel"):
    conditions: list[_FullCondition] = msgspec.field(default_factory=list)  # type: ignore[assignment] # only read


class _FullMeta(PodMeta, rename="camel"):
    finalizers: tuple[str, ...] = ()


class FullPod(UnboundPod):
    """A v1 Pod, with fields that the operator does not need."""

    metadata: _FullMeta = msgspec.field(default_factory=_FullMeta)
    spec: FullPodSpec = msgspec.field(default_factory=FullPodSpec)
    status: _FullStatus = msgspec.field(default_factory=_FullStatus)

    @property
    def is_pending(self) -> bool:
        """True if the scheduler has yet to bind it."""
        return not (self.spec.node_name or self.metadata.deletion_timestamp is not None or self.is_finished)

    @property
    def is_on_node(self) -> bool:
        """True unless it has finished. A finished pod that terminates counts: a finalizer or a volume keeps it."""
        return self.metadata.deletion_timestamp is not None or not self.is_finished

    @property
    def is_finished(self) -> bool:
        """True if its containers have ended for good."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def unschedulable(self) -> str:
        """Why the scheduler found no node; empty if it did not say so."""
        found = (one for one in self.status.conditions if (one.type, one.status) == ("PodScheduled", "False"))
        return next((condition.message for condition in found), "")

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that creates it again."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)
