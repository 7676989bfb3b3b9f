"""Values of labels, annotations, conditions and node info, converted to values of taints."""

import re
from collections.abc import Iterable

from taintwarden.controller.decoding.times import time_of
from taintwarden.engine.history import MAX_VALUE_LENGTH
from taintwarden.engine.model import NodeCondition, NodeInfo, SourceKind, SourceValue, ValueSource
from taintwarden.kube.calls.node_calls import DRAINED_CONDITION
from taintwarden.kube.wire.kinds import NodeObject, Timestamp

MAX_TEXT_LENGTH = 256
"""Maximum length of a text on a node. A longer one, which a kubelet may write to its node, counts as absent."""
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://")
_OTHERS = re.compile(r"[^A-Za-z0-9._+~-]+")
"""Characters to replace in a value. ``+`` and ``~`` are kept although taints lack them, since versions have them."""


def values_of(node: NodeObject, sources: Iterable[ValueSource]) -> dict[ValueSource, SourceValue]:
    """Return the values of these sources on the node. Sources without a value are left out."""
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
            return _source_value(condition.status, condition.last_transition_time)
        case SourceKind.LABEL:
            text = node.metadata.labels.get(source.name)
        case SourceKind.ANNOTATION:
            text = node.metadata.annotation(source.name)
    return None if text is None else _source_value(text)


def _source_value(text: str, timestamp: Timestamp | None = None) -> SourceValue | None:
    if len(text) > MAX_TEXT_LENGTH:
        return None
    value = as_value(text)
    return None if value is None else SourceValue(value, time_of(timestamp))


def as_value(text: str) -> str | None:
    """Convert a text to a taint's value, with ``_`` for invalid characters; None, as if absent, if it is too long."""
    value = _OTHERS.sub("_", text).lstrip("_~").rstrip("_")
    return value if len(value) <= MAX_VALUE_LENGTH else None
