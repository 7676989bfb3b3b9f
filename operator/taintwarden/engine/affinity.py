"""Node affinity: the node labels that a pod, a profile or a volume requires and prefers."""

from enum import StrEnum

import msgspec


class NodeOperator(StrEnum):
    """The operators of ``matchExpressions`` for nodes: those of Kubernetes, and ``Semver*`` of KEP-5721."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    SEMVER_GT = "SemverGt"
    SEMVER_LT = "SemverLt"
    SEMVER_EQ = "SemverEq"


SEMVER_NODE_OPERATORS = (NodeOperator.SEMVER_GT, NodeOperator.SEMVER_LT, NodeOperator.SEMVER_EQ)
COMPARING_NODE_OPERATORS = (NodeOperator.GT, NodeOperator.LT, *SEMVER_NODE_OPERATORS)
"""Operators that compare with exactly one value, the label on the left: ``label OPERATOR value``."""


class NodeRequirement(msgspec.Struct, frozen=True):
    """One entry of ``matchExpressions``."""

    key: str
    operator: NodeOperator
    values: tuple[str, ...] = ()

    def as_json(self) -> dict[str, str | list[str]]:
        """Return the entry in the form of the API."""
        written: dict[str, str | list[str]] = {"key": self.key, "operator": self.operator.value}
        return written | {"values": list(self.values)} if self.values else written

    def __str__(self) -> str:
        if not self.values:
            return f"{self.key} {self.operator}"
        shown = ", ".join(map(repr, self.values))
        return f"{self.key} {self.operator} {shown if len(self.values) == 1 else f'({shown})'}"


Term = tuple[NodeRequirement, ...]
"""Requirements that all have to hold."""


class Preference(msgspec.Struct, frozen=True):
    """A term that adds ``weight``, 1 to 100, to the score of the nodes that match it."""

    weight: int
    term: Term


class NodeAffinity(msgspec.Struct, frozen=True, cache_hash=True):
    """Required and preferred labels of a node. A node has to match at least one of the ``required`` terms.

    ``required`` None: every node matches. Empty: no node matches, as in ``NOWHERE``.
    """

    required: tuple[Term, ...] | None = None
    preferred: tuple[Preference, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the labels that are compared, each once."""
        terms = (*(self.required or ()), *(preference.term for preference in self.preferred))
        return tuple(dict.fromkeys(requirement.key for term in terms for requirement in term))


NOWHERE = NodeAffinity(required=())
"""Replacement for an affinity that cannot be read: it may require anything, so no node is known to match."""
