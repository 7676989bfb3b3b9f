"""Times of statuses as people compare them: ages and countdowns, as of the time of reading."""

import re

from taintwarden.controller.decoding.times import moment
from taintwarden.controller.words.wording import ago, duration, relative

_WITHIN = re.compile(
    r"\b(?:(?P<word>since|(?:may be evicted|call is made) at|at) )?(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"
)


class Times:
    """RFC 3339 times, as text for a reader.

    Args:
        now: the time of reading.
        utc: whether to leave them as they are.

    """

    def __init__(self, now: str, *, utc: bool = False) -> None:
        self.now = moment(now)
        self._utc = utc

    def age(self, time: str) -> float:
        """The age in seconds. Of an unreadable time it is 0."""
        try:
            return self.now - moment(time)
        except ValueError:
            return 0.0

    def told(self, time: str) -> str:
        """``2s ago``, ``in 30s``; or ``at`` that time."""
        return f"at {time}" if self._utc else relative(-self.age(time), 0.0)

    def ago(self, time: str) -> str:
        """``2s ago``, of what has happened; or ``at`` that time."""
        return f"at {time}" if self._utc else ago(-self.age(time), 0.0)

    def ahead(self, time: str) -> str:
        """``in 30s``, of what is to come: ``now`` if its time has passed; or ``at`` that time."""
        return f"at {time}" if self._utc else relative(max(-self.age(time), 0.0), 0.0)

    def since(self, time: str) -> str:
        """``for 2m``; or ``since`` that time."""
        return f"since {time}" if self._utc else f"for {duration(max(self.age(time), 0.0))}"

    def due(self, deadline: str) -> str:
        """``due in 30s``, ``overdue for 61s``; or ``due at`` that time."""
        age = self.age(deadline)
        return f"overdue for {duration(age)}" if age >= 1 and not self._utc else f"due {self.told(deadline)}"

    def within(self, text: str) -> str:
        """A text with every time in it replaced."""
        return text if self._utc else _WITHIN.sub(self._replaced, text)

    def _replaced(self, found: re.Match[str]) -> str:
        word, time = found["word"] or "", found["time"]
        if word == "since":
            return self.since(time)
        return f"{word.removesuffix(' at')} {self.ahead(time)}" if word.endswith(" at") else self.told(time)
