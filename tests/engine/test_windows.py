"""When windows are open: by the calendar, over changes of the clock, and against a model that looks at every minute."""

import math
from bisect import bisect_right
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.limits.asking import ask
from engine.rig import limited
from simulated.calendar import Wall
from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.windows import EvictionWindows, Windows
from taintwarden.engine.model import Instant, MonotonicTime, Pod, PodClass, Tolerations, WallTime
from taintwarden.engine.policy import Window

HOUR = 3600
DAY = 24 * HOUR
BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def at(text: str) -> float:
    """Seconds since the epoch of an ISO time, UTC unless it says otherwise."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo("UTC"))).timestamp()


def window(schedule: str, hours: float = 1, zone: str = "UTC") -> Window:
    return Window(schedule, int(hours * HOUR), zone)


def opens(schedule: str, since: str, until: str, zone: str = "UTC") -> list[str]:
    """All times at which a window opens, on the wall of its zone."""
    asked, now, end = Windows((Window(schedule, 1, zone),)), at(since), at(until)
    found = []
    while (next_at := asked.closed_until(now)) is not None and next_at <= end:
        found.append(datetime.fromtimestamp(next_at, ZoneInfo(zone)).strftime("%m-%d %H:%M %z"))
        now = next_at + 1
    return found


def next_opening(schedule: str, now: str, zone: str = "UTC") -> str:
    opens_at = Windows((Window(schedule, 1, zone),)).closed_until(at(now))
    assert opens_at is not None
    return datetime.fromtimestamp(opens_at, ZoneInfo(zone)).isoformat()


# -- open and closed --------------------------------------------------------------------------------------------------


def test_a_window_that_opens_while_open_stays_open_for_its_duration():
    windows = Windows((window("0 2,3 * * *", 2),))
    assert [windows.closed_until(at(f"2026-05-01T0{hour}:30")) for hour in (2, 3, 4)] == [None, None, None]
    assert windows.closed_until(at("2026-05-01T05:00")) == at("2026-05-02T02:00")


def test_the_first_of_several_windows_to_open_ends_the_wait_wherever_it_is_listed():
    windows = Windows((window("0 4 * * *"), window("0 2 * * *"), window("0 3 * * *")))
    assert windows.closed_until(at("2026-05-01T01:00")) == at("2026-05-01T02:00")
    assert windows.closed_until(at("2026-05-01T02:30")) is None


def test_a_pod_is_refused_until_the_window_opens():
    policy = msgspec.structs.replace(limited(), windows=(window("0 2 * * *"),))
    limit = EvictionWindows()
    pod = Pod("a", "a", "n1", PodClass("shop", {}, Tolerations()), 0.0, 1)
    now = Instant(WallTime(at("2026-05-01T01:00")), MonotonicTime(7.0))
    limit.configure([policy], now)
    assert limit.admit(ask(pod, policy, now=now)) == Refusal("window", MonotonicTime(7.0 + HOUR))


@pytest.mark.parametrize("time", ["* *", "0 2"])
def test_a_schedule_that_no_date_meets_never_opens(time):
    assert Windows((window(f"{time} */20 * 1L"),)).closed_until(at("2026-05-01")) == math.inf


def test_before_the_epoch_it_works_too():
    """Clocks that were never set begin there."""
    assert next_opening("0 0 * * *", "1969-12-31T12:00") == "1970-01-01T00:00:00+00:00"
    assert Windows((window("0 20 31 12 *", 10),)).closed_until(0.0) is None


# -- zones and changes of the clock -----------------------------------------------------------------------------------


CHANGES = {
    "skipped": ("30 2 * * *", "2026-03-28", "2026-03-31", BERLIN, "28 02:30 +01, 29 03:00 +02, 30 02:30 +02"),
    "two times are skipped": ("0,30 2 * * *", "2026-03-29", "2026-03-29T12:00", BERLIN, "29 03:00 +02"),
    "a skipped time falls on another": ("0 2,3 * * *", "2026-03-29", "2026-03-29T12:00", BERLIN, "29 03:00 +02"),
    "repeated": ("30 2 * * *", "2026-10-24T12:00", "2026-10-26T12:00", BERLIN, "25 02:30 +02, 26 02:30 +01"),
    "another day in spring": ("30 2 * * *", "2026-03-08", "2026-03-09", NEW_YORK, "08 03:00 -04"),
    "another day in autumn": ("30 1 * * *", "2026-11-01", "2026-11-02", NEW_YORK, "01 01:30 -04"),
    "half an hour is skipped": ("15 2 * * *", "2026-10-03T14:00", "2026-10-04T14:00", LORD_HOWE, "04 02:30 +11"),
    "half an hour is repeated": ("45 1 * * *", "2026-04-04T13:00", "2026-04-05T13:00", LORD_HOWE, "05 01:45 +11"),
    "a star in an hour that comes twice": (
        "*/30 2 * * *", "2026-10-24T22:00", "2026-10-25T22:00", BERLIN,
        "25 02:00 +02, 25 02:30 +02, 25 02:00 +01, 25 02:30 +01",
    ),
    "a star in an hour that is skipped": ("*/30 2 * * *", "2026-03-28T23:00", "2026-03-29T22:00", BERLIN, ""),
    "every hour is every real hour": (
        "0 * * * *", "2026-03-28T23:30", "2026-03-29T02:30", BERLIN, "29 01:00 +01, 29 03:00 +02, 29 04:00 +02",
    ),
    "each of two": ("0 * * * *", "2026-10-24T23:30", "2026-10-25T01:30", BERLIN, "25 02:00 +02, 25 02:00 +01"),
    "a midnight is skipped": ("0 0 24 4 *", "2026-04-23", "2026-04-25", "Africa/Cairo", "24 01:00 +03"),
    "Samoa had no 30 December 2011": ("0 12 30 12 *", "2011-12-28", "2012-01-05", "Pacific/Apia", "31 00:00 +14"),
}  # fmt: skip
"""A schedule, from when to when, a zone, and the days and times on its wall at which it opens."""


@pytest.mark.parametrize(("schedule", "since", "until", "zone", "found"), CHANGES.values(), ids=CHANGES)
def test_when_clocks_change(schedule, since, until, zone, found):
    assert ", ".join(one[3:].removesuffix("00") for one in opens(schedule, since, until, zone)) == found


@pytest.mark.parametrize("minute", ["00:31", "00:59", "01:00", "01:15", "01:29", "01:30", "01:31", "01:59"])
def test_in_the_hour_that_comes_twice_nothing_opens_again(minute):
    """02:31 +0200 to 02:59 +0100, asked by a process that has just started."""
    assert next_opening("30 2 * * *", f"2026-10-25T{minute}", BERLIN) == "2026-10-26T02:30:00+01:00"


# -- what is remembered -----------------------------------------------------------------------------------------------

ZONES = ["UTC", BERLIN, NEW_YORK, "Asia/Kathmandu", "America/St_Johns"]
# Around changes of the clock in those zones, and around a leap day.
MOMENTS = [
    "2024-02-28T12:00",
    "2026-03-07T20:00",
    "2026-03-28T12:00",
    "2026-04-04T06:00",
    "2026-04-23T12:00",
    "2026-10-03T06:00",
    "2026-10-24T12:00",
    "2026-10-29T12:00",
    "2026-10-31T20:00",
]


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    ranges = st.lists(numbers, min_size=2, max_size=2, unique=True).map(lambda pair: f"{min(pair)}-{max(pair)}")
    return st.one_of(
        st.just("*"),
        numbers.map(str),
        st.lists(numbers, min_size=2, max_size=3).map(lambda some: ",".join(map(str, some))),
        ranges,
        st.sampled_from([2, 3, 7, 15]).map(lambda step: f"*/{step}"),
        st.tuples(ranges, st.integers(1, 5)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    )


often_star = st.just("*") | st.just("*")
schedules = st.tuples(
    fields(0, 59), fields(0, 4) | fields(0, 23), often_star | fields(1, 31), often_star | st.just("2-11"),
    often_star | fields(0, 7),
).map(" ".join)  # fmt: skip
durations = st.sampled_from([1, 60, 90, 1800, HOUR, 3 * HOUR, 10 * HOUR, DAY, 30 * HOUR])
some_window = st.builds(Window, schedules, durations, st.sampled_from(ZONES))
starts = st.sampled_from(MOMENTS).map(at)


@given(st.lists(some_window, min_size=1, max_size=3), starts, st.lists(st.floats(0, 2 * DAY), max_size=30))
def test_what_is_remembered_changes_no_answer(some, start, steps):
    """Asked in any order it answers as one that was never asked before."""
    windows = Windows(tuple(some))
    for step in steps:
        assert windows.closed_until(start + step) == Windows(tuple(some)).closed_until(start + step)


@given(st.lists(some_window, min_size=1, max_size=2), starts)
def test_what_it_says_about_the_next_opening_is_true(some, start):
    windows = Windows(tuple(some))
    opens_at = windows.closed_until(start)
    if opens_at is not None:
        assert opens_at > start
        assert windows.closed_until(math.nextafter(opens_at, 0)) == opens_at
        assert windows.closed_until(opens_at) is None


def test_an_answer_is_looked_up_once_while_it_holds(monkeypatch):
    windows, asked = Windows((window("0 2 * * *"),)), []
    look_up = windows._recompute
    monkeypatch.setattr(windows, "_recompute", lambda now: (asked.append(now), look_up(now)))
    for second in range(3 * HOUR):
        windows.closed_until(at("2026-05-01T01:00") + second)
    assert asked == [at("2026-05-01T01:00"), at("2026-05-01T02:00"), at("2026-05-01T03:00")]


# -- against a model that looks at every minute -----------------------------------------------------------------------


@given(some_window, starts)
@settings(max_examples=25, deadline=None)
@example(Window("30 2 * * *", HOUR, BERLIN), at("2026-10-24T12:00"))
def test_it_is_open_when_a_scan_of_all_minutes_says_so(one, start):
    wall = Wall(one.time_zone)
    begin, end = int(start) - one.duration_seconds, int(start) + 30 * HOUR
    opened = wall.openings(one.schedule, begin // 60 * 60, end)
    windows = Windows((one,))
    some = opened[:: len(opened) // 50 + 1]
    edges = {moment + shift for time in some for moment in (time, time + one.duration_seconds) for shift in (-1, 0, 1)}
    for now in sorted(edges | set(range(int(start), end, 997))):
        if start <= now < end:
            latest = bisect_right(opened, now)
            is_open = latest > 0 and now < opened[latest - 1] + one.duration_seconds
            assert (windows.closed_until(now) is None) == is_open, datetime.fromtimestamp(now, wall.zone)
