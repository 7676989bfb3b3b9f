"""Translates a pod's extended tolerations for one taint key into requirements of its node affinity."""

from collections.abc import Iterable, Sequence
from itertools import chain, combinations, product

import msgspec

from taintwarden.engine.affinity import NodeOperator, NodeRequirement, Term
from taintwarden.engine.matching.tolerations import ALL_GATES
from taintwarden.engine.model import Gates, Toleration
from taintwarden.engine.placement.labels import effect_label, effect_text, value_label, version_label
from taintwarden.engine.placement.translation import Translation


class Alternatives(msgspec.Struct, frozen=True):
    """What a node must meet because of one taint key: one of ``terms``, unless it is ``unrestricted``.

    ``faults`` are sentences about nodes that are tolerated but left out.
    """

    key: str
    terms: tuple[Term, ...] = ()
    unrestricted: bool = False
    faults: tuple[str, ...] = ()


def requirements(
    key: str, tolerations: Sequence[Toleration], effects: Iterable[str], gates: Gates = ALL_GATES
) -> Alternatives:
    """The nodes on which a pod with these *extended* ``tolerations`` may be placed, with regard to the taint ``key``.

    ``effects`` are those with which policies select the taint for placement. Unrestricted: an ``Exists``, or no
    extended toleration names the key, so that the native ones decide, which the scheduler evaluates. A node without
    the taint is always included.
    """
    if all(entry.key != key for entry in tolerations):
        return Alternatives(key, unrestricted=True)
    value, version, effect = value_label(key), version_label(key), effect_label(key)
    if value is None or version is None or effect is None:
        return Alternatives(key, unrestricted=True, faults=(f"{key}: its prefix is too long for a label",))
    by_effect: dict[str, tuple[Term, ...] | None] = {}
    faults: dict[str, None] = {}
    for one in sorted(set(effects)):
        translation = Translation(value, version, gates)
        for entry in tolerations:
            if entry.key in ("", key) and entry.effect in ("", one):
                translation.add(entry)
        by_effect[one] = translation.terms()
        faults |= dict.fromkeys(translation.faults)
    present = _where_present(by_effect, effect)
    if present is None:
        return Alternatives(key, unrestricted=True)
    absent = (NodeRequirement(value, NodeOperator.DOES_NOT_EXIST),)
    return Alternatives(key, (absent, *present), faults=tuple(faults))


def _where_present(by_effect: dict[str, tuple[Term, ...] | None], label: str) -> tuple[Term, ...] | None:
    """What a node with the taint must meet; None if there is no requirement for any effect.

    If it depends on the effect, each combination of effects that a node may have gets its own requirements.
    """
    groups = list(dict.fromkeys(by_effect.values()))
    if len(groups) <= 1:
        return groups[0] if groups else None
    texts: dict[Term, list[str | None]] = {}
    for size in range(1, len(by_effect) + 1):
        for effects in combinations(by_effect, size):
            for term in _all_of([terms for effect in effects if (terms := by_effect[effect]) is not None]):
                texts.setdefault(term, []).append(effect_text(effects))
    found: list[Term] = []
    for term, wanted in texts.items():
        if named := tuple(text for text in wanted if text is not None):
            found.append((NodeRequirement(label, NodeOperator.IN, named), *term))
        if None in wanted:
            found.append((NodeRequirement(label, NodeOperator.DOES_NOT_EXIST), *term))
    return tuple(found)


def _all_of(groups: Sequence[tuple[Term, ...]]) -> list[Term]:
    """All combinations of one term from each distinct group."""
    combined = (chain.from_iterable(terms) for terms in product(*dict.fromkeys(groups)))
    return [tuple(dict.fromkeys(term)) for term in combined]
