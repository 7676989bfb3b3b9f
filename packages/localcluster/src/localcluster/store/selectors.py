"""Label and field selectors.

Grammar: `k8s.io/apimachinery/pkg/labels` and `.../fields`. They match the labels and selectable fields that the store
keeps with each object. Forbidden here: decoding objects.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from localcluster.errors import bad_request


class Requirement(NamedTuple):
    """`key operator values`, with the operators of label selectors: in, notin, exists, !."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, have: Mapping[str, str]) -> bool:
        """True if the requirement holds for these labels."""
        value = have.get(self.key)
        if self.operator == "in":
            return value is not None and value in self.values
        if self.operator == "notin":
            return value is None or value not in self.values
        if self.operator == "exists":
            return value is not None
        return value is None


Selector = tuple[Requirement, ...]

_PART = re.compile(r",(?![^()]*\))")
_SET = re.compile(r"^\s*(\S+)\s+(in|notin)\s+\(([^()]*)\)\s*$")
_BINARY = re.compile(r"^\s*([^\s!=<>]+)\s*(==|=|!=)\s*(\S*)\s*$")
_UNARY = re.compile(r"^\s*(!?)\s*([^\s!=<>(),]+)\s*$")
_OPERATORS = {"==": "in", "=": "in", "!=": "notin"}


def parse_labels(text: str) -> Selector:
    """Parse a label selector as in `?labelSelector=`. Raises a 400."""
    return tuple(_label_requirement(part, text) for part in _PART.split(text) if part.strip())


_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


def _label_requirement(part: str, whole: str) -> Requirement:
    requirement = _read_requirement(part, whole)
    for value in requirement.values:
        if not _VALUE.fullmatch(value):
            raise bad_request(f"unable to parse requirement: values[0][{requirement.key}]: Invalid value: {value!r}")
    return requirement


def _read_requirement(part: str, whole: str) -> Requirement:
    if match := _SET.match(part):
        return Requirement(match[1], match[2], tuple(value.strip() for value in match[3].split(",")))
    if match := _BINARY.match(part):
        return Requirement(match[1], _OPERATORS[match[2]], (match[3],))
    if match := _UNARY.match(part):
        return Requirement(match[2], match[1] or "exists")
    raise bad_request(f"unable to parse requirement: found '{part}' in {whole!r}")


_FIELD = re.compile(r"^([^=!]+)(!=|==|=)(.*)$", re.DOTALL)


def parse_fields(text: str, known: Sequence[str]) -> Selector:
    """Parse a field selector as in `?fieldSelector=`. Raises a 400, also for a field that is not `known`."""
    requirements = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        match = _FIELD.match(part)
        if not match:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        key, operator, value = match[1], match[2], re.sub(r"\\(.)", r"\1", match[3])
        if key not in known:
            raise bad_request(f"field label not supported: {key}")
        requirements.append(Requirement(key, _OPERATORS[operator], (value,)))
    return tuple(requirements)


_EXPRESSIONS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def from_object(selector: Mapping[str, Any] | None) -> Selector | None:
    """Read a LabelSelector in an object's spec. Returns None, which selects nothing, if it is absent or invalid."""
    if selector is None:
        return None
    requirements = [Requirement(key, "in", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = _EXPRESSIONS.get(expression.get("operator", ""))
        if operator is None:
            return None
        requirements.append(Requirement(expression["key"], operator, tuple(expression.get("values") or ())))
    return tuple(requirements)


def matches(selector: Selector | None, have: Mapping[str, str]) -> bool:
    """True if all requirements hold. None selects nothing, an empty selector everything."""
    return selector is not None and all(requirement.holds(have) for requirement in selector)
