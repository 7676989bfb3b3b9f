"""Outside its windows a policy evicts nobody."""

from simulated.drawing import WINDOWS
from simulated.histories import Played, histories
from taintwarden.engine.machine import commands
from taintwarden.engine.model import Window

EVERY_MINUTES = {"*/2 * * * *": 2, "* * * * *": 1, "*/3 * * * *": 3}


def is_open(window: Window, wall: float) -> bool:
    """By arithmetic: these schedules name every so many minutes of the epoch."""
    return wall % (60 * EVERY_MINUTES[window.schedule]) < window.duration_seconds


def outside(history: Played) -> list[str]:
    found = []
    for moment, known in history.moments():
        if isinstance(moment.what, commands.Evict):
            windows = known.policies[moment.what.verdict.policy.name].windows
            if windows and not any(is_open(window, moment.now.wall) for window in windows):
                found.append(f"{moment.what.pod} leaves at {moment.at}")
    return found


def test_outside_its_windows_a_policy_evicts_nobody():
    for history in histories("window"):
        assert outside(history) == [], history


def test_the_oracle_reads_every_schedule_that_is_drawn():
    assert {schedule for schedule, _ in WINDOWS} == set(EVERY_MINUTES)
