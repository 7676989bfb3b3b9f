"""Times of statuses as ages and countdowns, relative to the time of reading."""

import re

from taintwarden.controller.decoding.times import moment
from taintwarden.controller.words.wording import ago, duration, relative
from taintwarden.engine.rfc3339 import read_time

_TIME = re.compile(
    r"(?:(?P<next>; the next (?:may be evicted|call is made)) at |(?P<word>since|at|until) )?"
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)(?P<bound> at the latest)?"
)


class Times:
    """Formats RFC 3339 times relative to ``now``, the time of reading.

    ``is_stale`` is True if the operator does not report: the time of the next eviction is then not known.
    """

    def __init__(self, now: str, *, is_stale: bool = False) -> None:
        self.now = moment(now)
        self.is_stale = is_stale

    def age(self, time: str) -> float:
        """The age in seconds; 0 for an unreadable time."""
        at = read_time(time)
        return 0.0 if at is None else self.now - at

    def ago(self, time: str) -> str:
        """The age as text, such as ``2s ago``."""
        return ago(-self.age(time), 0.0)

    def due(self, deadline: str) -> str:
        """The deadline as text: ``due in 30s``, or ``overdue for 61s``."""
        age = self.age(deadline)
        return f"overdue for {duration(age)}" if age >= 1 else f"due {relative(-age, 0.0)}"

    def rewrite(self, text: str) -> str:
        """Replace every time in a text. The clause about the next eviction or call is dropped if past or stale."""
        return _TIME.sub(self._replaced, text)

    def _replaced(self, found: re.Match[str]) -> str:
        age = self.age(found["time"])
        if found["next"]:
            is_past = self.is_stale or age >= 0
            return "" if is_past else f"{found['next']} {relative(-age, 0.0)}{found['bound'] or ''}"
        if found["word"] == "until":
            return f"until {found['time']}, {relative(-age, 0.0)}"
        return f"for {duration(max(age, 0.0))}" if found["word"] == "since" else relative(-age, 0.0)
