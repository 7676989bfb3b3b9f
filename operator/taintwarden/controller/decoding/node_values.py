"""The values of sources on a node, as taints can have them."""

import re
from collections.abc import Iterable

from taintwarden.controller.decoding.times import readable
from taintwarden.engine.model import NodeCondition, NodeInfo, SourceKind, SourceValue, ValueSource
from taintwarden.kube.calls.node_calls import DRAINED_CONDITION
from taintwarden.kube.wire.kinds import NodeObject, Timestamp

MAX_VALUE_LENGTH = 63
"""Of a taint's value. What is longer is no value."""
MAX_TEXT_LENGTH = 256
"""Of what a node carries. A kubelet writes its own node: longer text is no value, and is not kept."""
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://")
_OTHERS = re.compile(r"[^A-Za-z0-9._+~-]+")
"""What no value has: only ``+`` and ``~`` are allowed beside the characters of taints, since versions have them."""


def values_of(node: NodeObject, sources: Iterable[ValueSource]) -> dict[ValueSource, SourceValue]:
    """Those of these sources that have a value on the node."""
    return {source: value for source in sources if (value := _value_of(node, source)) is not None}


def drained_of(node: NodeObject) -> NodeCondition | None:
    """Return the condition ``taintwarden.io/Drained``; None if the node has none."""
    found = node.status.condition(DRAINED_CONDITION)
    return None if found is None else NodeCondition(found.status, found.reason, found.message)


def _value_of(node: NodeObject, source: ValueSource) -> SourceValue | None:
    match source.kind:
        case SourceKind.NODE_INFO:
            text = node.status.info(source.name) or None
            if text is not None and source.name == NodeInfo.CONTAINER_RUNTIME_VERSION:
                text = _SCHEME.sub("", text)
        case SourceKind.CONDITION:
            condition = node.status.condition(source.name)
            if condition is None or not condition.status:
                return None
            return _made(condition.status, condition.last_transition_time)
        case SourceKind.LABEL:
            text = node.metadata.labels.get(source.name)
        case SourceKind.ANNOTATION:
            text = node.metadata.annotation(source.name)
    return None if text is None else _made(text)


def _made(text: str, timestamp: Timestamp | None = None) -> SourceValue | None:
    if len(text) > MAX_TEXT_LENGTH:
        return None
    value = as_value(text)
    return None if value is None else SourceValue(value, readable(timestamp))


def as_value(text: str) -> str | None:
    """The text as the value of a taint: what no value has becomes ``_``. None if it is too long."""
    value = _OTHERS.sub("_", text).lstrip("_~").rstrip("_")
    return value if len(value) <= MAX_VALUE_LENGTH else None
