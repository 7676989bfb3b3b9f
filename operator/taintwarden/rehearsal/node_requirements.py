"""Requirements on the labels of nodes: of a pod's node affinity, and of ``--selector`` as kubectl takes it.

The grammar is that of ``k8s.io/apimachinery/pkg/labels``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from taintwarden.api.names import check_key, check_label_value
from taintwarden.engine import affinity
from taintwarden.engine.affinity import NodeOperator
from taintwarden.engine.node_matching import LabelMatch, match_label

_COMMA = re.compile(r",(?![^()]*\))")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_COMPARISON = re.compile(r"(?P<key>[^\s!=<>]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<values>\S*)")
_PRESENCE = re.compile(r"(?P<operator>!?)\s*(?P<key>[^\s!=<>(),]+)(?P<values>)")
_OPERATORS = {
    "in": "In",
    "notin": "NotIn",
    "==": "In",
    "=": "In",
    "!=": "NotIn",
    ">": "Gt",
    "<": "Lt",
    "": "Exists",
    "!": "DoesNotExist",
}


class NativeRequirement(msgspec.Struct, frozen=True):
    """An entry of ``matchExpressions`` or ``matchFields``, with the operators that only nodes have."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.key} {self.operator} ({', '.join(self.values)})" if self.values else f"{self.key} {self.operator}"
        )

    def as_json(self) -> dict[str, Any]:
        """The entry in the form of the API."""
        written: dict[str, Any] = {"key": self.key, "operator": self.operator}
        return written | {"values": list(self.values)} if self.values else written

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` match it."""
        if self.operator not in list(NodeOperator):
            return False
        requirement = affinity.NodeRequirement(self.key, NodeOperator(self.operator), self.values)
        return match_label(requirement, labels) is LabelMatch.HOLDS


def selector_text(selector: Mapping[str, Any]) -> str:
    """The ``selector`` of a workload as the API server takes it in ``labelSelector``."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        key, values = one.get("key", ""), ",".join(one.get("values") or ())
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "DoesNotExist": f"!{key}"}
        parts.append(forms.get(one.get("operator", ""), key))
    return ",".join(parts)


def parse_selector(text: str) -> tuple[NativeRequirement, ...]:
    """A label selector as text, for example ``pool=spot,tier in (web, api),!gpu``. All requirements must hold.

    Raises:
        ValueError: it cannot be parsed; the message names the invalid part.

    """
    return tuple(_parse(part.strip()) for part in _COMMA.split(text) if part.strip())


def _parse(part: str) -> NativeRequirement:
    match = _SET.fullmatch(part) or _COMPARISON.fullmatch(part) or _PRESENCE.fullmatch(part)
    if match is None:
        msg = f"cannot read {part!r}"
        raise ValueError(msg)
    presence = match["operator"] in ("", "!")
    values = () if presence else tuple(value.strip() for value in match["values"].split(","))
    for fault in _faults(match["key"], values):
        raise ValueError(fault)
    return NativeRequirement(match["key"], _OPERATORS[match["operator"]], values)


def _faults(key: str, values: tuple[str, ...]) -> Iterator[str]:
    yield from (fault.detail for fault in check_key(key))
    yield from (fault.detail for value in values for fault in check_label_value(value))
