"""What is known of a taint over time: kept small, read back exactly, refused when it is not ours."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.engine.history import (
    MAX_SPANS,
    MAX_TEXT_LENGTH,
    Span,
    TaintHistory,
    decode_histories,
    encode_histories,
    read_histories,
    until_now,
)
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.model import Node, Taint


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


def test_one_that_appears_with_an_old_stamp_counts_from_it_and_says_when_it_appeared():
    made = TaintHistory.begin("940", 100.0, stamp=10.0, is_first=False)
    assert (made.added_at, made.spans[0].since, made.appeared_at) == (10.0, 10.0, 100.0)
    assert read_back(made) == made


def test_one_that_was_added_again_in_a_gap_says_so_too():
    again = TaintHistory.begin("940", 100.0, stamp=10.0).seen("940", 20.0, 300.0, gap=True)
    assert (again.added_at, again.appeared_at) == (20.0, 300.0)


@pytest.mark.parametrize(("stamp", "is_first"), [(10.0, True), (None, False), (100.0, False), (200.0, False)])
def test_nothing_more_is_known_of_the_first_or_with_a_stamp_that_is_not_old(stamp, is_first):
    made = TaintHistory.begin("940", 100.0, stamp=stamp, is_first=is_first)
    assert made.appeared_at is None
    assert "appeared" not in encode_histories({"k:NoExecute": made})


def test_a_time_of_appearing_in_the_future_counts_as_now():
    made = TaintHistory.begin("940", 1e9, stamp=10.0, is_first=False)
    assert until_now({"k": made}, 100.0)["k"].appeared_at == 100.0


def test_another_value_is_added():
    assert history(("980", 10.0), ("940", 20.0)).spans == (Span("980", 10.0), Span("940", 20.0))


def test_a_text_that_is_too_long_counts_as_absent():
    assert read_histories("x" * (MAX_TEXT_LENGTH + 1)) == ({}, [f"it is longer than {MAX_TEXT_LENGTH} characters"])


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


# -- timeAdded ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stamp", "added"), [(None, 10.0), (4.0, 4.0), (99.0, 10.0), (-5.0, 0.0), (4e12, 10.0)])
def test_when_a_taint_was_added_that_is_first_seen(stamp, added):
    made = TaintHistory.begin("980", 10.0, stamp)
    assert (made.added_at, made.stamp) == (added, stamp)


@pytest.mark.parametrize("stamp", [None, 1.0, 9.0, 20.0, 4e12])
def test_while_it_is_watched_another_stamp_moves_nothing(stamp):
    made = TaintHistory.begin("980", 10.0, 9.0).seen("980", stamp, 30.0, gap=False)
    assert (made.added_at, made.spans, made.stamp) == (9.0, (Span("980", 9.0),), stamp)


@pytest.mark.parametrize(("stamp", "added"), [(20.0, 20.0), (99.0, 30.0)])
def test_after_a_gap_a_later_stamp_is_another_taint(stamp, added):
    made = history(("980", 5.0)).seen("980", 9.0, 10.0, gap=False).seen("940", stamp, 30.0, gap=True)
    assert made == TaintHistory.begin("940", 30.0, stamp, is_first=False)
    assert made.added_at == added


@pytest.mark.parametrize("first", [None, 9.0])
def test_another_taint_with_a_stamp_of_when_the_one_before_was_seen_counts_from_now(first):
    made = TaintHistory.begin("980", 10.0, first).observe("940", 50.0).seen("900", 20.0, 90.0, gap=True)
    assert (made.added_at, made.spans, made.stamp) == (90.0, (Span("900", 90.0),), 20.0)


def test_so_does_one_with_a_stamp_of_before_the_last_one_appeared():
    made = TaintHistory.begin("980", 50.0, 10.0, is_first=False).seen("900", 20.0, 90.0, gap=True)
    assert (made.added_at, made.stamp) == (90.0, 20.0)


@pytest.mark.parametrize("stamp", [None, 1.0, 9.0])
def test_after_a_gap_no_other_stamp_is(stamp):
    made = TaintHistory.begin("980", 10.0, 9.0).seen("980", stamp, 30.0, gap=True)
    assert (made.added_at, made.spans) == (9.0, (Span("980", 9.0),))


def test_a_clock_that_runs_ahead_is_compared_with_itself_only():
    """Written as 12.0 at 10.0, and read again after a restart: the same taint."""
    made = TaintHistory.begin("980", 10.0, 12.0).observe("940", 47.0)
    assert read_back(made).seen("940", 12.0, 50.0, gap=True) == made


@pytest.mark.parametrize(("stamp", "is_new"), [(10.5, False), (11.5, True)])
def test_the_first_stamp_of_a_taint_is_compared_with_when_it_was_seen(stamp, is_new):
    made = TaintHistory.begin("980", 10.0).seen("980", stamp, 30.0, gap=True)
    assert (made.added_at == stamp) == is_new


# -- one condition -----------------------------------------------------------------------------------------------------


def test_a_taint_that_replaces_another_goes_on_from_it():
    made = TaintHistory.begin("", 50.0).continuing(history(("", 10.0)))
    assert (made.added_at, made.spans) == (10.0, (Span("", 10.0),))


def test_it_goes_on_from_none_that_is_younger():
    made = TaintHistory.begin("", 50.0)
    assert made.continuing(history(("", 60.0))) is made


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


def test_a_version_that_one_of_two_orders_needs_is_kept():
    """By text 100 lies below 91 and 97, by number above: to VersionGt it was the highest."""
    values = [
        "5.15.0-100-generic",
        *(f"5.15.0-{91 + at % 2}-generic" for at in range(MAX_SPANS + 5)),
        "5.15.0-097-generic",
    ]
    made = history(*[(value, float(at)) for at, value in enumerate(values)])
    assert made.spans[0].value == values[0]
    assert not made.forgotten


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
        '{"k:NoExecute": {"x": ' + "[" * 20_000 + "]" * 20_000 + "}}",
    ],
)
def test_what_we_did_not_write_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        decode_histories(text)


def many(number: int, values: int) -> dict[str, TaintHistory]:
    return {
        f"example.com/{'k' * 40}-{index}:NoExecute": history(*[(f"{'v' * 50}-{at}", float(at)) for at in range(values)])
        for index in range(number)
    }


@pytest.mark.parametrize(("taints", "values"), [(60, MAX_SPANS), (300, MAX_SPANS), (2_000, 1)])
def test_what_is_written_can_always_be_read(taints, values):
    text = encode_histories(many(taints, values))
    found = decode_histories(text)
    assert len(text) <= MAX_TEXT_LENGTH
    assert all(one.value == f"{'v' * 50}-{values - 1}" for one in found.values())
    assert len(found) == taints or taints == 2_000


def test_values_that_do_not_fit_are_forgotten_the_oldest_first():
    found = decode_histories(encode_histories(many(100, MAX_SPANS)))
    assert all(one.forgotten for one in found.values())
    assert {one.added_at for one in found.values()} == {0.0}


def test_a_time_before_1970_makes_nothing_unreadable():
    made = {"a:x": TaintHistory.begin("1", 10.0, -62135596800.0), "b:x": history(("2", 5.0))}
    assert decode_histories(encode_histories(made)) == made


def test_one_entry_that_cannot_be_read_costs_no_other():
    good = history(("980", 10.0))
    text = encode_histories({"good:x": good})[:-1] + ',"bad:x":{"added":1.0,"values":[]}}'
    found, faults = read_histories(text)
    assert found == {"good:x": good}
    assert faults == ["'bad:x': its values are missing, too many or out of order"]


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


# -- what two processes saw -------------------------------------------------------------------------------------------


def spans(*values: tuple[str, float]) -> TaintHistory:
    return TaintHistory(values[0][1], tuple(Span(value, since) for value, since in values))


def test_a_short_recovery_that_one_process_missed_is_kept():
    written, seen = spans(("940", 138), ("0", 181)), spans(("940", 138), ("980", 196), ("0", 197))
    assert [one.value for one in written.extended(seen).spans] == ["940", "0", "980", "0"]


def test_the_same_values_by_another_clock_are_not_seen_twice():
    written, seen = spans(("940", 138), ("980", 175), ("0", 176)), spans(("940", 140), ("980", 177), ("0", 178))
    assert written.extended(seen) == written


def test_a_value_that_is_not_written_yet_is_added():
    written, seen = spans(("940", 138), ("980", 175)), spans(("940", 138), ("980", 175), ("0", 180))
    assert written.extended(seen) == seen


@given(st.lists(st.sampled_from(["0", "940", "980"]), min_size=1, max_size=8), st.floats(-2, 2))
def test_who_saw_the_same_adds_nothing(values, skew):
    made = [value for index, value in enumerate(values) if index == 0 or value != values[index - 1]]
    written = spans(*((value, 100.0 + 10 * index) for index, value in enumerate(made)))
    seen = spans(*((value, 100.0 + 10 * index + skew) for index, value in enumerate(made)))
    assert [one.value for one in written.extended(seen).spans] == made


@pytest.mark.parametrize(
    ("mine", "theirs", "precedes"),
    [
        ([("980", 7), ("900", 23)], [("900", 7)], True),
        ([("980", 7), ("900", 23)], [("980", 7), ("900", 25)], False),
        ([("980", 7), ("900", 23)], [("940", 7)], False),
        ([("900", 23)], [("980", 7), ("900", 23)], False),
    ],
)
def test_who_saw_more_before_the_same_values_precedes(mine, theirs, precedes):
    assert spans(*mine).precedes(spans(*theirs)) is precedes


def test_nobody_precedes_what_was_cut_off():
    cut = TaintHistory(7.0, (Span("900", 7.0),), forgotten=True)
    assert not spans(("980", 7), ("900", 23)).precedes(cut)


def test_a_follower_keeps_what_the_leader_has_not_seen():
    """A leader that starts after the value fell counts it from ``timeAdded``, and its follower knows better."""
    state, taint = NodeState("n1"), Taint("sla", "980")
    state.update(Node("n1", "u", {}, ((taint, 7.0),), 1, ""), 8.0, adopt=True, gap=True)
    fallen = ((Taint("sla", "900"), 7.0),)
    state.update(Node("n1", "u", {}, fallen, 2, ""), 23.0, adopt=True, gap=False)
    written = encode_histories({"sla:NoExecute": history(("900", 7.0))})
    state.update(Node("n1", "u", {}, fallen, 3, written), 47.0, adopt=True, gap=False)
    assert [(one.value, one.since) for one in state.histories["sla:NoExecute"].spans] == [("980", 7.0), ("900", 23.0)]
