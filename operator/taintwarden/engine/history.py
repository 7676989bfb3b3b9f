"""History of a taint: when it was added, which values it had, and when each began.

A history is stored on the Node, so that a restart changes no deadline; therefore its size is bounded. Spans that are
joined, and values that are dropped, may postpone an eviction by about a seventh of the time for which a pod has not
tolerated the taint. They never make one earlier.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Self

import msgspec

from taintwarden.engine.model import ROUNDING_SECONDS
from taintwarden.engine.natural import parse_natural
from taintwarden.engine.numeric import parse_integer
from taintwarden.engine.versions import semver_sort_key

MAX_SPANS = 64
"""Maximum spans stored for a taint. Beyond it, spans are joined, which may postpone evictions."""
MAX_VALUES = 4 * MAX_SPANS
"""Maximum values stored for a taint. Beyond it, values that matter to exact comparisons only are dropped."""
CLOCK_SKEW_SECONDS = 60.0
"""Maximum seconds by which a stored time may lie in the future, since the clock of another replica wrote it."""
MAX_TEXT_LENGTH = 64 * 1024
"""Maximum characters of an annotation that is read. Nodes have few taints."""
MAX_VALUE_LENGTH = 63
"""Maximum characters of a taint's value. A kubelet may write more into the annotation, which caches would keep."""
MAX_FAULTS = 5
"""Maximum faults of an annotation that are reported. A kubelet may write thousands repeatedly."""
_SHORTEST = 1 / 64
"""Smallest part of its age up to which a group of spans is joined."""
_RECENT = 7.0
"""Minimum age in seconds that spans count as having. Without it, the newest spans would never be joined."""


TaintValue = Annotated[str, msgspec.Meta(max_length=MAX_VALUE_LENGTH, pattern=r"\A[!-~]*\Z")]
"""A value that a taint can have. Events show values, and a kubelet may write any text into its annotation."""


class Span(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Values from ``since`` until the next span. None stands for values that are no longer stored.

    Several values are in the order in which they ended. It is not stored when, or how often, each of them began.
    """

    since: float
    values: tuple[TaintValue | None, ...]


class TaintHistory(msgspec.Struct, frozen=True, omit_defaults=True, rename={"spans": "values"}):
    """History of the taint with one key and effect on one node.

    ``spans``: its values, the oldest first; the last span has the current value only. ``stamp``: the newest
    ``timeAdded`` that was seen, which another clock wrote.
    """

    spans: tuple[Span, ...]
    stamp: float | None = None

    @classmethod
    def begin(cls, value: str, now: float, stamp: float | None = None, absent_at: float = -math.inf) -> Self:
        """Return the history of a taint that is new ``now``, and was last known to be absent at ``absent_at``.

        It counts from the later of its stamp and ``absent_at``, at most ``now``; without a stamp, from ``now``.
        """
        since = now if stamp is None else min(max(stamp, absent_at), now)
        return cls((Span(_milliseconds(since), (value,)),), stamp)

    @property
    def added_at(self) -> float:
        """When the taint was added, for the computation of deadlines."""
        return self.spans[0].since

    @property
    def value(self) -> str:
        """The current value."""
        return self.spans[-1].values[-1]  # type: ignore[return-value] # the last span has no None

    @property
    def values(self) -> tuple[str, ...]:
        """All stored values, the current one first."""
        known = [value for span in reversed(self.spans) for value in reversed(span.values)]
        return tuple(value for value in known if value is not None)

    @property
    def held_since(self) -> float:
        """When the current value began."""
        return self.spans[-1].since

    @property
    def is_stated(self) -> bool:
        """True if ``timeAdded`` alone gives the taint the same deadlines, so this history need not be stored."""
        later = math.inf if self.stamp is None else self.stamp - self.added_at
        return len(self.spans) == 1 and 0 <= later <= ROUNDING_SECONDS

    def seen(self, value: str, stamp: float | None, now: float, gap_from: float | None = None) -> Self:
        """Return the history of the taint as it is seen ``now``.

        Args:
            value: the value of the taint.
            stamp: ``timeAdded`` of the taint. It changes no deadline while the node is watched.
            now: seconds since the epoch.
            gap_from: start of a gap in which changes may be missing; None: there is none. After a gap, a stamp that is
                later than all recorded times, and not in the future, shows that the taint was removed and added again
                then. It does not show when a value began: one other than the recorded one counts from ``now``.

        """
        is_known = self.stamp is not None and self.stamp <= now + ROUNDING_SECONDS
        recorded = self.stamp if self.stamp is not None and is_known else self.added_at + ROUNDING_SECONDS
        if stamp is None:
            stamp = self.stamp
        elif gap_from is not None and max(recorded, self.held_since) < stamp <= now + ROUNDING_SECONDS:
            return self._add_again(value, stamp, now, gap_from)
        elif is_known:
            stamp = max(stamp, recorded)
        known = self if stamp == self.stamp else msgspec.structs.replace(self, stamp=stamp)
        return known.with_value(value, now)

    def _add_again(self, value: str, stamp: float, now: float, gap_from: float) -> Self:
        """Return the history of a taint that was removed and added again in a gap. Earlier values do not count."""
        added = self.begin(value, now, stamp, gap_from)
        if value == self.value:
            return added
        spans = (Span(added.added_at, (None,)), Span(_milliseconds(now), (value,)))
        return msgspec.structs.replace(added, spans=spans)

    def with_value(self, value: str, since: float) -> Self:
        """Append ``value`` as the current one. A clock that steps back does not reorder earlier values."""
        if value == self.value:
            return self
        spans = (*self.spans, Span(max(_milliseconds(since), self.held_since), (value,)))
        if len(spans) > MAX_SPANS:
            spans = _shortened(spans)
        return msgspec.structs.replace(self, spans=spans)

    def after(self, at: float) -> Self:
        """Return the history as if the taint had been added ``at`` that time, unless it was added later."""
        at = _milliseconds(at)
        ends = [*(span.since for span in self.spans[1:]), math.inf]
        spans = [Span(max(span.since, at), span.values) for span, end in zip(self.spans, ends, strict=True) if end > at]
        return msgspec.structs.replace(self, spans=tuple(spans))

    def joined(self, other: Self) -> Self:
        """Join what another process saw. Each process may have missed values, or that the taint was added again.

        A value counts for as long as one of the processes saw it.
        """
        begins = max(self.added_at, other.added_at)
        first, last = sorted((self.after(begins), other.after(begins)), key=lambda one: one.held_since)
        ended = [(after.since, span.values) for one in (first, last) for span, after in pairwise(one.spans)]
        if first.value != last.value:
            ended.append((last.held_since, first.spans[-1].values))
        spans: list[Span] = []
        since = begins
        for until, values in sorted(ended, key=lambda one: one[0]):
            _append(spans, Span(since, values))
            since = until
        _append(spans, Span(since, last.spans[-1].values))
        stamps = [one.stamp for one in (self, other) if one.stamp is not None]
        return msgspec.structs.replace(self, spans=_shortened(spans), stamp=max(stamps, default=None))

    def shortened(self, number: int) -> Self:
        """Return the history with at most ``number`` spans. A single span has the current value only."""
        if number >= MAX_SPANS:
            return self
        spans = self.spans[-1:] if number == 1 else _shortened(self.spans, number)
        return msgspec.structs.replace(self, spans=spans)


def observed(
    known: TaintHistory | None, value: str, stamp: float | None, now: float, *, absent_at: float, gap: bool
) -> TaintHistory:
    """Return the history of a taint as it is seen ``now``; the taint may be new.

    ``absent_at``: last time at which the known state was current. ``gap``: True if later changes may be missing.
    """
    if known is None:
        return TaintHistory.begin(value, now, stamp, absent_at)
    return known.seen(value, stamp, now, absent_at if gap else None)


def joined(
    known: Mapping[str, TaintHistory], stored: Mapping[str, TaintHistory], absent_at: float
) -> dict[str, TaintHistory]:
    """Join the known histories with stored ones. A taint that is not known was absent at ``absent_at``."""
    return {**known} | {
        name: known[name].joined(one) if name in known else one.after(absent_at) for name, one in stored.items()
    }


def is_of_device(name: str) -> bool:
    """Return True if this is the name of the history of a device's taint, in which the device follows ``@``."""
    return "@" in name


# -- what is kept -----------------------------------------------------------------------------------------------------


def _shortened(spans: Sequence[Span], most: int = MAX_SPANS) -> tuple[Span, ...]:
    """Join spans that are short in relation to their age, until at most ``most`` remain.

    This moves a deadline by a part of the time since the violation. A joined span has the values of all its spans.
    """
    part, groups = 0.0, [[span] for span in spans]
    while len(groups) > (most if part == 0.0 else most - most // 8):  # joins many at once, since each pass is slow
        part = max(part * 1.2, _SHORTEST)
        groups = _groups(spans, part)
    found = [Span(group[0].since, _together(value for span in group for value in span.values)) for group in groups]
    _forget(found, sum(len(span.values) for span in found) - MAX_VALUES // MAX_SPANS * most)
    return tuple(found)


def _groups(spans: Sequence[Span], part: float) -> list[list[Span]]:
    """Group the spans to be joined. A group lasts at most ``part`` of its age. The last span is a group of its own."""
    end = now = spans[-1].since
    groups = [[spans[-1]]]
    for span in reversed(spans[:-1]):
        if len(groups) > 1 and end - span.since <= part * max(now - span.since, _RECENT):
            groups[0].insert(0, span)
        else:
            end = groups[0][0].since
            groups.insert(0, [span])
    return groups


@lru_cache(maxsize=65536)
def _sort_keys(value: str | None) -> tuple[Any, Any, Any]:
    """Return the sort key of a value in each order by which tolerations compare; None where it has none."""
    return (None, None, None) if value is None else (parse_integer(value), semver_sort_key(value), parse_natural(value))


def _forget(spans: list[Span], number: int) -> None:
    """Drop up to ``number`` values that matter to exact comparisons only, the oldest first.

    Values that a later span has, too, are dropped first: the violation of a pod that tolerates them began after it.
    """
    for is_repeated in (True, False):
        later = Counter(value for span in spans for value in span.values)
        for at, span in enumerate(spans):
            later.subtract(span.values)
            needed = _needed(span.values) if number > 0 else {*span.values}
            spare = [value for value in span.values if value not in needed and bool(later[value]) is is_repeated]
            if forgotten := spare[:number]:
                number -= len(forgotten)
                gone = () if is_repeated else (None,)
                left = [one for value in span.values for one in (gone if value in forgotten else (value,))]
                spans[at] = Span(span.since, _together(left))


def _together(values: Iterable[str | None]) -> tuple[str | None, ...]:
    """Return each value once, in the order in which the values ended."""
    return tuple(dict.fromkeys(reversed([*values])))[::-1]


def _needed(values: Sequence[str | None]) -> set[str | None]:
    """Return the lowest, the highest and the last value in each order, and the last one without a sort key in it."""
    found: set[str | None] = {None}
    for order in range(3):
        placed = [(key, value) for value in values if (key := _sort_keys(value)[order]) is not None]
        found |= {min(placed)[1], max(placed)[1], placed[-1][1]} if placed else set()
        found |= {*[value for value in values if value is not None and _sort_keys(value)[order] is None][-1:]}
    return found


def _append(spans: list[Span], span: Span) -> None:
    if not spans or spans[-1].values != span.values:
        spans.append(span)


# -- the annotation ---------------------------------------------------------------------------------------------------


def encode_histories(histories: Mapping[str, TaintHistory]) -> str:
    """Write the node annotation: ``{"key:effect": {"values": [[since, [value]]], "stamp": seconds}}``.

    The text is never longer than :func:`read_histories` accepts: for many taints, fewer spans of each are stored. If it
    is still too long, histories are left out: first those of devices, then those that ``timeAdded`` replaces.
    """
    names = sorted(histories, key=lambda name: (is_of_device(name), histories[name].is_stated, name))
    number = MAX_SPANS
    while names:
        text = msgspec.json.encode({name: histories[name].shortened(number) for name in names}, order="sorted").decode()
        if len(text) <= MAX_TEXT_LENGTH:
            return text
        if number > 1:
            number //= 2
        else:
            names = names[: len(names) // 2]
    return ""


def decode_histories(text: str) -> dict[str, TaintHistory]:
    """Read the node annotation, and accept no fault.

    Raises:
        ValueError: the text is not what :func:`encode_histories` writes.

    """
    found, faults = read_histories(text)
    if faults:
        raise ValueError(faults[0])
    return found


def read_histories(text: str) -> tuple[dict[str, TaintHistory], list[str]]:
    """Read the node annotation. Returns the readable histories, and why the first of the others count as absent."""
    if not text:
        return {}, []
    if len(text) > MAX_TEXT_LENGTH:
        return {}, [f"it is longer than {MAX_TEXT_LENGTH} characters"]
    try:
        entries = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError) as error:
        return {}, [str(error)]
    except RecursionError:  # a kubelet may write any text
        return {}, ["it is nested too deeply"]
    found: dict[str, TaintHistory] = {}
    faults = []
    for name, entry in entries.items():
        try:
            found[name] = _checked(msgspec.json.decode(entry, type=TaintHistory))
        except (ValueError, RecursionError) as error:
            faults.append(f"{name[:100]!r}: {error}")
    return found, faults[:MAX_FAULTS]


def _checked(history: TaintHistory) -> TaintHistory:
    spans = history.spans
    is_sized = 0 < len(spans) <= MAX_SPANS and all(0 < len(span.values) <= MAX_VALUES for span in spans)
    if not is_sized or any(span.since > other.since for span, other in pairwise(spans)):
        raise ValueError("its values are missing, too many or out of order")
    if len(spans[-1].values) > 1 or None in spans[-1].values:
        raise ValueError("it has no current value")
    if history.added_at < 0:
        raise ValueError("its times lie before 1970")
    return history


def until_now(histories: Mapping[str, TaintHistory], now: float) -> dict[str, TaintHistory]:
    """Remove times in the future: a kubelet may write the annotation of its node, and so postpone evictions.

    Values that begin further ahead than the clock skew allows begin ``now``; such a stamp is dropped.
    """
    return {name: _until_now(history, now) for name, history in histories.items()}


def _until_now(history: TaintHistory, now: float) -> TaintHistory:
    if history.stamp is not None and history.stamp > now + CLOCK_SKEW_SECONDS:
        history = msgspec.structs.replace(history, stamp=None)
    if history.held_since <= now + CLOCK_SKEW_SECONDS:
        return history
    spans = tuple(Span(min(span.since, now), span.values) for span in history.spans)
    return msgspec.structs.replace(history, spans=spans)


def _milliseconds(at: float) -> float:
    """Round up to milliseconds, so that the time read after a restart equals the one that decisions used.

    A time before 1970 counts as 1970: any client may write ``-1e308`` into the annotation, which has no milliseconds.
    """
    return math.ceil(max(0.0, at) * 1000) / 1000
