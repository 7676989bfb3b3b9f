"""How pods opt out: by the words of three annotations, and by durations as Go reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.api.opt_outs import (
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    SAFE_TO_EVICT,
    OptOuts,
    check_opt_outs,
    opt_outs,
    parse_go_duration,
)


def meaning(**annotations: str) -> OptOuts:
    named = {"evict": DO_NOT_EVICT, "disrupt": DO_NOT_DISRUPT, "safe": SAFE_TO_EVICT}
    given = {named[name]: value for name, value in annotations.items()}
    return opt_outs(lambda name: given.get(name, ""))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, OptOuts()),
        ({"evict": "true"}, OptOuts(evictions=True)),
        ({"evict": "True"}, OptOuts()),
        ({"evict": "yes"}, OptOuts()),
        ({"disrupt": "true"}, OptOuts(disruptions=True)),
        ({"disrupt": "4h"}, OptOuts(protected_seconds=14_400.0)),
        ({"disrupt": "4"}, OptOuts()),
        ({"safe": "false"}, OptOuts(disruptions=True)),
        ({"safe": "true"}, OptOuts()),
        ({"safe": "False"}, OptOuts()),
    ],
    ids=str,
)
def test_an_annotation_opts_out_by_its_value(annotations, expected):
    assert meaning(**annotations) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("1h", 3_600),
        ("2h30m", 9_000),
        ("1h30m45s", 5_445),
        ("1.5h", 5_400),
        (".5s", 0.5),
        ("1.s", 1),
        ("+5m", 300),
        ("30m2h", 9_000),
        ("100ms", 0.1),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("2562047h", 2_562_047 * 3_600),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text, seconds):
    assert parse_go_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0s",
        "-5m",
        "4",
        "h",
        "4 h",
        "4H",
        "4d",
        "1h-30m",
        "4h ",
        "4h\n",
        "٤h",
        "1e3s",
        ".s",
        "2562048h",
        "9" * 90 + "h",
    ],
)
def test_a_text_that_is_no_positive_duration_is_no_value(text):
    assert parse_go_duration(text) is None


@given(st.text(max_size=200))
def test_any_text_is_read_or_not(text):
    found = parse_go_duration(text)
    assert found is None or found > 0


@pytest.mark.parametrize("value", ["true", "false", ""])
@pytest.mark.parametrize("name", [DO_NOT_EVICT, DO_NOT_DISRUPT, SAFE_TO_EVICT])
def test_known_values_have_no_fault(name, value):
    assert list(check_opt_outs({name: value})) == []


def test_a_duration_has_no_fault_where_it_has_an_effect():
    assert list(check_opt_outs({DO_NOT_DISRUPT: "4h"})) == []
    assert len(list(check_opt_outs({DO_NOT_EVICT: "4h"}))) == 1


@pytest.mark.parametrize("value", ["True", "yes", "4 hours", "1"])
@pytest.mark.parametrize("name", [DO_NOT_EVICT, DO_NOT_DISRUPT, SAFE_TO_EVICT])
def test_other_values_are_named_with_what_has_an_effect(name, value):
    [fault] = check_opt_outs({name: value})
    assert fault.path == f"metadata.annotations[{name}]"
    assert (fault.value, fault.reason) == (value, "has no effect")
    assert "in quotes" in fault.remedy


def test_a_value_that_is_no_text_is_a_fault():
    [fault] = check_opt_outs({DO_NOT_EVICT: True})
    assert fault.reason == "must be a string"
