"""Requirements and preferences about nodes, merged into the affinity that a pod brings."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from math import prod
from typing import Any

from taintwarden.engine.placement import Alternatives, Term

MAX_TERMS = 64
"""So many ``nodeSelectorTerms`` at most: the scheduler tries them one after the other for every node."""
WEIGHT = 100
"""Of a preference: the greatest. Kubernetes, too, weighs a taint with ``PreferNoSchedule`` more than node affinity."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Json = dict[str, Any]


def restrict(
    affinity: Mapping[str, Any] | None, per_key: Sequence[Alternatives]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """``affinity`` with what each of ``per_key`` requires; or as it was, with the reason why nothing could be added.

    Terms are alternatives, so each gets the requirements of every key, in every combination. A term that already
    names a key's labels is not changed for that key: users may write their own terms, and merging twice has no effect.
    An empty term matches no node and stays empty.
    """
    restricting = _restricting(per_key)
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


def prefer(
    affinity: Mapping[str, Any] | None, per_key: Sequence[Alternatives]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """``affinity`` with a preference for nodes that meet one of the alternatives; or as it was, with the reason.

    For a key whose labels a preference already names, none is added.
    """
    whole = affinity or {}
    of_nodes = whole.get("nodeAffinity") or {}
    given = of_nodes.get(_PREFERRED) or []
    named = _named(one.get("preference") or {} for one in given)
    missing = [one for one in _restricting(per_key) if named.isdisjoint(one.labels)]
    added = [{"weight": WEIGHT, "preference": _extended({}, [term])} for one in missing for term in one.terms]
    if not added:
        return affinity, None
    if len(given) + len(added) > MAX_TERMS:
        return affinity, f"has {len(given)} preferences of its own, and {MAX_TERMS} are possible for placement"
    return {**whole, "nodeAffinity": {**of_nodes, _PREFERRED: [*given, *added]}}, None


def _restricting(per_key: Sequence[Alternatives]) -> list[Alternatives]:
    return [alternatives for alternatives in per_key if not alternatives.unrestricted]


def _named(terms: Iterable[Json]) -> set[object]:
    """The labels that terms name."""
    return {expression.get("key") for term in terms for expression in term.get("matchExpressions") or []}


def _missing(term: Json, restricting: Sequence[Alternatives], *, may_be_empty: bool) -> list[Alternatives]:
    """The keys whose requirements a term lacks. Empty: none was there, so it stands for every node."""
    expressions = term.get("matchExpressions") or []
    if not (may_be_empty or expressions or term.get("matchFields")):
        return []
    mentioned = _named([term])
    return [one for one in restricting if mentioned.isdisjoint(one.labels)]


def _multiplied(term: Json, missing: Sequence[Alternatives]) -> list[Json]:
    """One term for each combination of what the keys allow."""
    return (
        [_extended(term, combination) for combination in product(*(one.terms for one in missing))]
        if missing
        else [term]
    )


def _extended(term: Json, added: Iterable[Term]) -> Json:
    expressions = term.get("matchExpressions") or []
    return {**term, "matchExpressions": [*expressions, *(one.as_json() for one in chain(*added))]}
