"""The step under way: its time, and what comes out of it. All parts of the machine write here, in order."""

from taintwarden.engine.machine import commands
from taintwarden.engine.model import Instant, MonotonicTime, WallTime


class Step:
    """Begun anew with every event; the parts of the machine keep the same object."""

    def __init__(self) -> None:
        self.now = Instant(WallTime(0.0), MonotonicTime(0.0))
        self.leading = False
        self.out: list[commands.Command] = []

    def begin(self, now: Instant) -> None:
        """Another event is taken at ``now``."""
        self.now = now
        self.out = []

    def command(self, *ordered: commands.Command) -> None:
        """Have something done."""
        self.out += ordered

    def report(self, *notices: commands.Notice) -> None:
        """Report something. Followers report nothing, since the leader does."""
        if self.leading:
            self.out += notices
