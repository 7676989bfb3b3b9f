"""The one loop that plays scenarios side by side: everything that is to happen, sorted by its moment."""

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from controlplane import Json, sleep_until
from e2e.replay.pod_watch import PodWatch
from e2e.replay.stage import Stage

# Kubernetes writes whole seconds. Scenarios start just after a full second of the wall clock, so that what objects
# say and what happened differ by less than the windows leave. A few per second keep steps on time on two cores.
STARTS_PER_SECOND = 2
SETTLE_SECONDS = 0.5


@dataclass(frozen=True)
class Outcome:
    """What was seen of one pod, relative to time 0 of its scenario."""

    evicted_at: float | None
    last: Json
    uid: str
    lost_seconds: float
    """What the machine lost until then: no window counts it."""

    def problem(self, expectation: Json) -> str:
        """Why this is not what was expected; empty when it is."""
        if not expectation["evicted"]:
            if self.evicted_at is None or self.evicted_at > expectation["until"]:
                return ""
            return f"evicted at {self.evicted_at:.2f} s, expected to stay until {expectation['until']} s"
        window = f"expected between {expectation['not_before']} and {expectation['not_after']} s"
        if self.evicted_at is None:
            return f"not evicted, {window}"
        if expectation["not_before"] <= self.evicted_at <= expectation["not_after"] + self.lost_seconds:
            return ""
        return f"evicted at {self.evicted_at:.2f} s, of which the machine lost {self.lost_seconds:.2f}, {window}"


class Timeline:
    """Plays stages; `play` returns when the last one is over."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, moment: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (moment, next(self._order), act))

    def play(self, stages: Sequence[Stage]) -> None:
        """Start the longest scenarios first and do every step of every scenario at its moment."""
        first = next_full_second()
        for index, stage in enumerate(sorted(stages, key=lambda stage: -stage.scenario.lasts_seconds)):
            self.at(first + index // STARTS_PER_SECOND, lambda stage=stage: self._start(stage))
        while self._due:
            moment, _, act = heapq.heappop(self._due)
            sleep_until(moment)
            act()

    def _start(self, stage: Stage) -> None:
        stage.raise_curtain()
        stage.started_at = time.monotonic()
        for step in stage.scenario.steps:
            moment = stage.started_at + step["at"]
            if step["at"] == 0:  # before the next scenario starts
                self._step(stage, step, moment)
            else:
                self.at(moment, lambda step=step, moment=moment: self._step(stage, step, moment))
        self.at(stage.over_at + SETTLE_SECONDS, lambda: None)

    def _step(self, stage: Stage, step: Json, moment: float) -> None:
        stage.late_seconds = max(stage.late_seconds, time.monotonic() - moment)
        for seconds, act in stage.do(step):
            self.at(moment + seconds, act)


def next_full_second() -> float:
    """The next full second of the wall clock, as a moment of the monotonic clock."""
    wall = time.time()
    return time.monotonic() + (math.ceil(wall) - wall)


def outcomes(stage: Stage, watch: PodWatch) -> dict[str, Outcome]:
    """What was seen of each pod of the scenario, the last one under each name."""
    seen = {}
    for name, uid in stage.uids.items():
        moment = watch.evicted_at(uid)
        evicted_at = None if moment is None else moment - stage.started_at
        lost_seconds = stage.start_seconds + watch.lost(stage.started_at, moment)
        seen[name] = Outcome(evicted_at, watch.last(uid), uid, lost_seconds)
    return seen
