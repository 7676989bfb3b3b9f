"""The comparison of node affinity with the labels of a node.

As ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity`` and ``k8s.io/apimachinery/pkg/labels``, and KEP-5721 for
versions: the label is on the left, and a label that cannot be compared does not match.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from taintwarden.engine.affinity import SEMVER_NODE_OPERATORS, NodeAffinity, NodeOperator, NodeRequirement, Term
from taintwarden.engine.model import Gates
from taintwarden.engine.numeric import MAX_INT64, MIN_INT64
from taintwarden.engine.operators import ALL_GATES
from taintwarden.engine.versions import parse_version

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


def matches(affinity: NodeAffinity, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> bool:
    """Whether a node with these labels meets what is required."""
    return affinity.required is None or any(term_matches(term, labels, gates) for term in affinity.required)


def weight(affinity: NodeAffinity, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> int:
    """The sum of the weights of those preferences that a node with these labels meets."""
    return sum(one.weight for one in affinity.preferred if term_matches(one.term, labels, gates))


def term_matches(term: Term, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> bool:
    """Whether all requirements hold. An empty term matches no node."""
    return bool(term) and all(match_label(one, labels, gates) is LabelMatch.HOLDS for one in term)


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
