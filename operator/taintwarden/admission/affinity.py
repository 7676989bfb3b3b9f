"""Requirements on nodes, merged into the affinity that a pod brings."""

from collections.abc import Mapping, Sequence
from itertools import chain, product
from math import prod
from typing import Any

from taintwarden.engine.placement import Alternatives, effect_label, value_label, version_label

MAX_TERMS = 64
"""So many ``nodeSelectorTerms`` at most: the scheduler tries them one after the other for every node."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_LABELS = (value_label, version_label, effect_label)
Json = dict[str, Any]


def restrict(
    affinity: Mapping[str, Any] | None, per_key: Sequence[Alternatives]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """``affinity`` with what each of ``per_key`` requires; or as it was, with the reason why nothing could be added.

    Terms are alternatives, so each gets the requirements of every key, in every combination. A term that already
    names a key's labels is not changed for that key: users may write their own terms, and merging twice has no effect.
    An empty term matches no node and stays empty. Preferred affinity and affinity to pods are not changed.
    """
    restricting = [alternatives for alternatives in per_key if not alternatives.unrestricted]
    if not restricting:
        return affinity, None
    whole = affinity or {}
    of_nodes = whole.get("nodeAffinity") or {}
    required = of_nodes.get(_REQUIRED)
    given = [{}] if required is None else required.get("nodeSelectorTerms") or []
    if len(given) > MAX_TERMS:  # looked at one by one they would only show that nothing can be added
        return affinity, f"has {len(given)} nodeSelectorTerms of its own, and {MAX_TERMS} are possible for placement"
    lacking = [(term, _missing(term, restricting, may_be_empty=required is None)) for term in given]
    if not any(missing for _, missing in lacking):
        return affinity, None
    number = sum(prod(len(one.terms) for one in missing) for _, missing in lacking)
    if number > MAX_TERMS:  # counted before they are built: a pod may have many terms and many combinations
        keys = ", ".join(alternatives.key for alternatives in restricting)
        return affinity, f"placement by {keys} takes {number} nodeSelectorTerms, at most {MAX_TERMS} are possible"
    merged = [new for term, missing in lacking for new in _multiplied(term, missing)]
    required = {**(required or {}), "nodeSelectorTerms": merged}
    return {**whole, "nodeAffinity": {**of_nodes, _REQUIRED: required}}, None


def _missing(term: Json, restricting: Sequence[Alternatives], *, may_be_empty: bool) -> list[Alternatives]:
    """The keys whose requirements a term lacks. Empty: none was there, so it stands for every node."""
    expressions = term.get("matchExpressions") or []
    if not (may_be_empty or expressions or term.get("matchFields")):
        return []
    mentioned = {expression.get("key") for expression in expressions}
    return [one for one in restricting if mentioned.isdisjoint(label(one.key) for label in _LABELS)]


def _multiplied(term: Json, missing: Sequence[Alternatives]) -> list[Json]:
    """One term for each combination of what the keys allow."""
    if not missing:
        return [term]
    expressions = term.get("matchExpressions") or []
    return [
        {**term, "matchExpressions": [*expressions, *(added.as_json() for added in chain(*combination))]}
        for combination in product(*(one.terms for one in missing))
    ]
