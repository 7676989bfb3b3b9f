"""A clock that follows corrections of its machine's clock, and ignores its other steps."""

import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from taintwarden.controller import clock
from taintwarden.controller.clock import CheckedClock
from taintwarden.engine.model import Instant, MonotonicTime, WallTime

NOON = 1_800_000_000.0
AN_HOUR = 3600.0


class Machine:
    """A machine with its clock, and the API server's clock; both are right at first."""

    def __init__(self) -> None:
        self.elapsed = self.error = self.server_error = 0.0
        self.clock = CheckedClock(lambda: Instant(WallTime(self.wall), MonotonicTime(self.elapsed)))

    @property
    def wall(self) -> float:
        return NOON + self.elapsed + self.error

    def receive_date(self) -> None:
        at = datetime.fromtimestamp(int(NOON + self.elapsed + self.server_error), UTC)
        self.clock.synchronize(format_datetime(at, usegmt=True))

    def error_after(self, seconds: float = 10.0) -> float:
        """Seconds by which the clock is ahead of the right time, after `seconds` and an answer of the API server."""
        self.elapsed += seconds
        self.receive_date()
        return round(self.clock().wall - NOON - self.elapsed)


@pytest.fixture
def machine() -> Machine:
    made = Machine()
    made.receive_date()
    made.clock()
    return made


@pytest.mark.parametrize("step", [AN_HOUR, -AN_HOUR, 5.0, -5.0])
def test_a_step_away_from_the_server_is_not_followed(machine, step):
    machine.error = step
    assert [machine.error_after() for _ in range(3)] == [0, 0, 0]


def test_nothing_is_left_of_a_step_that_is_undone(machine):
    for machine.error in (AN_HOUR, 0.0, -AN_HOUR, 0.0):
        assert machine.error_after() == 0


@pytest.mark.parametrize("error", [5.0, -5.0])
def test_a_correction_is_followed_at_once(error):
    machine = Machine()
    machine.error = error
    assert machine.error_after() == error
    machine.error = 0.0
    assert round(machine.clock().wall - machine.wall) == 0


@pytest.mark.parametrize("error", [9.0, -9.0])
def test_a_correction_that_is_not_exact_is_followed_at_once(error):
    machine = Machine()
    machine.error = error
    assert machine.error_after() == error
    machine.error = error / 3
    assert round(machine.clock().wall - machine.wall, 3) == 0


@pytest.mark.parametrize("error", [AN_HOUR, -AN_HOUR, 15.0, -15.0])
@pytest.mark.parametrize("asked", ["before", "after"])
def test_a_clock_that_is_wrong_at_start_is_replaced_by_the_servers(error, asked):
    machine = Machine()
    machine.error = error
    if asked == "before":
        machine.clock()
    assert machine.error_after() == 1, "seconds are cut off: never behind"
    machine.error = 0.0
    assert machine.error_after() == 0


@pytest.mark.parametrize("pace", [0.05, -0.05])
def test_a_clock_that_runs_at_another_pace_stays_near_the_servers(machine, pace):
    errors = []
    for _ in range(1_000):
        machine.error += pace * 10
        errors.append(abs(machine.error_after(10.0)))
    assert max(errors) <= clock.SKEW_SECONDS + clock.DOUBT_SECONDS * abs(pace) + 2


@pytest.mark.parametrize("wrong", [AN_HOUR, -AN_HOUR, 60.0])
def test_one_wrong_server_of_three_changes_nothing_when_the_machine_is_wrong(wrong):
    machine = Machine()
    machine.error = -36_000.0
    for number in range(50):
        machine.server_error = wrong if number % 3 == 2 else 0.0
        assert machine.error_after() == 1


def test_wrong_servers_change_nothing_while_another_is_right(machine):
    for number in range(100):
        machine.server_error = AN_HOUR if number % 3 else 0.0
        assert machine.error_after() == 0


def test_a_server_with_another_time_counts_after_a_minute(machine):
    machine.server_error = AN_HOUR
    assert [machine.error_after() for _ in range(8)] == [0] * 5 + [AN_HOUR + 1] * 3


def test_a_silent_server_replaces_nothing(machine):
    machine.elapsed += 7_200
    machine.error = 0.6
    assert round(machine.clock().wall - machine.wall) == 0


def test_a_clock_that_is_replaced_is_logged_once():
    machine = Machine()
    machine.error = AN_HOUR
    with capture_logs() as logs:
        for _ in range(20):
            machine.error_after()
    assert [(one["event"], one["seconds"]) for one in logs] == [("clock-replaced", AN_HOUR)]


def test_slow_corrections_by_ntp_are_followed(machine):
    for _ in range(10):
        machine.error += 0.5
        assert machine.error_after() == round(machine.error)


def test_until_the_server_has_answered_every_step_is_followed():
    machine = Machine()
    machine.clock()
    machine.error = AN_HOUR
    assert machine.clock().wall == machine.wall


def test_a_suspended_machine_follows_once_the_server_answers(machine):
    """The monotonic clock of a suspended virtual machine stands still, too."""
    machine.error = machine.server_error = 600.0
    assert machine.clock().wall == NOON
    assert machine.error_after(1.0) == 600.0


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="the system has no clock that runs on in its sleep")
def test_time_asleep_counts_in_the_monotonic_clock(monkeypatch):
    """A leader that slept for an hour must not rely on its lease, nor on its view of the cluster."""
    before = clock.system_clock().monotonic
    slept = time.clock_gettime(time.CLOCK_BOOTTIME) + AN_HOUR
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: slept}.__getitem__)
    assert clock.system_clock().monotonic - before >= AN_HOUR


@pytest.mark.parametrize(
    "date",
    [
        "",
        "yesterday",
        "Wed, 25 Nov 2026 99:00:00 GMT",
        "\0",
        f"Wed, 25 Nov {10**30} 10:00:00 GMT",
        f"Wed, 25 Nov 2026 10:00:00 +{10**30}",
        f"Wed, 25 Nov {'9' * 5_000} 10:00:00 GMT",
    ],
)
def test_a_date_that_cannot_be_read_changes_nothing(machine, date):
    machine.clock.synchronize(date)
    machine.error = AN_HOUR
    assert machine.error_after() == 0


def test_a_step_that_is_not_followed_is_logged_once(machine):
    machine.error = AN_HOUR
    with capture_logs() as logs:
        for _ in range(5):
            machine.error_after()
    assert [(one["event"], one["seconds"]) for one in logs] == [("clock-step-ignored", AN_HOUR)]


@given(steps=st.lists(st.floats(-86_400, 86_400), min_size=1, max_size=20))
def test_any_sequence_of_steps_stays_near_the_right_time(steps):
    machine = Machine()
    machine.receive_date()
    machine.clock()
    for machine.error in steps:
        assert abs(machine.error_after()) <= 20 * 2
