"""Where a pod may be by its ``nodeSelector`` and required ``nodeAffinity``: the scheduler's rules for labels.

As ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``: the terms are alternatives, an empty one holds nowhere.
"""

from collections.abc import Mapping

import msgspec

from taintwarden.rehearsal.node_requirements import NodeRequirement


class NodeTerm(msgspec.Struct, frozen=True, rename="camel"):
    """One of ``nodeSelectorTerms``: all of it must hold."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()

    def holds(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node meets it."""
        if not (self.match_expressions or self.match_fields):
            return False
        fields = {"metadata.name": name}
        return all(one.holds(labels) for one in self.match_expressions) and all(
            one.holds(fields) for one in self.match_fields
        )


class Place(msgspec.Struct, frozen=True):
    """What a pod asks of a node's labels. ``terms`` None: no affinity is required."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    def fits(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the scheduler would take the node, as far as its labels go."""
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        return self.terms is None or any(term.holds(name, labels) for term in self.terms)
