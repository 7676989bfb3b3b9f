"""Requirements and preferences about nodes, merged into the affinity that a pod brings."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from math import prod
from typing import Any

import msgspec

from taintwarden.engine.affinity import Term
from taintwarden_placement.affinity import MAX_TERMS, Alternatives

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Json = dict[str, Any]


class _Expression(msgspec.Struct):
    key: str = ""


class _Term(msgspec.Struct, rename="camel"):
    match_expressions: list[_Expression] | None = None
    match_fields: list[_Expression] | None = None


class _Selector(msgspec.Struct, rename="camel"):
    node_selector_terms: list[_Term] | None = None


class _NodeAffinity(msgspec.Struct):
    required: _Selector | None = msgspec.field(default=None, name=_REQUIRED)
    preferred: list[Json] | None = msgspec.field(default=None, name=_PREFERRED)


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None


def is_affinity(given: object) -> bool:
    """Whether it has the types of a pod's affinity, or is none. An API server stores no other."""
    try:
        msgspec.convert(given, _Affinity | None)
    except msgspec.ValidationError:
        return False
    return True


def restrict(
    affinity: Mapping[str, Any] | None, restrictions: Sequence[Alternatives]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """A pod's ``affinity`` with each of ``restrictions``; or as it was, with the reason why nothing could be added.

    Affinity to pods is not changed. How terms are merged: :func:`merge`.
    """
    whole = affinity or {}
    of_nodes = whole.get("nodeAffinity") or {}
    required, problem = merge(of_nodes.get(_REQUIRED), restrictions)
    if required is of_nodes.get(_REQUIRED):
        return affinity, problem
    return {**whole, "nodeAffinity": {**of_nodes, _REQUIRED: required}}, None


def merge(
    required: Mapping[str, Any] | None, restrictions: Sequence[Alternatives]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """A node selector with each of ``restrictions``; or as it was, with the reason why nothing could be added.

    Terms are alternatives, so each gets what every restriction demands, in every combination. A term that already
    names a taint's labels is not changed for that taint: users may write their own terms. Nor is one that has what a
    restriction demands, so merging twice has no effect. An empty term matches no node and stays empty.
    """
    restricting = [alternatives for alternatives in restrictions if not alternatives.unrestricted]
    if not restricting:
        return required, None
    given = [{}] if required is None else required.get("nodeSelectorTerms") or []
    if len(given) > MAX_TERMS:  # looked at one by one they would only show that nothing can be added
        return required, f"has {len(given)} nodeSelectorTerms of its own, and {MAX_TERMS} are possible for placement"
    lacking = [(term, _missing(term, restricting, may_be_empty=required is None)) for term in given]
    if not any(missing for _, missing in lacking):
        return required, None
    number = sum(prod(len(one.terms) for one in missing) for _, missing in lacking)
    if number > MAX_TERMS:  # counted before they are built: a pod may have many terms and many combinations
        by = ", ".join(alternatives.key for alternatives in restricting)
        return required, f"placement by {by} takes {number} nodeSelectorTerms, at most {MAX_TERMS} are possible"
    merged = [
        _extended(term, combination) if missing else term
        for term, missing in lacking
        for combination in product(*(one.terms for one in missing))
    ]
    return {**(required or {}), "nodeSelectorTerms": merged}, None


def preference(weight: int, term: Term) -> Json:
    """One entry of the preferred node affinity."""
    return {"weight": weight, "preference": _extended({}, [term])}


def prefer(
    affinity: Mapping[str, Any] | None, groups: Iterable[Sequence[Json]]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """A pod's ``affinity`` with these preferences; or as it was, with the reason why nothing could be added.

    A group of which all are there already is not added again.
    """
    whole = affinity or {}
    of_nodes = whole.get("nodeAffinity") or {}
    given = of_nodes.get(_PREFERRED) or []
    added = [one for group in groups if not all(one in given for one in group) for one in group]
    if not added:
        return affinity, None
    if len(given) + len(added) > MAX_TERMS:
        return affinity, f"has {len(given)} preferences of its own, and {MAX_TERMS} are possible for placement"
    return {**whole, "nodeAffinity": {**of_nodes, _PREFERRED: [*given, *added]}}, None


def _missing(term: Json, restricting: Sequence[Alternatives], *, may_be_empty: bool) -> list[Alternatives]:
    """The restrictions that a term lacks. Empty: none was there, so it stands for every node."""
    expressions = term.get("matchExpressions") or []
    if not (may_be_empty or expressions or term.get("matchFields")):
        return []
    mentioned = {expression.get("key") for expression in expressions}
    return [
        alternatives
        for alternatives in restricting
        if mentioned.isdisjoint(alternatives.labels)
        and not any(all(one.as_json() in expressions for one in term) for term in alternatives.terms)
    ]


def _extended(term: Json, added: Iterable[Term]) -> Json:
    expressions = term.get("matchExpressions") or []
    return {**term, "matchExpressions": [*expressions, *(one.as_json() for one in chain(*added))]}
