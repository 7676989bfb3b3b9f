"""Records of the published taints, in an annotation of the node that is written in the same request as the taints.

A taint therefore never exists without its record, no status contains a list of nodes, and the record is deleted with
its node. Each key has its own annotation, so that an admission policy can allow single keys.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from taintwarden.engine.model import Effect
from taintwarden.fields.names import MAX_NAME_LENGTH
from taintwarden.kube.errors import NOT_JSON
from taintwarden_publisher.levels import Interval
from taintwarden_publisher.spec import annotation


class Record(msgspec.Struct, frozen=True, rename={"from_value": "from"}):
    """A record of the taints of one key on a node."""

    publisher: str
    """Name of the TaintPublisher."""
    effects: tuple[Effect, ...]
    value: Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)]
    """The value of the taints. A kubelet may write a text of 256 KiB, and values are cached."""
    from_value: float
    """The measured value that led to ``value``."""
    at: datetime
    """Time at which the taints got their value."""
    keeps: tuple[float | None, float | None] = (None, None)
    """Lower bound, inclusive, and upper bound, exclusive, of measured values that keep ``value``; None: no bound."""

    def text(self) -> str:
        """Return the value of the annotation."""
        return msgspec.json.encode(self).decode()


def bounds(kept: Interval) -> tuple[float | None, float | None]:
    """Return the bounds of an interval; None for infinity, which JSON lacks, and for 0 or less: no value is lower."""
    low, high = kept
    return (low if low > 0 else None), (None if math.isinf(high) else high)


def read_record(annotations: Mapping[str, str], key: str) -> Record | None:
    """Return the record of a key; None if there is none. An unreadable record belongs to no publisher."""
    text = annotations.get(annotation(key))
    if text is None:
        return None
    try:
        record = msgspec.json.decode(text, type=Record)
    except (*NOT_JSON, UnicodeError):
        return UNREADABLE
    return record if record.at.tzinfo is not None else UNREADABLE


UNREADABLE = Record("", (), "", 0.0, datetime.min.replace(tzinfo=UTC))
