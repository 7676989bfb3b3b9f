"""A clock that follows the corrections of its machine's clock, and no other steps of it."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from taintwarden.controller.clock import CheckedClock
from taintwarden.engine.model import Instant, MonotonicTime, WallTime

NOON = 1_800_000_000.0
AN_HOUR = 3600.0


class Machine:
    """Its own clock, and the API server's; both are right at first."""

    def __init__(self) -> None:
        self.elapsed = self.error = self.server_error = 0.0
        self.clock = CheckedClock(lambda: Instant(WallTime(self.wall), MonotonicTime(self.elapsed)))

    @property
    def wall(self) -> float:
        return NOON + self.elapsed + self.error

    def hear(self) -> None:
        at = datetime.fromtimestamp(int(NOON + self.elapsed + self.server_error), UTC)
        self.clock.heard(format_datetime(at, usegmt=True))

    def error_after(self, seconds: float = 10.0) -> float:
        """By how much the clock is ahead of what is right, after some time in which the API server answers."""
        self.elapsed += seconds
        self.hear()
        return round(self.clock().wall - NOON - self.elapsed)


@pytest.fixture
def machine() -> Machine:
    made = Machine()
    made.hear()
    made.clock()
    return made


@pytest.mark.parametrize("step", [AN_HOUR, -AN_HOUR, 5.0, -5.0])
def test_a_step_away_from_the_server_is_not_followed(machine, step):
    machine.error = step
    assert [machine.error_after() for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("step", [AN_HOUR, -AN_HOUR])
def test_the_clock_goes_on_while_a_step_is_not_followed(machine, step):
    machine.error = step
    before = machine.clock()
    machine.elapsed += 7.5
    after = machine.clock()
    assert after.wall - before.wall == after.monotonic - before.monotonic == 7.5


def test_nothing_is_left_of_a_step_that_is_undone(machine):
    for machine.error in (AN_HOUR, 0.0, -AN_HOUR, 0.0):
        assert machine.error_after() == 0


@pytest.mark.parametrize("error", [AN_HOUR, -AN_HOUR])
def test_a_correction_is_followed_at_once(error):
    machine = Machine()
    machine.error = error
    assert machine.error_after() == error
    machine.error = 0.0
    assert round(machine.clock().wall - machine.wall) == 0


def test_without_a_step_nothing_is_corrected(machine):
    """One of several API servers may have a wrong clock."""
    machine.server_error = AN_HOUR
    assert machine.error_after() == 0


def test_what_ntp_moves_without_a_step_is_followed(machine):
    for _ in range(10):
        machine.error += 0.5
        assert machine.error_after() == round(machine.error)


def test_until_the_server_has_answered_every_step_is_followed():
    machine = Machine()
    machine.clock()
    machine.error = AN_HOUR
    assert machine.clock().wall == machine.wall


def test_a_step_of_both_clocks_is_followed_once_the_server_tells_of_it(machine):
    machine.error = machine.server_error = AN_HOUR
    assert machine.error_after() == AN_HOUR


def test_a_machine_that_stood_still_follows_once_the_server_answers(machine):
    """The monotonic clock of a suspended virtual machine stands still, too."""
    machine.error = machine.server_error = 600.0
    assert machine.clock().wall == NOON
    assert machine.error_after(1.0) == 600.0


@pytest.mark.parametrize("date", ["", "yesterday", "Wed, 25 Nov 2026 99:00:00 GMT", "\0"])
def test_a_date_that_cannot_be_read_says_nothing(machine, date):
    machine.clock.heard(date)
    machine.error = AN_HOUR
    assert machine.error_after() == 0


def test_a_step_that_is_not_followed_is_logged_once(machine):
    machine.error = AN_HOUR
    with capture_logs() as logs:
        for _ in range(5):
            machine.error_after()
    assert [(one["event"], one["seconds"]) for one in logs] == [("clock-step-ignored", AN_HOUR)]


@given(steps=st.lists(st.floats(-86_400, 86_400), min_size=1, max_size=20))
def test_no_sequence_of_steps_leads_farther_away(steps):
    machine = Machine()
    machine.hear()
    machine.clock()
    for machine.error in steps:
        assert abs(machine.error_after()) <= 20 * 2
