"""Node affinity as it is defined, one requirement after the other, as the reference for faster code."""

from collections.abc import Mapping

from taintwarden.engine.affinity import NodeAffinity, Term
from taintwarden.engine.model import Gates
from taintwarden.engine.operators import ALL_GATES
from taintwarden_placement.affinity.node_matching import check_of


def matches(affinity: NodeAffinity, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> bool:
    """Return True if a node with these labels matches the required terms."""
    return affinity.required is None or any(term_matches(term, labels, gates) for term in affinity.required)


def weight(affinity: NodeAffinity, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> int:
    """The sum of the weights of those preferences that a node with these labels meets."""
    return sum(one.weight for one in affinity.preferred if term_matches(one.term, labels, gates))


def term_matches(term: Term, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> bool:
    """Return True if all requirements hold. An empty term matches no node."""
    return bool(term) and all(check_of(one, gates)(labels.get(one.key)) for one in term)
