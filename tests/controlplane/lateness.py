"""An API server that is late: for the programs of ours that tests start, when the variable LATE asks for it.

`LATE=watches` delays what watches deliver, `LATE=all` the answers to other requests as well. Tests ask the API server
itself, so they see at once what happens.
"""

import os
import random
from dataclasses import dataclass, replace

VARIABLE = "LATE"
SEED_VARIABLE = "LATE_SEED"


@dataclass(frozen=True)
class Lateness:
    """How long each piece of an answer is held. No piece overtakes another one of its connection."""

    watch_seconds: tuple[float, ...] = (0.0,)
    """One of these for each piece that a watch delivers."""
    answer_seconds: float = 0.0
    """At most, for each piece of any other answer."""
    allowed_seconds: float = 0.0
    """How much later than usual an operator may be with anything, since it takes several such answers."""
    seed: str = ""

    def source(self, name: str) -> random.Random:
        """What a connection of this name draws from."""
        return random.Random(f"{self.seed} {name}")

    def draw(self, source: random.Random, *, is_watch: bool) -> float:
        """For how many seconds the next piece is held."""
        return source.choice(self.watch_seconds) if is_watch else source.uniform(0, self.answer_seconds)


IN_TIME = Lateness()
WATCH_SECONDS = (0.0, 0.0, 0.3, 1.5)
MODES = {
    "watches": Lateness(WATCH_SECONDS, allowed_seconds=5),
    "all": Lateness(WATCH_SECONDS, answer_seconds=0.3, allowed_seconds=8),
}


def chosen() -> Lateness:
    """What the variable asks for. Raises ValueError for a mode that does not exist."""
    mode = os.environ.get(VARIABLE, "")
    if not mode:
        return IN_TIME
    if mode not in MODES:
        raise ValueError(f"{VARIABLE}={mode}: must be one of {', '.join(MODES)}")
    return replace(MODES[mode], seed=os.environ.get(SEED_VARIABLE, ""))
