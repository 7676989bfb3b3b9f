"""Comparison of node affinity with the labels of a node.

Rules: ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``, ``k8s.io/apimachinery/pkg/labels``, and KEP-5721
for versions. The label is the left operand. A label that cannot be compared does not match.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import eq, gt, lt
from typing import Any

from taintwarden.engine.affinity import SEMVER_NODE_OPERATORS, NodeOperator, NodeRequirement
from taintwarden.engine.model import Gates
from taintwarden.engine.numeric import MAX_INT64, MIN_INT64
from taintwarden.engine.operators import ALL_GATES
from taintwarden.engine.versions import parse_version

MAX_KNOWN = 64
"""Maximum number of cached results of one requirement. Few labels have more values in a cluster."""
_COMPARE = {
    NodeOperator.GT: gt,
    NodeOperator.LT: lt,
    NodeOperator.SEMVER_GT: gt,
    NodeOperator.SEMVER_LT: lt,
    NodeOperator.SEMVER_EQ: eq,
}
_GO_INTEGER = re.compile(r"[-+]?[0-9]{1,63}")

Check = Callable[[str | None], bool]
"""Returns True if a requirement holds for the value of its label, which is None if the node has no such label."""


def check_of(requirement: NodeRequirement, gates: Gates = ALL_GATES) -> Check:
    """Return a check for many nodes. The values of the requirement are parsed once.

    ``NotIn`` and ``DoesNotExist`` also hold for an absent label, as in Kubernetes.
    """
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
    read, wanted = _reader(requirement), _operand(requirement)
    if wanted is None or _is_switched_off(requirement, gates):
        return lambda _: False
    compare = _COMPARE[operator]

    @lru_cache(maxsize=MAX_KNOWN)
    def check(label: str | None) -> bool:
        value = None if label is None else read(label)
        return value is not None and bool(compare(value, wanted))

    return check


def describe(requirement: NodeRequirement, labels: Mapping[str, str], gates: Gates = ALL_GATES) -> str:
    """Return why a requirement does not hold, with the value of the label."""
    label = labels.get(requirement.key)
    if label is None:
        return f"{requirement}: the node has no such label"
    answer = "does not hold"
    if requirement.operator in _COMPARE:
        if _is_switched_off(requirement, gates):
            answer = "uses an operator that is switched off"
        elif _operand(requirement) is None:
            answer = "has a value that cannot be compared"
        elif _reader(requirement)(label) is None:
            kind = "a version" if requirement.operator in SEMVER_NODE_OPERATORS else "an integer"
            return f"{requirement} cannot compare the label's value {label!r}: the label is not {kind}"
    return f"{requirement} {answer} for {label!r}"


def _reader(requirement: NodeRequirement) -> Callable[[str], Any]:
    return parse_version if requirement.operator in SEMVER_NODE_OPERATORS else _go_integer


def _operand(requirement: NodeRequirement) -> Any:
    """Return the parsed value of a comparison; None if it cannot be parsed."""
    return _reader(requirement)(requirement.values[0]) if len(requirement.values) == 1 else None


def _is_switched_off(requirement: NodeRequirement, gates: Gates) -> bool:
    return requirement.operator in SEMVER_NODE_OPERATORS and not gates.semver_operators


def _go_integer(text: str) -> int | None:
    """Parse an integer as the scheduler does, with Go's ``strconv.ParseInt`` in base ten: 0950 is 950."""
    if not _GO_INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if MIN_INT64 <= value <= MAX_INT64 else None
