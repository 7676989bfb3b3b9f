"""Translation of a pod's extended tolerations for one taint key into requirements of its node affinity."""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations, product

import msgspec

from taintwarden.engine.affinity import NodeOperator, NodeRequirement, Term
from taintwarden.engine.model import Effect, Gates, Toleration
from taintwarden.engine.operators import ALL_GATES
from taintwarden_placement.affinity.node_matching import check_of
from taintwarden_placement.affinity.translation import Translation
from taintwarden_placement.node_labels.names import NO_EFFECT, TaintLabels, effect_text, taint_labels
from taintwarden_placement.node_labels.wanted import neutral_labels

REQUIRED_EFFECTS = (Effect.NO_EXECUTE, Effect.NO_SCHEDULE)
"""Effects of taints that keep pods off a node."""


class Alternatives(msgspec.Struct, frozen=True):
    """A restriction by a taint key or a node affinity: one of ``terms`` must match, unless ``unrestricted``.

    ``labels``: of the taint; none for an affinity, whose ``key`` is its source. ``faults``: why nodes are left out.
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
    """Return the nodes that a pod with these *extended* ``tolerations`` may use, by the taint ``key``.

    ``effects`` are those for which the pod has a native toleration. The scheduler itself rejects nodes with other
    effects. The result is unrestricted if an ``Exists`` tolerates every value, if no extended toleration names the key
    (the scheduler evaluates the native ones), or with a fault for a key that is too long. A node without the taint is
    included once its labels say so: a node that the operator has not labelled yet may have any value.
    """
    labels = taint_labels(key)
    if not any(entry.key == key for entry in tolerations):
        return Alternatives(key, unrestricted=True)
    if labels is None:
        return Alternatives(key, unrestricted=True, faults=(f"{key}: its prefix is too long for a label",))
    faults: dict[str, None] = {}
    by_effect: dict[str, tuple[Term, ...] | None] = {}
    for effect in effects:
        translation = Translation(labels, gates)
        for entry in tolerations:
            if entry.key in ("", key) and entry.effect in ("", effect):
                translation.add(entry)
        by_effect[effect] = translation.terms()
        faults |= dict.fromkeys(translation.faults)
    neutral = neutral_labels([key])
    present = _where_present(by_effect, labels, neutral)
    if present is None:
        return Alternatives(key, unrestricted=True)
    if not any(_is_met(term, neutral) for term in present):
        present = ((NodeRequirement(labels.effect, NodeOperator.IN, (NO_EFFECT,)),), *present)
    return Alternatives(key, msgspec.structs.astuple(labels), present, faults=tuple(faults))


def _is_met(term: Term, labels: Mapping[str, str]) -> bool:
    return all(check_of(requirement)(labels.get(requirement.key)) for requirement in term)


def _where_present(
    by_effect: dict[str, tuple[Term, ...] | None], labels: TaintLabels, neutral: Mapping[str, str]
) -> tuple[Term, ...] | None:
    """Return the terms for nodes with the taint; None if there is no requirement for any effect.

    If the requirement depends on the effect, each combination of effects that a node may have gets its own terms. A
    node without the taint is included in one of them if no further term is necessary for that.
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
    absent: tuple[str, ...] = (NO_EFFECT,)
    for term, wanted in texts.items():
        if named := tuple(text for text in wanted if text is not None):
            besides = absent if _is_met(term, neutral) else ()
            absent = () if besides else absent
            found.append((NodeRequirement(labels.effect, NodeOperator.IN, (*besides, *named)), *term))
        if None in wanted:  # a node that is not labelled yet lacks the label of effects, too
            labelled = term or (NodeRequirement(labels.value, NodeOperator.EXISTS),)
            found.append((NodeRequirement(labels.effect, NodeOperator.DOES_NOT_EXIST), *labelled))
    return tuple(found)


def _all_of(groups: Sequence[tuple[Term, ...]]) -> list[Term]:
    """Return all combinations of one term from each distinct group."""
    combined = (chain.from_iterable(terms) for terms in product(*dict.fromkeys(groups)))
    return [tuple(dict.fromkeys(term)) for term in combined]
