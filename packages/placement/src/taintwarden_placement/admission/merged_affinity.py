"""Requirements and preferences about nodes, merged into a pod's own affinity."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, product
from math import prod
from typing import Any

import msgspec

from taintwarden.engine.affinity import NodeRequirement, Term
from taintwarden_placement.affinity import MAX_TERMS, Alternatives

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Json = dict[str, Any]
_encoded = msgspec.json.Encoder(order="sorted").encode
"""Function that makes an entry hashable: a pod may have 20,000 requirements, and each profile is compared with them."""


_as_json = lru_cache(4_096)(NodeRequirement.as_json)
"""Returns one object for equal requirements, which must not be changed: each may be added to many terms."""


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
    """True if ``given`` is None or has the types of a pod's affinity. An API server stores nothing else."""
    try:
        msgspec.convert(given, _Affinity | None)
    except msgspec.ValidationError:
        return False
    return True


def restrict(
    affinity: Mapping[str, Any] | None, restrictions: Sequence[Alternatives]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """Return a pod's ``affinity`` with all ``restrictions``; or unchanged, with the reason if they cannot be added.

    Affinity to pods is not changed. :func:`merge` describes how terms are merged.
    """
    whole = affinity or {}
    node_affinity = whole.get("nodeAffinity") or {}
    required, problem = merge(node_affinity.get(_REQUIRED), restrictions)
    if required is node_affinity.get(_REQUIRED):
        return affinity, problem
    return {**whole, "nodeAffinity": {**node_affinity, _REQUIRED: required}}, None


def merge(
    required: Mapping[str, Any] | None, restrictions: Sequence[Alternatives]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """Return a node selector with all ``restrictions``; or unchanged, with the reason if they cannot be added.

    Terms are alternatives, so each is combined with every alternative of every restriction. A term that already names
    a taint's labels is not changed for that taint: users may write their own terms. A term that already meets a
    restriction is not changed for it, so merging twice has no effect. An empty term matches no node and stays empty.
    """
    restricting = [alternatives for alternatives in restrictions if not alternatives.unrestricted]
    if not restricting:
        return required, None
    given = [{}] if required is None else required.get("nodeSelectorTerms") or []
    if len(given) > MAX_TERMS:  # checked first, since comparing each term would only delay the same result
        return required, f"the pod has {len(given)} nodeSelectorTerms, and placement allows {MAX_TERMS}"
    compared = [(one, [{_encoded(_as_json(part)) for part in term} for term in one.terms]) for one in restricting]
    lacking = [(term, _missing(term, compared, may_be_empty=required is None)) for term in given]
    if not any(missing for _, missing in lacking):
        return required, None
    number = sum(prod(len(alternatives.terms) for alternatives in missing) for _, missing in lacking)
    if number > MAX_TERMS:  # counted first, since there may be too many combinations to build
        by = ", ".join(alternatives.key for alternatives in restricting)
        return required, f"placement by {by} takes {number} nodeSelectorTerms, at most {MAX_TERMS} are possible"
    merged = [
        _extended(term, combination) if missing else term
        for term, missing in lacking
        for combination in product(*(alternatives.terms for alternatives in missing))
    ]
    return {**(required or {}), "nodeSelectorTerms": merged}, None


def preference(weight: int, term: Term) -> Json:
    """Return one entry of the preferred node affinity."""
    return {"weight": weight, "preference": _extended({}, [term])}


def prefer(
    affinity: Mapping[str, Any] | None, groups: Iterable[Sequence[Json]]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """Return a pod's ``affinity`` with these preferences; or unchanged, with the reason if they cannot be added.

    A group is not added if the affinity already has all of it.
    """
    whole = affinity or {}
    node_affinity = whole.get("nodeAffinity") or {}
    given = node_affinity.get(_PREFERRED) or []
    known = set(map(_encoded, given))
    added = [one for group in groups if not known.issuperset(map(_encoded, group)) for one in group]
    if not added:
        return affinity, None
    if len(given) + len(added) > MAX_TERMS:
        return affinity, f"the pod has {len(given)} preferences and gets {len(added)}: placement allows {MAX_TERMS}"
    return {**whole, "nodeAffinity": {**node_affinity, _PREFERRED: [*given, *added]}}, None


def _missing(
    term: Json, restricting: Iterable[tuple[Alternatives, Sequence[set[bytes]]]], *, may_be_empty: bool
) -> list[Alternatives]:
    """Return the restrictions that a term lacks, each given with its terms as encoded requirements.

    ``may_be_empty``: True if an empty term means every node.
    """
    expressions = term.get("matchExpressions") or []
    if not (may_be_empty or expressions or term.get("matchFields")):
        return []
    mentioned, known = {expression.get("key") for expression in expressions}, set(map(_encoded, expressions))
    return [
        alternatives
        for alternatives, terms in restricting
        if mentioned.isdisjoint(alternatives.labels) and not any(map(known.issuperset, terms))
    ]


def _extended(term: Json, added: Iterable[Term]) -> Json:
    expressions = term.get("matchExpressions") or []
    return {**term, "matchExpressions": [*expressions, *map(_as_json, chain(*added))]}
