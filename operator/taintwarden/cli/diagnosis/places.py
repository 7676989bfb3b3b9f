"""The nodes that match a pod's ``nodeSelector`` and required ``nodeAffinity``: the scheduler's rules for labels.

As ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``: terms are alternatives, an empty one matches no node.
"""

from collections.abc import Mapping

import msgspec

from taintwarden.rehearsal.node_requirements import NodeRequirement


class NodeTerm(msgspec.Struct, frozen=True, rename="camel"):
    """One of ``nodeSelectorTerms``: all its requirements have to match."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()

    def holds(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node matches it."""
        if not (self.match_expressions or self.match_fields):
            return False
        fields = {"metadata.name": name}
        return all(one.holds(labels) for one in self.match_expressions) and all(
            one.holds(fields) for one in self.match_fields
        )


class Place(msgspec.Struct, frozen=True):
    """A pod's requirements on node labels. ``terms`` None: no affinity is required."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    def fits(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the scheduler would accept the node's labels."""
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        return self.terms is None or any(term.holds(name, labels) for term in self.terms)
