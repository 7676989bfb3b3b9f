"""What is known of a taint over time: kept small, read back exactly, refused when it is not ours."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.engine.history import (
    MAX_SPANS,
    Span,
    TaintHistory,
    decode_histories,
    encode_histories,
)


def history(*values: tuple[str, float]) -> TaintHistory:
    made = TaintHistory.begin(*values[0])
    for value, since in values[1:]:
        made = made.observe(value, since)
    return made


def read_back(made: TaintHistory) -> TaintHistory:
    return decode_histories(encode_histories({"k:NoExecute": made}))["k:NoExecute"]


# -- observing --------------------------------------------------------------------------------------------------------


def test_it_begins_with_the_taint():
    made = TaintHistory.begin("980", 10.0)
    assert (made.added_at, made.value, made.spans, made.forgotten) == (10.0, "980", (Span("980", 10.0),), False)


def test_another_value_is_added():
    assert history(("980", 10.0), ("940", 20.0)).spans == (Span("980", 10.0), Span("940", 20.0))


def test_the_same_value_changes_nothing():
    made = history(("980", 10.0))
    assert made.observe("980", 99.0) is made


def test_a_value_that_comes_back_is_another_span():
    assert [span.value for span in history(("a", 1.0), ("b", 2.0), ("a", 3.0)).spans] == ["a", "b", "a"]


def test_a_clock_that_steps_back_does_not_reorder_the_past():
    assert history(("980", 100.0), ("940", 50.0)).spans[-1] == Span("940", 100.0)


def test_times_are_kept_to_the_millisecond_and_never_earlier():
    made = history(("980", 1.00001), ("940", 2.9999))
    assert [span.since for span in made.spans] == [1.001, 3.0]


@given(st.floats(0, 4e9), st.text(max_size=5), st.floats(0, 4e9), st.text(max_size=5))
def test_what_is_read_back_is_what_was_decided_on(first, value, second, other):
    made = TaintHistory.begin(value, first).observe(other, second)
    assert read_back(made) == made


# -- an earlier addition ----------------------------------------------------------------------------------------------


def test_an_earlier_addition_is_taken_over():
    made = history(("980", 10.0)).added_no_later_than(5.0)
    assert (made.added_at, made.spans) == (5.0, (Span("980", 5.0),))


@pytest.mark.parametrize("at", [10.0, 11.0, 1e9])
def test_a_later_addition_changes_nothing(at):
    made = history(("980", 10.0))
    assert made.added_no_later_than(at) is made


def test_values_since_then_keep_their_times():
    made = history(("980", 10.0), ("940", 20.0)).added_no_later_than(5.0)
    assert made.spans == (Span("980", 5.0), Span("940", 20.0))


def test_an_addition_before_a_forgotten_past_does_not_stretch_the_first_value_known():
    made = TaintHistory(5.0, (Span("940", 20.0),), forgotten=True).added_no_later_than(1.0)
    assert (made.added_at, made.spans) == (1.0, (Span("940", 20.0),))


# -- bounds -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 999).map(str) | st.sampled_from(["high", "1.2.3", ""]), min_size=1, max_size=200))
def test_it_never_grows_beyond_its_bound(values):
    made = history(*[(value, float(at)) for at, value in enumerate(values)])
    assert len(made.spans) <= MAX_SPANS
    assert made.value == values[-1]
    assert read_back(made) == made


def test_a_jittering_value_keeps_its_extremes():
    values = [(str(900 + at % 50), float(at)) for at in range(500)]
    kept = {span.value for span in history(*values).spans}
    assert "949" in kept or int(max(kept)) >= int(values[-1][0])


def test_what_is_left_out_is_told():
    made = history(*[(str(900 + at % 7), float(at)) for at in range(100)])
    assert made.spans[0].since > made.added_at or any(span.until is not None for span in made.spans)


def test_values_of_several_kinds_are_not_thinned_out_but_cut_off():
    values = [(f"word-{at}", float(at)) for at in range(MAX_SPANS + 3)]
    made = history(*values)
    assert made.forgotten
    assert [span.value for span in made.spans] == [value for value, _ in values[-MAX_SPANS:]]


def test_versions_are_thinned_out_by_their_own_order():
    values = [(f"1.{at % 5}.0", float(at)) for at in range(MAX_SPANS + 5)]
    made = history(*values)
    assert not made.forgotten
    assert len(made.spans) < MAX_SPANS


# -- the annotation ---------------------------------------------------------------------------------------------------


def test_nothing_is_an_empty_text():
    assert encode_histories({}) == ""
    assert decode_histories("") == {}


def test_it_is_json_that_people_can_read():
    text = encode_histories({"sla:NoExecute": history(("980", 10.0), ("940", 20.5))})
    assert json.loads(text) == {"sla:NoExecute": {"added": 10.0, "values": [["980", 10.0, None], ["940", 20.5, None]]}}


def test_it_is_the_same_text_whatever_the_order():
    one, two = history(("1", 1.0)), history(("2", 2.0))
    assert encode_histories({"a:x": one, "b:x": two}) == encode_histories({"b:x": two, "a:x": one})


@pytest.mark.parametrize(
    "text",
    [
        "not JSON",
        "[]",
        "7",
        '{"k:NoExecute": 7}',
        '{"k:NoExecute": {}}',
        '{"k:NoExecute": {"added": 1.0}}',
        '{"k:NoExecute": {"added": 1.0, "values": []}}',
        '{"k:NoExecute": {"added": "1", "values": [["a", 1.0]]}}',
        '{"k:NoExecute": {"added": 1.0, "values": [["a"]]}}',
        '{"k:NoExecute": {"added": 1.0, "values": [["a", 2.0], ["b", 1.0]]}}',
        '{"k:NoExecute": {"added": 5.0, "values": [["a", 1.0]]}}',
        '{"k:NoExecute": {"added": 1.0, "values": [[7, 1.0]]}}',
        '{"k:NoExecute": {"added": 1e999, "values": [["a", 1.0]]}}',
        json.dumps({"k:NoExecute": {"added": 0.0, "values": [["a", 0.0]] * (MAX_SPANS + 1)}}),
    ],
)
def test_what_we_did_not_write_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        decode_histories(text)


@given(st.text(max_size=50))
def test_any_text_is_read_or_refused(text):
    try:
        decoded = decode_histories(text)
    except ValueError:
        return
    assert all(one.spans for one in decoded.values())


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["k:NoExecute", "added", "values", "forgotten"]), inner)
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(value):
    with contextlib.suppress(ValueError):
        decode_histories(json.dumps(value))
