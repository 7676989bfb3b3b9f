"""Translation of node affinity with versions into integer comparisons of node labels, which the scheduler can do.

A requirement that cannot be expressed exactly matches fewer nodes and is reported as a fault.
"""

from collections.abc import Collection, Sequence
from itertools import chain, product
from math import prod

import msgspec

from taintwarden.engine.affinity import (
    COMPARING_NODE_OPERATORS,
    SEMVER_NODE_OPERATORS,
    NodeAffinity,
    NodeRequirement,
    Preference,
    Term,
)
from taintwarden.engine.model import Gates, Toleration
from taintwarden.engine.operators import ALL_GATES
from taintwarden_placement.affinity.translation import Translation
from taintwarden_placement.node_labels.names import label_version_label, plain_labels

MAX_TERMS = 64
"""Maximum number of terms. The scheduler tries each of them for every node."""


class NativeAffinity(msgspec.Struct, frozen=True):
    """Node affinity without versions. ``required`` None matches every node; an empty tuple matches none.

    ``faults`` are sentences about matching nodes that are left out.
    """

    required: tuple[Term, ...] | None = None
    preferred: tuple[Preference, ...] = ()
    faults: tuple[str, ...] = ()


def native_affinity(affinity: NodeAffinity, published: Collection[str], gates: Gates = ALL_GATES) -> NativeAffinity:
    """Translate ``affinity``. ``published`` are the node labels whose versions are repeated as numbers."""
    faults: dict[str, None] = {}

    def terms(given: Sequence[Term]) -> tuple[Term, ...]:
        """Translate terms. Nodes that are left out are in ``faults``. An empty term matches no node."""
        alternatives = [[_alternatives(one, published, gates, faults) for one in term] for term in given if term]
        number = sum(prod(map(len, alternative)) for alternative in alternatives)
        if number > MAX_TERMS:  # counted first, since there may be too many to build
            faults[f"its terms are left out: they take {number} native ones, at most {MAX_TERMS} are possible"] = None
            return ()
        return tuple(tuple(chain.from_iterable(each)) for alternative in alternatives for each in product(*alternative))

    required = None if affinity.required is None else terms(affinity.required)
    preferred = tuple(Preference(one.weight, term) for one in affinity.preferred for term in terms((one.term,)))
    if len(preferred) > MAX_TERMS:
        preferred = ()
        faults[f"no preference is used: they take more than {MAX_TERMS} terms"] = None
    return NativeAffinity(required, preferred, tuple(faults))


def _alternatives(
    requirement: NodeRequirement, published: Collection[str], gates: Gates, faults: dict[str, None]
) -> tuple[Term, ...]:
    """Return alternative terms. A node that matches one of them meets the requirement."""
    if requirement.operator not in COMPARING_NODE_OPERATORS or len(requirement.values) != 1:
        return ((requirement,),)
    number_label = label_version_label(requirement.key)
    if requirement.operator in SEMVER_NODE_OPERATORS and requirement.key not in published:
        faults[f"{requirement}: no policy lists the label {requirement.key} under versionLabels"] = None
        return ()
    # Only comparisons of versions can be switched off: Kubernetes always compares integers in node affinity.
    only_semver = Gates(semver_operators=gates.semver_operators)
    translation = Translation(plain_labels(requirement.key, number_label or ""), only_semver)
    translation.add(Toleration(requirement.key, requirement.operator, requirement.values[0]))
    terms = translation.terms() or ()
    faults |= dict.fromkeys(translation.faults)
    return terms
