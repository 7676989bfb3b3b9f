"""Translates a pod's extended tolerations for one taint key into requirements of its node affinity."""

from collections.abc import Sequence
from itertools import chain, combinations, product

import msgspec

from taintwarden.engine.affinity import NodeOperator, NodeRequirement, Term
from taintwarden.engine.matching.tolerations import ALL_GATES
from taintwarden.engine.model import Effect, Gates, Toleration
from taintwarden.engine.placement.labels import (
    NO_EFFECT,
    effect_label,
    effect_text,
    prefer_value_label,
    prefer_version_label,
    value_label,
    version_label,
)
from taintwarden.engine.placement.translation import Translation

REQUIRED_EFFECTS = (Effect.NO_EXECUTE, Effect.NO_SCHEDULE)
"""Those that keep pods off a node."""


class Alternatives(msgspec.Struct, frozen=True):
    """What a node must meet because of one taint key: one of ``terms``, unless it is ``unrestricted``.

    ``labels`` are those that the terms may name. ``faults`` are sentences about nodes that are tolerated but left out.
    """

    key: str
    labels: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()
    unrestricted: bool = False
    faults: tuple[str, ...] = ()


def requirements(
    key: str,
    tolerations: Sequence[Toleration],
    gates: Gates = ALL_GATES,
    effects: Sequence[str] = REQUIRED_EFFECTS,
) -> Alternatives:
    """The nodes onto which the scheduler may put a pod with these *extended* ``tolerations``, by the taint ``key``.

    ``effects``: those of the taints that the scheduler accepts by native tolerations; it rejects the others itself,
    and they need no requirement. Unrestricted: an ``Exists``, or no extended toleration
    names the key, so that the native ones decide, which the scheduler evaluates. A node without the taint is included.
    With ``NoSchedule`` the operator has to have said so: the native toleration lets the pod in, and nothing evicts it
    again.
    """
    value, version, effect = value_label(key), version_label(key), effect_label(key)
    if not _names(key, tolerations):
        return Alternatives(key, unrestricted=True)
    if value is None or version is None or effect is None:
        return Alternatives(key, unrestricted=True, faults=(f"{key}: its prefix is too long for a label",))
    faults: dict[str, None] = {}
    by_effect: dict[str, tuple[Term, ...] | None] = {}
    for one in effects:
        by_effect[one], found = _tolerated(key, one, tolerations, Translation(value, version, gates))
        faults |= dict.fromkeys(found)
    present = _where_present(by_effect, value, effect)
    if present is None:
        return Alternatives(key, unrestricted=True)
    absent = (
        NodeRequirement(effect, NodeOperator.IN, (NO_EFFECT,))
        if Effect.NO_SCHEDULE in effects
        else NodeRequirement(value, NodeOperator.DOES_NOT_EXIST)
    )
    return Alternatives(key, (value, version, effect), ((absent,), *present), faults=tuple(faults))


def preferences(key: str, tolerations: Sequence[Toleration], gates: Gates = ALL_GATES) -> Alternatives:
    """The same by taints with ``PreferNoSchedule``: nodes that the scheduler should prefer."""
    value, version = prefer_value_label(key), prefer_version_label(key)
    if not _names(key, tolerations) or value is None or version is None:
        return Alternatives(key, unrestricted=True)
    translation = Translation(value, version, gates, disjoint=True)
    present, faults = _tolerated(key, Effect.PREFER_NO_SCHEDULE, tolerations, translation)
    if present is None:
        return Alternatives(key, unrestricted=True)
    absent = (NodeRequirement(value, NodeOperator.DOES_NOT_EXIST),)
    return Alternatives(key, (value, version), (absent, *present), faults=faults)


def _names(key: str, tolerations: Sequence[Toleration]) -> bool:
    """Whether extended tolerations decide about the taint ``key``."""
    return any(entry.key == key for entry in tolerations)


def _tolerated(
    key: str, effect: str, tolerations: Sequence[Toleration], translation: Translation
) -> tuple[tuple[Term, ...] | None, tuple[str, ...]]:
    """What a node with the taint must meet, None for nothing; and the faults."""
    for entry in tolerations:
        if entry.key in ("", key) and entry.effect in ("", effect):
            translation.add(entry)
    return translation.terms(), tuple(translation.faults)


def _where_present(by_effect: dict[str, tuple[Term, ...] | None], value: str, effect: str) -> tuple[Term, ...] | None:
    """What a node with the taint must meet; None if there is no requirement for any effect.

    If it depends on the effect, each combination of effects that a node may have gets its own requirements.
    """
    groups = list(dict.fromkeys(by_effect.values()))
    if len(groups) <= 1:
        return groups[0] if groups else None
    texts: dict[Term, list[str | None]] = {}
    for size in range(1, len(by_effect) + 1):
        for effects in combinations(by_effect, size):
            for term in _all_of([terms for one in effects if (terms := by_effect[one]) is not None]):
                texts.setdefault(term, []).append(effect_text(effects))
    found: list[Term] = []
    for term, wanted in texts.items():
        if named := tuple(text for text in wanted if text is not None):
            found.append((NodeRequirement(effect, NodeOperator.IN, named), *term))
        if None in wanted:  # nor has a node that was not looked at the label
            labelled = term or (NodeRequirement(value, NodeOperator.EXISTS),)
            found.append((NodeRequirement(effect, NodeOperator.DOES_NOT_EXIST), *labelled))
    return tuple(found)


def _all_of(groups: Sequence[tuple[Term, ...]]) -> list[Term]:
    """All combinations of one term from each distinct group."""
    combined = (chain.from_iterable(terms) for terms in product(*dict.fromkeys(groups)))
    return [tuple(dict.fromkeys(term)) for term in combined]
