"""Moments as text, whatever they are."""

import math
import re

import pytest

from taintwarden.engine import rfc3339


def test_a_time_is_rfc_3339_in_utc_to_the_second():
    assert rfc3339.at(1_700_000_000.999) == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (1_700_000_000.0, "2023-11-14T22:13:20.000000Z"),
        (1_700_000_000.123, "2023-11-14T22:13:20.123000Z"),
        (1e30, "9999-12-31T23:59:59.000000Z"),
    ],
)
def test_an_exact_time_has_microseconds(moment, text):
    assert rfc3339.exactly(moment) == text


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (1_700_000_000.0, "2023-11-14T22:13:20Z"),
        (1_699_999_999.999_999, "2023-11-14T22:13:20Z"),
        (1_700_000_000.000_000_5, "2023-11-14T22:13:20Z"),
        (1_700_000_000.4, "2023-11-14T22:13:21Z"),
        (1e30, "9999-12-31T23:59:59Z"),
    ],
)
def test_the_end_of_a_wait_is_never_written_too_early(moment, text):
    assert rfc3339.until(moment) == text


@pytest.mark.parametrize("moment", [-1e18, -1e11, -0.5, 1e12, 1e30, math.inf, -math.inf, math.nan])
def test_every_time_can_be_written_however_absurd(moment):
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", rfc3339.at(moment))
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z", rfc3339.exactly(moment))


def test_a_time_beyond_the_calendar_is_written_as_its_end():
    assert rfc3339.at(1e30) == rfc3339.at(math.nan) == "9999-12-31T23:59:59Z"
    assert rfc3339.at(-1e18) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "moment"),
    [("2023-11-14T22:13:20Z", 1_700_000_000.0), ("2023-11-14T22:13:20", None), ("later", None), (None, None)],
)
def test_time_without_a_zone_cannot_be_parsed(text, moment):
    assert rfc3339.read_time(text) == moment
