"""The taints of a node that ``taintwarden publisher`` wrote, as its annotation records them: docs/publisher.md.

The publisher is a package of its own, which this one does not import; a test compares the two.
"""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from taintwarden.controller import wording
from taintwarden.controller.times import moment
from taintwarden.kube.errors import NOT_JSON
from taintwarden.kube.wire.kinds import NodeObject

DOMAIN = "published.taintwarden.io"


class _Record(msgspec.Struct, rename={"from_value": "from"}):
    publisher: str
    effects: list[str]
    value: str
    from_value: float
    at: datetime


class PublishedTaint(msgspec.Struct, rename={"from_value": "from"}):
    """One taint, and its record."""

    key: str
    value: str
    effect: str
    publisher: str
    """The name of the TaintPublisher."""
    from_value: float
    """The value that was measured then."""
    at: str
    """When the taint got its value."""

    def told(self, now: str) -> str:
        """``sla=940:NoExecute published 12s ago by publisher sla from 939.6``."""
        when = wording.ago(moment(self.at), moment(now))
        name = f"{self.key}={self.value}:{self.effect}"
        return f"{name} published {when} by publisher {self.publisher} from {self.from_value:.15g}"


def annotation(key: str) -> str:
    """The annotation of a key: ``published.taintwarden.io/sla``, or ``example.com.published.taintwarden.io/sla``."""
    prefix, _, name = key.rpartition("/")
    return f"{prefix}.{DOMAIN}/{name}" if prefix else f"{DOMAIN}/{name}"


def published(node: NodeObject) -> Iterator[PublishedTaint]:
    """The taints of a node that are as their record says. Others are not the publisher's."""
    for taint in node.spec.taints:
        record = _read(node.metadata.annotations.get(annotation(taint.key)))
        if record is not None and record.value == taint.value and taint.effect in record.effects:
            at = wording.at(record.at.timestamp())
            yield PublishedTaint(taint.key, taint.value, taint.effect, record.publisher, record.from_value, at)


def _read(text: str | None) -> _Record | None:
    try:
        record = msgspec.json.decode(text or "", type=_Record)
    except (*NOT_JSON, UnicodeError):
        return None
    return record if record.at.tzinfo is not None else None
