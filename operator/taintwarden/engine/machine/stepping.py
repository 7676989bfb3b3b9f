"""The current step: its time and its commands. All parts of the machine write here, in order."""

from taintwarden.engine.machine import commands
from taintwarden.engine.model import Instant, MonotonicTime, WallTime


class Step:
    """Starts again with every event; the parts of the machine share the same object."""

    def __init__(self) -> None:
        self.now = Instant(WallTime(0.0), MonotonicTime(0.0))
        self.leading = False
        self.out: list[commands.Command] = []

    def begin(self, now: Instant) -> None:
        """Start the step of another event at ``now``."""
        self.now = now
        self.out = []

    def command(self, *ordered: commands.Command) -> None:
        """Issue commands."""
        self.out += ordered

    def report(self, *notices: commands.Notice) -> None:
        """Issue notices. Followers issue none, since the leader does."""
        if self.leading:
            self.out += notices
