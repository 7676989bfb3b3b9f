"""The comparison of node affinity with the labels of a node.

As ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity`` and ``k8s.io/apimachinery/pkg/labels``, and KEP-5721 for
versions: the label is on the left, and a label that cannot be compared does not match.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import eq, gt, lt
from typing import Any

from taintwarden.engine.affinity import SEMVER_NODE_OPERATORS, NodeOperator, NodeRequirement
from taintwarden.engine.model import Gates
from taintwarden.engine.numeric import MAX_INT64, MIN_INT64
from taintwarden.engine.operators import ALL_GATES
from taintwarden.engine.versions import parse_version

MAX_KNOWN = 64
"""Results of one requirement that are stored: few labels have more versions at a time."""
_COMPARE = {
    NodeOperator.GT: gt,
    NodeOperator.LT: lt,
    NodeOperator.SEMVER_GT: gt,
    NodeOperator.SEMVER_LT: lt,
    NodeOperator.SEMVER_EQ: eq,
}
_GO_INTEGER = re.compile(r"[-+]?[0-9]{1,63}")


class LabelMatch(StrEnum):
    """The result of a requirement for the labels of a node. Only ``HOLDS`` matches; the others are reasons why not."""

    HOLDS = "holds"
    ABSENT = "the node has no such label"
    DIFFERS = "does not hold"
    NO_INTEGER = "the label is no integer"
    NO_VERSION = "the label is no version"
    INVALID_VALUE = "has a value that cannot be compared"
    GATE_OFF = "uses an operator that is switched off"


def match_label(requirement: NodeRequirement, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> LabelMatch:
    """Compare, with the reason. ``NotIn`` and ``DoesNotExist`` also hold for an absent label, as in Kubernetes."""
    label = labels.get(requirement.key)
    match requirement.operator:
        case NodeOperator.DOES_NOT_EXIST:
            return _held(holds=label is None)
        case NodeOperator.NOT_IN:
            return _held(holds=label is None or label not in requirement.values)
    if label is None:
        return LabelMatch.ABSENT
    match requirement.operator:
        case NodeOperator.EXISTS:
            return LabelMatch.HOLDS
        case NodeOperator.IN:
            return _held(holds=label in requirement.values)
    if len(requirement.values) != 1:
        return LabelMatch.INVALID_VALUE
    if requirement.operator in SEMVER_NODE_OPERATORS:
        return _match_version(requirement, label) if gates.semver_operators else LabelMatch.GATE_OFF
    return _match_integer(requirement, label)


Check = Callable[[str | None], bool]
"""Whether a requirement holds for the value of its label; None: the node has none."""


def check_of(requirement: NodeRequirement, gates: Gates = ALL_GATES) -> Check:
    """What :func:`match_label` says, for many nodes: values of the requirement are read once."""
    operator, values = requirement.operator, requirement.values
    match operator:
        case NodeOperator.DOES_NOT_EXIST:
            return lambda label: label is None
        case NodeOperator.EXISTS:
            return lambda label: label is not None
        case NodeOperator.NOT_IN:
            return lambda label: label not in values
        case NodeOperator.IN:
            return lambda label: label in values
    is_version = operator in SEMVER_NODE_OPERATORS
    read: Callable[[str], Any] = parse_version if is_version else _go_integer
    wanted = read(values[0]) if len(values) == 1 else None
    if wanted is None or (is_version and not gates.semver_operators):
        return lambda _: False
    compare = _COMPARE[operator]
    known: dict[str | None, bool] = {}

    def check(label: str | None) -> bool:
        found = known.get(label)
        if found is None:
            if len(known) >= MAX_KNOWN:
                known.clear()
            value = None if label is None else read(label)
            found = known[label] = value is not None and bool(compare(value, wanted))
        return found

    return check


def describe(requirement: NodeRequirement, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> str:
    """Why a requirement does not hold, with the value of the label."""
    answer = match_label(requirement, labels, gates)
    label = labels.get(requirement.key)
    return f"{requirement}: {answer}" if label is None else f"{requirement} {_shown(answer, label)}"


def _shown(answer: LabelMatch, label: str) -> str:
    if answer in (LabelMatch.NO_INTEGER, LabelMatch.NO_VERSION):
        return f"cannot compare the label's value {label!r}: {answer}"
    return f"{answer} for {label!r}"


def _held(*, holds: bool) -> LabelMatch:
    return LabelMatch.HOLDS if holds else LabelMatch.DIFFERS


def _match_version(requirement: NodeRequirement, label: str) -> LabelMatch:
    wanted, version = parse_version(requirement.values[0]), parse_version(label)
    if wanted is None:
        return LabelMatch.INVALID_VALUE
    if version is None:
        return LabelMatch.NO_VERSION
    match requirement.operator:
        case NodeOperator.SEMVER_GT:
            return _held(holds=version > wanted)
        case NodeOperator.SEMVER_LT:
            return _held(holds=version < wanted)
        case _:
            return _held(holds=version == wanted)


def _match_integer(requirement: NodeRequirement, label: str) -> LabelMatch:
    wanted, value = _go_integer(requirement.values[0]), _go_integer(label)
    if wanted is None:
        return LabelMatch.INVALID_VALUE
    if value is None:
        return LabelMatch.NO_INTEGER
    return _held(holds=value > wanted if requirement.operator is NodeOperator.GT else value < wanted)


def _go_integer(text: str) -> int | None:
    """As Go's ``strconv.ParseInt`` in base ten, with which the scheduler reads labels: 0950 is 950."""
    if not _GO_INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if MIN_INT64 <= value <= MAX_INT64 else None
