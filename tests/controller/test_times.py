"""Whole seconds are cut off: what they mean at the latest, and never later than now."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.controller.decoding.times import latest_moment, moment
from taintwarden.engine import rfc3339

TEN = 1_699_999_990.0  # 2023-11-14T22:13:10Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-11-14T22:13:10Z", TEN),
        ("2023-11-15T00:13:10.25+02:00", TEN + 0.25),
        ("2033-01-01T00:00:00Z", 1_988_150_400.0),
    ],
)
def test_a_timestamp_in_seconds(text, expected):
    assert moment(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-11-14T22:13:10Z", TEN + 1),
        ("2023-11-14T22:13:10+00:00", TEN + 1),
        ("2023-11-15T00:13:10+02:00", TEN + 1),
        ("2023-11-14T22:13:10.25Z", TEN + 0.25),
        ("2023-11-14T22:13:10.123456Z", TEN + 0.123456),
        ("2023-11-14T22:13:10.123456789Z", TEN + 0.123456),
        ("2023-11-14T22:13:19Z", 1_700_000_000.0),
        ("2099-01-01T00:00:00Z", 4_070_908_801.0),
        ("0001-01-01T00:00:00Z", -62135596799.0),
    ],
)
def test_a_time_in_seconds_is_read_as_the_latest_moment_that_it_can_mean(text, expected):
    assert latest_moment(text) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("text", ["", "now", "2023-11-14T22:13:10", "2023-13-14T22:13:10Z", "22:13", "1700000000"])
def test_an_invalid_timestamp_is_an_error(text):
    with pytest.raises(ValueError, match=r"\w"):
        latest_moment(text)


@given(st.integers(0, 4 * 10**12).map(lambda milliseconds: milliseconds / 1000))
def test_a_time_that_is_read_is_never_before_the_event(moment):
    """A time is written cut off to the second: what is read from it is never earlier than what happened."""
    assert moment < latest_moment(rfc3339.at(moment)) <= moment + 1
