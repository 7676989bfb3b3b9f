"""Node selectors as the scheduler reads them, written from its documentation, independently of the product.

Terms are alternatives, requirements of a term must all hold, an empty term holds nowhere. ``Gt`` and ``Lt`` read both
sides with ``strconv.ParseInt`` in base ten, and do not hold where the label is absent or no integer.
"""

import re
from collections.abc import Iterable, Mapping


def parse_int(text: str) -> int | None:
    """The result of Go's strconv.ParseInt(text, 10, 64): signs and leading zeros are accepted, nothing else."""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def requirement_holds(requirement: Mapping, labels: Mapping[str, str]) -> bool:
    label, values = labels.get(requirement["key"]), requirement.get("values", ())
    match requirement["operator"]:
        case "Exists":
            return label is not None
        case "DoesNotExist":
            return label is None
        case "In":
            return label is not None and label in values
        case "NotIn":
            return label is None or label not in values
    assert len(values) == 1, "Gt and Lt take one value"
    assert re.fullmatch(r"[0-9]+", values[0]), "the API server takes no sign"
    number, bound = parse_int(label or ""), parse_int(values[0])
    if number is None or bound is None:
        return False
    return number > bound if requirement["operator"] == "Gt" else number < bound


def term_holds(term: Mapping, labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or []
    return bool(expressions) and all(requirement_holds(requirement, labels) for requirement in expressions)


def holds(terms: Iterable[Mapping], labels: Mapping[str, str]) -> bool:
    return any(term_holds(term, labels) for term in terms)
