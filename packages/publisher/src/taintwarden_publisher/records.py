"""Which taints of a node are the publisher's: an annotation beside them, written in the same request.

So there is no moment at which a taint has no record or a record no taint, no list of nodes grows in the status of an
object, and the record ends with its node. There is one annotation for each key, so that an admission policy can allow
one key.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from taintwarden.engine.model import Effect
from taintwarden.kube.errors import NOT_JSON
from taintwarden_publisher.levels import Interval
from taintwarden_publisher.spec import annotation


class Record(msgspec.Struct, frozen=True, rename={"from_value": "from"}):
    """What was published on a node, and why."""

    publisher: str
    """The name of the object."""
    effects: tuple[Effect, ...]
    value: str
    """Of the taint."""
    from_value: float
    """The value that was measured then."""
    at: datetime
    """When the taint got its value."""
    keeps: tuple[float | None, float | None] = (None, None)
    """From which measured value, and below which one, the taint keeps its value; None: there is no bound."""

    def text(self) -> str:
        """The annotation."""
        return msgspec.json.encode(self).decode()


def bounds(kept: Interval) -> tuple[float | None, float | None]:
    """The same for JSON, which has no infinity; no value is below 0."""
    low, high = kept
    return (low if low > 0 else None), (None if math.isinf(high) else high)


def read_record(annotations: Mapping[str, str], key: str) -> Record | None:
    """The record of a key; None if there is none. One that cannot be read belongs to no publisher."""
    text = annotations.get(annotation(key))
    if text is None:
        return None
    try:
        record = msgspec.json.decode(text, type=Record)
    except (*NOT_JSON, UnicodeError):
        return UNREADABLE
    return record if record.at.tzinfo is not None else UNREADABLE


UNREADABLE = Record("", (), "", 0.0, datetime.min.replace(tzinfo=UTC))
