"""Schedules, durations and time zones of eviction windows, and the faults of invalid ones."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taintwarden.api.window_schedules import MAX_SCHEDULE_LENGTH, check_windows, parse_duration
from taintwarden.engine.limits.windows import Windows
from taintwarden.engine.policy import Window


class Written(NamedTuple):
    schedule: str = "0 2 * * *"
    duration: str = "4h"
    time_zone: str = "Europe/Berlin"


def faults(*windows: Written) -> list[str]:
    return [str(error) for error in check_windows(windows)]


def fault(**fields: str) -> str:
    (only,) = faults(Written(**fields))
    return only


def schedule_fault(schedule: str) -> str:
    return fault(schedule=schedule, duration="1m").removeprefix("[0].schedule: Invalid value: ")


def zone_fault(name: str) -> str:
    return fault(time_zone=name).removeprefix("[0].timeZone: Invalid value: ")


# -- durations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("4h", 14400), ("90m", 5400), ("45s", 45), ("1h30m", 5400), ("1h0m1s", 3601), ("0h5m", 300), ("744h", 2678400)],
)
def test_a_duration_is_hours_minutes_and_seconds(text, seconds):
    assert parse_duration(text) == seconds


UNREADABLE = ["", "0", "4", "h", "4 h", " 4h", "4h\n", "-4h", "+4h", "4H", "٤h", "1d", "1.5h", "30m1h", "1h1h", "100ms"]
TOO_SHORT_OR_LONG = ["0s", "0h0m", "745h", "744h1s", "9999999h", "99999999s", "9" * 5000 + "s"]


@pytest.mark.parametrize("text", UNREADABLE + TOO_SHORT_OR_LONG)
def test_other_texts_are_no_durations(text):
    assert parse_duration(text) is None


@given(st.integers(1, 743), st.integers(0, 59), st.integers(0, 59))
def test_every_duration_is_read_as_written(hours, minutes, seconds):
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1d", "must be in hours, minutes and seconds; write 24h"),
        ("0s", "must be between 1s and 744h, inclusive"),
        ("745h", "must be between 1s and 744h, inclusive"),
        ("32d", "write 4h or 1h30m"),
        ("1.5h", "must be a duration in whole hours, minutes and seconds; write 4h or 1h30m"),
        ("", "write 4h or 1h30m"),
    ],
)
def test_a_bad_duration_is_reported_with_what_to_write(text, said):
    assert fault(duration=text).startswith("[0].duration: ")
    assert fault(duration=text).endswith(said)


# -- schedules --------------------------------------------------------------------------------------------------------

GOOD_SCHEDULES = [
    "0 2 * * *",
    "*/15 2-4 * * *",
    "0,30 1-5/2 * * MON-FRI",
    "0 2 * * mon,WED",
    "0 2 * * 7",
    "0 2 * JAN-MAR,dec *",
    "0 0 29 2 *",
    "0 0 29 2 1",
    "0 0 31 2 MON",
    "0 0 * 2 MON#5",
    "0 0 L * *",
    "0 0 LW * *",
    "0 0 * * 5L",
    "  0  2\t* * *  ",
    ",".join(map(str, range(60))) + " 2 * * *",
]


@pytest.mark.parametrize("schedule", GOOD_SCHEDULES)
def test_a_schedule_of_cron_is_accepted(schedule):
    assert faults(Written(schedule, "30s")) == []


@pytest.mark.parametrize("schedule", GOOD_SCHEDULES)
def test_an_accepted_schedule_opens_a_window(schedule):
    assert Windows((Window(schedule, 30, "Europe/Berlin"),)).closed_until(1.8e9 + 0.5) != float("inf")


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("60 2 * * *", "must not have 60 as the minute; write *, or 0 to 59"),
        ("0 24 * * *", "must not have 24 as the hour; write *, or 0 to 23"),
        ("0 2 0 * *", "must not have 0 as the day of the month; write *, or 1 to 31"),
        ("0 2 * 13 *", "must not have 13 as the month; write *, or 1 to 12"),
        ("0 2 * * 8", "must not have 8 as the day of the week; write *, or 0 to 7"),
        ("0 2 * * Monday", "must not have Monday as the day of the week"),
        ("0 */0 * * *", "must not have */0 as the hour"),
        ("0 2 , * *", "must not have , as the day of the month"),
        ("0 02h * * *", "must not have 02h as the hour"),
        ("0 -2 * * *", "must not have -2 as the hour"),
        ("0 2 ? * *", "must not have ? as the day of the month; write *"),
        ("0 22-6 * * *", "a range cannot run backwards: write it as two, as in 22-23,0-6"),
        ("0 2 * * FRI-MON", "a range cannot run backwards"),
        ("5-5/2 2 * * *", "must not have 5-5/2 as the minute"),
    ],
)
def test_the_invalid_field_of_a_schedule_is_named(schedule, said):
    assert said in schedule_fault(schedule)


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("", "five fields, not 0:"),
        ("0 2 * *", "five fields, not 4:"),
        ("0 0 2 * * *", "five fields, not 6:"),
        ("@daily", "five fields, not 1:"),
        ("TZ=Asia/Tokyo 0 2 * * *", "five fields, not 6:"),
    ],
)
def test_a_schedule_has_five_fields(schedule, said):
    assert said in schedule_fault(schedule)


@pytest.mark.parametrize("schedule", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 4 */2", "* * */20 * 1L"])
def test_a_schedule_without_any_date_never_opens(schedule):
    assert "must match a date that exists" in schedule_fault(schedule)


@given(st.text(alphabet="0123456789*/,-#LWMONFRI @=T?\n٣²", max_size=MAX_SCHEDULE_LENGTH) | st.text(max_size=40))
def test_no_text_raises_in_the_check_of_a_schedule(text):
    list(check_windows((Written(text),)))


@given(st.lists(st.text(alphabet="0123456789*/,-#LW", min_size=1, max_size=5), min_size=5, max_size=5))
def test_no_five_fields_raise_in_the_check_of_a_schedule(fields):
    list(check_windows((Written(" ".join(fields), "1s"),)))


# -- zones ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Asia/Calcutta", "Etc/GMT+5", "Australia/Lord_Howe"]
)
def test_a_name_of_the_database_is_a_zone(name):
    assert faults(Written(time_zone=name)) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("EUROPE/BERLIN", "did you mean Europe/Berlin?"),
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        ("Europe/Berlin ", "did you mean Europe/Berlin?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("New York", "did you mean America/New_York?"),
        ("utc", "did you mean UTC?"),
        ("", "write for example Europe/Berlin or UTC"),
        ("Nowhere/Xyzzyx", "write for example Europe/Berlin or UTC"),
    ],
)
def test_an_unknown_zone_is_reported_with_a_suggestion(name, said):
    assert said in zone_fault(name)


@pytest.mark.parametrize(
    "name", ["../etc/passwd", "/etc/passwd", "/usr/share/zoneinfo/UTC", "Europe", "..", "localtime"]
)
def test_a_path_is_no_zone(name):
    assert "must be a time zone" in zone_fault(name)


@given(st.text(max_size=64))
@settings(max_examples=15)  # each is compared with the names of all zones
def test_no_text_raises_in_the_check_of_a_zone(name):
    list(check_windows((Written(time_zone=name),)))


# -- several windows --------------------------------------------------------------------------------------------------


def test_every_fault_of_every_window_is_found():
    found = faults(Written(), Written("60 2 * * *", "1d", "CEST"))
    assert [error.split(":")[0] for error in found] == ["[1].schedule", "[1].duration", "[1].timeZone"]
