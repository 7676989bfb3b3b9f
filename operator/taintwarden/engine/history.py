"""The history of a taint: when it was added, which values it had, and when each began.

A history is stored on the Node, so that a restart changes no deadline; therefore its size is bounded. What it drops may
move an eviction later, never earlier.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import msgspec

from taintwarden.engine.matching.numeric import parse_integer
from taintwarden.engine.matching.versions import parse_version

MAX_SPANS = 16
"""How many values of one taint are remembered."""
CLOCK_SKEW_SECONDS = 60.0
"""How far in the future a stored time may be: the clock of another replica wrote it."""
MAX_TEXT_LENGTH = 64 * 1024
"""How much of an annotation is read: a value has at most 63 characters, and nodes have few taints."""


class Span(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """``value`` held from ``since``; with ``until``, other values were dropped between then and the next span."""

    value: str
    since: float
    until: float | None = None


class TaintHistory(msgspec.Struct, frozen=True, omit_defaults=True, rename={"added_at": "added", "spans": "values"}):
    """One key and effect on one node.

    ``added_at`` is when the taint appeared. ``spans`` are its values, oldest first, the last one current.
    ``forgotten``: values before the first span were dropped and nothing is known of them. ``drains``: pods had to leave
    because of the taint, so the node still counts as drained in its zone although it is empty.
    """

    added_at: float
    spans: tuple[Span, ...]
    forgotten: bool = False
    drains: bool = False

    @classmethod
    def begin(cls, value: str, added_at: float) -> Self:
        """The history of a taint first seen with ``value``."""
        added_at = _milliseconds(added_at)
        return cls(added_at, (Span(value, added_at),))

    @property
    def value(self) -> str:
        """The current value."""
        return self.spans[-1].value

    def added_no_later_than(self, at: float) -> Self:
        """Apply an earlier addition that the taint's ``timeAdded`` gives. A later one changes nothing."""
        if at >= self.added_at:
            return self
        first = self.spans[0]
        if first.since == self.added_at:
            first = msgspec.structs.replace(first, since=at)
        return msgspec.structs.replace(self, added_at=at, spans=(first, *self.spans[1:]))

    def is_added_again(self, at: float) -> bool:
        """Whether ``timeAdded`` shows that the taint was removed and added again: it is more than a second later."""
        return at - 1.0 > self.added_at

    def observe(self, value: str, since: float) -> Self:
        """Append ``value`` as the current one. A clock that steps back does not reorder earlier values."""
        last = self.spans[-1]
        if value == last.value:
            return self
        spans = (*self.spans, Span(value, max(_milliseconds(since), last.since)))
        forgotten = self.forgotten
        if len(spans) > MAX_SPANS:
            spans = tuple(_without_dominated(spans))
        if len(spans) > MAX_SPANS:
            spans, forgotten = spans[-MAX_SPANS:], True
        return type(self)(self.added_at, spans, forgotten, self.drains)


def encode_histories(histories: Mapping[str, TaintHistory]) -> str:
    """The text of the node annotation: ``{"key:effect": {"added": seconds, "values": [[value, since, until]]}}``."""
    return msgspec.json.encode(histories, order="sorted").decode() if histories else ""


def decode_histories(text: str) -> dict[str, TaintHistory]:
    """Read the node annotation.

    Raises:
        ValueError: the text is not what :func:`encode_histories` writes; the taints count as first seen now.

    """
    if not text:
        return {}
    if len(text) > MAX_TEXT_LENGTH:
        msg = f"it is longer than {MAX_TEXT_LENGTH} characters"
        raise ValueError(msg)
    decoded = msgspec.json.decode(text, type=dict[str, TaintHistory])
    for name, history in decoded.items():
        times = [history.added_at, *(span.since for span in history.spans)]
        if not history.spans or len(history.spans) > MAX_SPANS or any(a > b for a, b in pairwise(times)):
            msg = f"the values of {name[:100]!r} are missing, too many or out of order"
            raise ValueError(msg)
        if history.added_at < 0:
            msg = f"the times of {name[:100]!r} lie before 1970"
            raise ValueError(msg)
    return decoded


def until_now(histories: Mapping[str, TaintHistory], now: float) -> dict[str, TaintHistory]:
    """The same without times in the future: a kubelet may write its node's annotation, and so postpone evictions.

    Times further ahead than the allowed clock skew count as ``now``.
    """
    return {name: _until_now(history, now) for name, history in histories.items()}


def _until_now(history: TaintHistory, now: float) -> TaintHistory:
    if history.spans[-1].since <= now + CLOCK_SKEW_SECONDS:
        return history
    spans = tuple(
        Span(span.value, min(span.since, now), None if span.until is None else min(span.until, now))
        for span in history.spans
    )
    return msgspec.structs.replace(history, added_at=min(history.added_at, now), spans=spans)


def _milliseconds(at: float) -> float:
    """Rounded up, so that the time read after a restart equals the one that decisions used."""
    return math.ceil(at * 1000) / 1000


def _without_dominated(spans: Sequence[Span]) -> Sequence[Span]:
    """Drop the values that no ordered comparison needs any more, however long a monitored value fluctuates.

    If a value has a later one at or above it *and* a later one at or below it, ``Gt`` or ``Lt`` did not tolerate it
    whenever they tolerated none of the later ones. So the remaining values give the same result. ``Equal`` is not
    ordered: it treats the gap as tolerated. If the values are of several types, all are kept, as they have no order.
    """
    parse = _common_order([span.value for span in spans])
    if parse is None:
        return spans
    kept: list[Span] = []
    lowest = highest = parse(spans[-1].value)
    gap_from: float | None = None
    for index in range(len(spans) - 1, -1, -1):
        span = spans[index]
        order = parse(span.value)
        if lowest <= order <= highest and index < len(spans) - 1:
            gap_from = span.since
            continue
        until = span.until if span.until is not None else gap_from
        kept.append(msgspec.structs.replace(span, until=until))
        lowest, highest, gap_from = min(lowest, order), max(highest, order), None
    return tuple(reversed(kept))


def _common_order(values: Sequence[str]) -> Callable[[str], Any] | None:
    """The parser by which these values compare: all integers, or all versions; None if there is none."""
    integers = [parse_integer(value) is not None for value in values]
    if all(integers):
        return parse_integer
    if not any(integers) and all(parse_version(value) is not None for value in values):
        return parse_version
    return None
