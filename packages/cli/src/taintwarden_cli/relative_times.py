"""Times of statuses as people compare them: ages and countdowns, as of the time of reading."""

import re

from taintwarden.controller.decoding.times import moment
from taintwarden.controller.words.wording import ago, duration, relative
from taintwarden.engine.rfc3339 import read_time

_TIME = re.compile(
    r"(?:(?P<next>; the next (?:may be evicted|call is made)) at |(?P<word>since|at) )?"
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)(?P<bound> at the latest)?"
)


class Times:
    """RFC 3339 times, as text for a reader.

    Args:
        now: the time of reading.
        is_old: the statuses are of an operator that does not report, so no pod is the next.

    """

    def __init__(self, now: str, *, is_old: bool = False) -> None:
        self.now = moment(now)
        self._is_old = is_old

    def age(self, time: str) -> float:
        """The age in seconds. Of an unreadable time it is 0."""
        at = read_time(time)
        return 0.0 if at is None else self.now - at

    def ago(self, time: str) -> str:
        """``2s ago``, of what has happened."""
        return ago(-self.age(time), 0.0)

    def due(self, deadline: str) -> str:
        """``due in 30s``, or ``overdue for 61s``."""
        age = self.age(deadline)
        return f"overdue for {duration(age)}" if age >= 1 else f"due {relative(-age, 0.0)}"

    def rewrite(self, text: str) -> str:
        """A text with every time in it replaced. When the next pod may leave is left out if that is past."""
        return _TIME.sub(self._replaced, text)

    def _replaced(self, found: re.Match[str]) -> str:
        age = self.age(found["time"])
        if found["next"]:
            is_past = self._is_old or age >= 0
            return "" if is_past else f"{found['next']} {relative(-age, 0.0)}{found['bound'] or ''}"
        return f"for {duration(max(age, 0.0))}" if found["word"] == "since" else relative(-age, 0.0)
