"""The history of a taint: when it was added, which values it had, and when each began.

A history is stored on the Node, so that a restart changes no deadline; therefore its size is bounded. What it drops may
move an eviction later, never earlier.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import msgspec

from taintwarden.engine.model import DeviceId
from taintwarden.engine.natural import parse_natural
from taintwarden.engine.numeric import parse_integer
from taintwarden.engine.versions import parse_version

MAX_SPANS = 16
"""How many values of one taint are remembered."""
CLOCK_SKEW_SECONDS = 60.0
"""How far in the future a stored time may be: the clock of another replica wrote it."""
WHOLE_SECONDS = 1.0
"""Times in objects have whole seconds, and are taken as the end of that second."""
MAX_TEXT_LENGTH = 64 * 1024
"""How much of an annotation is read: a value has at most 63 characters, and nodes have few taints."""


class Span(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """``value`` held from ``since``; with ``until``, other values were dropped between then and the next span."""

    value: str
    since: float
    until: float | None = None


_STORED_NAMES = {"added_at": "added", "spans": "values", "appeared_at": "appeared"}


class TaintHistory(msgspec.Struct, frozen=True, omit_defaults=True, rename=_STORED_NAMES):
    """One key and effect on one node.

    ``added_at`` is when the taint appeared. ``spans`` are its values, oldest first, the last one current.
    ``forgotten``: values before the first span were dropped and nothing is known of them. ``drains``: pods had to leave
    because of the taint, so the node still counts as drained in its zone although it is empty. ``stamp`` is the
    taint's ``timeAdded`` as it was written, by a clock of its own: it is compared with other stamps only. ``renewed``:
    its writer was seen to write another stamp although the value stayed, so stamps do not say when it began.
    ``derived``: no client wrote the taint, and it concerns only pods that name its key. ``appeared_at``: when it was
    seen to appear on a node that was known without it, if its stamp is earlier: graces count from the stamp, but pods
    that were there before did not come later.
    """

    added_at: float
    spans: tuple[Span, ...]
    forgotten: bool = False
    drains: bool = False
    stamp: float | None = None
    renewed: bool = False
    derived: bool = False
    appeared_at: float | None = None

    @classmethod
    def begin(
        cls, value: str, now: float, stamp: float | None = None, *, is_first: bool = True, absent_at: float = -math.inf
    ) -> Self:
        """The history of a taint first seen ``now`` with ``value``: it counts from its stamp, if that is earlier.

        ``is_first``: nothing is known of the node before, so the taint may have been there. ``absent_at``: another one
        was there instead, so that a stamp before then is of another clock, or means nothing.
        """
        counts_from = now if stamp is None or stamp <= absent_at else min(stamp, now)
        added_at = _milliseconds(max(0.0, counts_from))
        appeared_at = None if is_first or added_at >= now else _milliseconds(now)
        return cls(added_at, (Span(value, added_at),), stamp=stamp, appeared_at=appeared_at)

    @property
    def value(self) -> str:
        """The current value."""
        return self.spans[-1].value

    @property
    def held_since(self) -> float:
        """When the current value was seen first, as far as is known, whatever its writer states."""
        return max(self.spans[-1].since, self.appeared_at or 0.0)

    @property
    def dispensable(self) -> tuple[bool, bool]:
        """Whether deadlines are the same without it, by the taint with its ``timeAdded``; and whether guards are."""
        is_plain = not (len(self.spans) > 1 or self.forgotten or self.drains or self.renewed)
        stamp = math.inf if self.stamp is None else _milliseconds(self.stamp)
        return is_plain and self.added_at <= stamp <= self.added_at + WHOLE_SECONDS, not self.appeared_at

    def seen(self, value: str, stamp: float | None, now: float, *, gap: bool) -> Self:
        """The history of the taint as it is seen ``now``.

        A stamp that changes while the node is watched moves nothing: the taint was there all the time. After a ``gap``
        one that is later than the one remembered means that the taint was removed and added again.
        """
        if self.renewed and value == self.value:
            return self
        if gap and self._is_added_again(stamp):
            return self.begin(value, now, stamp, is_first=False, absent_at=self.held_since)
        known = self if stamp == self.stamp else msgspec.structs.replace(self, stamp=stamp)
        return known.observe(value, now)

    def reported(self, value: str, stamp: float | None, now: float, *, gap: bool) -> Self:
        """The same for a value that a node reports, with the time at which its writer says that it began.

        There are writers that renew this time with each report. Of those it means nothing, also after a gap, and it is
        not stored again, until there is another value.
        """
        is_renewed = value == self.value and not gap and None not in (stamp, self.stamp) and stamp != self.stamp
        known = self.seen(value, stamp, now, gap=gap)
        return msgspec.structs.replace(known, renewed=True) if is_renewed else known

    def _is_added_again(self, stamp: float | None) -> bool:
        if stamp is None or self.stamp is None:
            return stamp is not None and stamp - WHOLE_SECONDS > self.added_at
        return stamp > self.stamp

    def observe(self, value: str, since: float) -> Self:
        """Append ``value`` as the current one. A clock that steps back does not reorder earlier values."""
        last = self.spans[-1]
        if value == last.value:
            return self
        spans = (*self.spans, Span(value, max(_milliseconds(since), last.since)))
        if len(spans) > MAX_SPANS:
            spans = tuple(_without_dominated(spans))
        return msgspec.structs.replace(self, spans=spans, renewed=False).newest(MAX_SPANS)

    def extended(self, other: Self) -> Self:
        """The same, with the later values of what another process saw: one of them may have missed what was short.

        Clocks differ, so the values with which this one ends may be the first of the later ones: as few as possible,
        since a value too many moves an eviction later, and one that is missing moves it earlier.
        """
        later = [span for span in other.spans if span.since > self.spans[-1].since]
        seen, values = [span.value for span in self.spans], [span.value for span in later]
        common = next((n for n in range(1, len(values) + 1) if seen[-n:] == values[:n]), 0)
        found = self
        for span in later[common:]:
            found = found.observe(span.value, span.since)
        return found

    def precedes(self, other: Self) -> bool:
        """Whether it ends with all values of another one and has some before: that one began later."""
        mine, theirs = ([span.value for span in one.spans] for one in (self, other))
        return not other.forgotten and len(mine) > len(theirs) and mine[-len(theirs) :] == theirs

    def continuing(self, other: Self) -> Self:
        """The same, as if it had begun with another taint that it replaces: both mean one condition of the node."""
        if other.added_at >= self.added_at:
            return self
        first = msgspec.structs.replace(self.spans[0], since=other.added_at)
        return msgspec.structs.replace(
            self, added_at=other.added_at, spans=(first, *self.spans[1:]), appeared_at=other.appeared_at
        )

    def newest(self, number: int) -> Self:
        """The same with that many values at most."""
        if len(self.spans) <= number:
            return self
        return msgspec.structs.replace(self, spans=self.spans[-number:], forgotten=True)


def is_of_device(name: str) -> bool:
    """Whether a history of this name is of a taint of a device: ``key:effect@driver/pool/device``."""
    return "@" in name


def is_of_rule(name: str) -> bool:
    """Whether it is of a taint that a DeviceTaintRule adds: ``key:effect@driver/pool/device by rule``."""
    return " by " in name


def device_of(name: str) -> DeviceId | None:
    """The device whose taint has a history of this name; None: a node's. What follows a space tells origins apart."""
    _, _, device = name.partition("@")
    driver, _, rest = device.partition(" ")[0].partition("/")
    pool, _, own = rest.rpartition("/")
    return DeviceId(driver, pool, own) if own else None


def encode_histories(histories: Mapping[str, TaintHistory]) -> str:
    """The text of the node annotation: ``{"key:effect": {"added": seconds, "values": [[value, since, until]]}}``.

    It is never longer than what :func:`read_histories` reads: of many taints only the newest values are stored. If that
    is still too long, histories of devices are left out, and first those that the taints themselves tell.
    """
    names = sorted(histories, key=lambda name: (is_of_device(name), *histories[name].dispensable, name))
    number = MAX_SPANS
    while names:
        text = msgspec.json.encode({name: histories[name].newest(number) for name in names}, order="sorted").decode()
        if len(text) <= MAX_TEXT_LENGTH:
            return text
        if number > 1:
            number //= 2
        else:
            names = names[: len(names) // 2]
    return ""


def decode_histories(text: str) -> dict[str, TaintHistory]:
    """Read the node annotation, which must have no fault.

    Raises:
        ValueError: the text is not what :func:`encode_histories` writes.

    """
    found, faults = read_histories(text)
    if faults:
        raise ValueError(faults[0])
    return found


def read_histories(text: str) -> tuple[dict[str, TaintHistory], list[str]]:
    """Read the node annotation: what can be read of it, and why the rest counts as absent."""
    if not text:
        return {}, []
    if len(text) > MAX_TEXT_LENGTH:
        return {}, [f"it is longer than {MAX_TEXT_LENGTH} characters"]
    try:
        entries = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError) as error:
        return {}, [str(error)]
    except RecursionError:  # a kubelet may write whatever it wants
        return {}, ["it is nested too deeply"]
    found: dict[str, TaintHistory] = {}
    faults = []
    for name, entry in entries.items():
        try:
            found[name] = _checked(msgspec.json.decode(entry, type=TaintHistory))
        except (ValueError, RecursionError) as error:
            faults.append(f"{name[:100]!r}: {error}")
    return found, faults


def _checked(history: TaintHistory) -> TaintHistory:
    times = [history.added_at, *(span.since for span in history.spans)]
    if not history.spans or len(history.spans) > MAX_SPANS or any(a > b for a, b in pairwise(times)):
        raise ValueError("its values are missing, too many or out of order")
    if history.added_at < 0:
        raise ValueError("its times lie before 1970")
    return history


def until_now(histories: Mapping[str, TaintHistory], now: float) -> dict[str, TaintHistory]:
    """The same without times in the future: a kubelet may write its node's annotation, and so postpone evictions.

    Times further ahead than the allowed clock skew count as ``now``.
    """
    return {name: _until_now(history, now) for name, history in histories.items()}


def _until_now(history: TaintHistory, now: float) -> TaintHistory:
    if max(history.spans[-1].since, history.appeared_at or 0.0) <= now + CLOCK_SKEW_SECONDS:
        return history
    spans = tuple(
        Span(span.value, min(span.since, now), None if span.until is None else min(span.until, now))
        for span in history.spans
    )
    appeared_at = None if history.appeared_at is None else min(history.appeared_at, now)
    return msgspec.structs.replace(history, added_at=min(history.added_at, now), spans=spans, appeared_at=appeared_at)


def _milliseconds(at: float) -> float:
    """Rounded up, so that the time read after a restart equals the one that decisions used."""
    return math.ceil(at * 1000) / 1000


def _without_dominated(spans: Sequence[Span]) -> Sequence[Span]:
    """Drop the values that no ordered comparison needs any more, however long a monitored value fluctuates.

    If a value has a later one at or above it *and* a later one at or below it, ``Gt`` or ``Lt`` did not tolerate it
    whenever they tolerated none of the later ones. So the remaining values give the same result. ``Equal`` is not
    ordered: it treats the gap as tolerated. Versions have two orders, and each of them needs its values. If the values
    are of several types, all are kept, as they have no order.
    """
    parsers = _common_orders([span.value for span in spans])
    if not parsers:
        return spans
    kept: list[Span] = []
    lowest = highest = [parse(spans[-1].value) for parse in parsers]
    gap_from: float | None = None
    for index in range(len(spans) - 1, -1, -1):
        span = spans[index]
        places = [parse(span.value) for parse in parsers]
        if index < len(spans) - 1 and all(
            low <= at <= high for low, at, high in zip(lowest, places, highest, strict=True)
        ):
            gap_from = span.since
            continue
        until = span.until if span.until is not None else gap_from
        kept.append(msgspec.structs.replace(span, until=until))
        lowest, highest, gap_from = [*map(min, lowest, places)], [*map(max, highest, places)], None
    return tuple(reversed(kept))


def _common_orders(values: Sequence[str]) -> Sequence[Callable[[str], Any]]:
    """The parsers by which all these values compare: as integers, or as versions in both orders."""
    integers = [parse_integer(value) is not None for value in values]
    if all(integers):
        return (parse_integer,)
    versions = (parse_version, parse_natural)
    if not any(integers) and all(parse(value) is not None for parse in versions for value in values):
        return versions
    return ()
