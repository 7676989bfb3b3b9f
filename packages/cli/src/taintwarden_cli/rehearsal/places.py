"""The nodes that match a pod's ``nodeSelector`` and required ``nodeAffinity``, or a volume's.

As ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``: terms are alternatives, an empty one matches no node.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from taintwarden.engine import affinity
from taintwarden.engine.affinity import NodeOperator
from taintwarden.engine.model import Gates, Taint, Toleration
from taintwarden.engine.operators import Match, match
from taintwarden.kube.wire.kinds import ObjectCondition, OwnerReference, PodSpec, PodStatus, UnboundPod, VolumeObject
from taintwarden_placement.affinity.node_matching import LabelMatch, match_label
from taintwarden_placement.scheduling.feasibility import REPELLING


class NativeRequirement(msgspec.Struct, frozen=True):
    """An entry of ``matchExpressions`` or ``matchFields``, with the operators that only nodes have."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.key} {self.operator} ({', '.join(self.values)})" if self.values else f"{self.key} {self.operator}"
        )

    def as_json(self) -> dict[str, Any]:
        """The entry in the form of the API."""
        written: dict[str, Any] = {"key": self.key, "operator": self.operator}
        return written | {"values": list(self.values)} if self.values else written

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` match it."""
        if self.operator not in list(NodeOperator):
            return False
        requirement = affinity.NodeRequirement(self.key, NodeOperator(self.operator), self.values)
        return match_label(requirement, labels) is LabelMatch.HOLDS


def selector_text(selector: Mapping[str, Any]) -> str:
    """The ``selector`` of a workload as the API server takes it in ``labelSelector``."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        key, values = one.get("key", ""), ",".join(one.get("values") or ())
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "DoesNotExist": f"!{key}"}
        parts.append(forms.get(one.get("operator", ""), key))
    return ",".join(parts)


def accepts(native: Iterable[Toleration], taint: Taint, gates: Gates) -> bool:
    """Whether the scheduler accepts the taint: it reads native tolerations only, and does not know what is derived."""
    if taint.source or taint.effect not in REPELLING:
        return True
    return any(match(one, taint, gates) is Match.HOLDS for one in native)


class NodeTerm(msgspec.Struct, frozen=True, rename="camel"):
    """One of ``nodeSelectorTerms``: all its requirements have to match."""

    match_expressions: tuple[NativeRequirement, ...] = ()
    match_fields: tuple[NativeRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it requires nothing: it matches no node then."""
        return not (self.match_expressions or self.match_fields)

    def as_json(self) -> dict[str, Any]:
        """The term in the form of the API."""
        parts = (("matchExpressions", self.match_expressions), ("matchFields", self.match_fields))
        return {name: [one.as_json() for one in found] for name, found in parts if found}

    def holds(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node matches it."""
        return not self.is_empty and next(self.failing(name, labels), None) is None

    def without(self, is_left_out: Callable[[str], bool]) -> "NodeTerm":
        """The same without what it requires of these labels."""
        return NodeTerm(tuple(one for one in self.match_expressions if not is_left_out(one.key)), self.match_fields)

    def failing(self, name: str, labels: Mapping[str, str]) -> Iterator[NativeRequirement]:
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

    def schedules(
        self,
        native: Iterable[Toleration],
        name: str,
        labels: Mapping[str, str],
        taints: Iterable[Taint],
        gates: Gates,
    ) -> bool:
        """Whether the scheduler would accept the node for a pod with these native tolerations: labels and taints."""
        return self.fits(name, labels) and all(accepts(native, taint, gates) for taint in taints)

    def failing(self, name: str, labels: Mapping[str, str]) -> Iterator[NativeRequirement | None]:
        """What the node does not match: of ``nodeSelector``, and the first of each term; None for an empty term."""
        for key, value in self.selector:
            if labels.get(key) != value:
                yield NativeRequirement(key, "In", (value,))
        if self.terms is not None and not any(term.holds(name, labels) for term in self.terms):
            if not self.terms:
                yield None
            yield from (next(term.failing(name, labels), None) for term in self.terms)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it names, each once."""
        terms = (one.key for term in self.terms or () for one in term.match_expressions)
        return tuple(dict.fromkeys((*(key for key, _ in self.selector), *terms)))

    @property
    def names_nodes(self) -> bool:
        """Whether it names nodes, as that of a DaemonSet's pod does."""
        return any(term.match_fields for term in self.terms or ())

    def required(self) -> dict[str, Any] | None:
        """What is required by node affinity, in the form of the API."""
        return None if self.terms is None else {"nodeSelectorTerms": [term.as_json() for term in self.terms]}

    def requiring(self, required: Mapping[str, Any] | None) -> "Place":
        """The same with other node affinity, in the form of the API."""
        terms = None if required is None else msgspec.convert(required, _NodeSelector).node_selector_terms
        return Place(self.selector, terms)

    def without(self, is_left_out: Callable[[str], bool]) -> "Place":
        """The same without what it requires of these labels by node affinity."""
        if self.terms is None:
            return self
        rest = [(term, term.without(is_left_out)) for term in self.terms]
        is_free = any(left.is_empty and not term.is_empty for term, left in rest)
        return Place(self.selector, None if is_free else tuple(dict.fromkeys(left for _, left in rest)))


class _NodeSelector(msgspec.Struct, rename="camel"):
    node_selector_terms: tuple[NodeTerm, ...] = ()


class _NodeAffinity(msgspec.Struct):
    required: _NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class PlacedSpec(PodSpec, rename="camel"):
    """``spec`` of a pod, with what the scheduler reads of the labels of nodes."""

    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: _Affinity | None = None

    @property
    def place(self) -> Place:
        """Its requirements on node labels."""
        required = self.affinity and self.affinity.node_affinity and self.affinity.node_affinity.required
        terms = required.node_selector_terms if required else None
        return Place(tuple(sorted(self.node_selector.items())), terms)


class _VolumeAffinity(msgspec.Struct):
    required: _NodeSelector | None = None


class _VolumeSpec(msgspec.Struct, rename="camel"):
    node_affinity: _VolumeAffinity | None = None


class PlacedVolume(VolumeObject):
    """A v1 PersistentVolume as commands read it."""

    spec: _VolumeSpec = msgspec.field(default_factory=_VolumeSpec)

    @property
    def place(self) -> Place:
        """Its requirements on node labels, which the scheduler evaluates for the pods that use it."""
        required = self.spec.node_affinity and self.spec.node_affinity.required
        return Place((), required.node_selector_terms if required else None)


class _ToldCondition(ObjectCondition):
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

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that creates it again."""
        return next((one for one in self.metadata.owner_references if one.controller), None)
