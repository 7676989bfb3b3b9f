"""Translates node affinity with versions into what the scheduler can compare: the numbers of repeated labels.

What cannot be expressed exactly matches fewer nodes and is reported, as with tolerations.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, product
from math import prod

import msgspec

from taintwarden.api.placement_labels import label_version_label, plain_labels
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

MAX_TERMS = 64
"""So many terms at most: the scheduler tries them one after the other for every node."""


class NativeAffinity(msgspec.Struct, frozen=True):
    """Node affinity without versions. ``required`` None: every node will do; without a term, none does.

    ``faults`` are sentences about nodes that match and are left out.
    """

    required: tuple[Term, ...] | None = None
    preferred: tuple[Preference, ...] = ()
    faults: tuple[str, ...] = ()


def native_affinity(affinity: NodeAffinity, published: Collection[str], gates: Gates = ALL_GATES) -> NativeAffinity:
    """``affinity`` over labels of placement. ``published``: the labels whose versions are repeated as numbers."""
    translator = _Translator(published, gates)
    required = None if affinity.required is None else translator.terms(affinity.required)
    preferred = tuple(
        Preference(one.weight, term) for one in affinity.preferred for term in translator.terms((one.term,))
    )
    if len(preferred) > MAX_TERMS:
        preferred = ()
        translator.faults[f"no preference is used: they take more than {MAX_TERMS} terms"] = None
    return NativeAffinity(required, preferred, tuple(translator.faults))


class _Translator:
    """Collects the faults of all terms, each once."""

    def __init__(self, published: Collection[str], gates: Gates) -> None:
        self.faults: dict[str, None] = {}
        self._published = published
        self._gates = gates

    def terms(self, terms: Sequence[Term]) -> tuple[Term, ...]:
        """Terms that match the same nodes, but for the faults."""
        alternatives = [[self._alternatives(requirement) for requirement in term] for term in terms]
        number = sum(map(_number, alternatives))
        if number > MAX_TERMS:  # counted before they are built
            self.faults[f"no node matches: it takes {number} terms, at most {MAX_TERMS} are possible"] = None
            return ()
        return tuple(chain.from_iterable(_combined(one) for one in alternatives))

    def _alternatives(self, requirement: NodeRequirement) -> tuple[Term, ...]:
        """Terms of which one must match where the requirement holds."""
        if requirement.operator not in COMPARING_NODE_OPERATORS or len(requirement.values) != 1:
            return ((requirement,),)
        number_label = label_version_label(requirement.key)
        if requirement.operator in SEMVER_NODE_OPERATORS and requirement.key not in self._published:
            self.faults[f"{requirement}: no policy lists the label {requirement.key} under versionLabels"] = None
            return ()
        # Only versions can be switched off: the scheduler has always compared the integers of labels.
        translation = Translation(
            plain_labels(requirement.key, number_label or ""), Gates(semver_operators=self._gates.semver_operators)
        )
        translation.add(Toleration(requirement.key, requirement.operator, requirement.values[0]))
        terms = translation.terms() or ()
        self.faults |= dict.fromkeys(translation.faults)
        return terms


def _number(alternatives: Sequence[Sequence[Term]]) -> int:
    return prod(map(len, alternatives)) if alternatives else 0


def _combined(alternatives: Sequence[Sequence[Term]]) -> Iterator[Term]:
    if alternatives:  # an empty term matches no node
        yield from (tuple(chain.from_iterable(each)) for each in product(*alternatives))
