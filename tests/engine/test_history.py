"""History of a taint: when it counts from, read back exactly, refused unless Taintwarden wrote it."""

import contextlib
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.engine.history import (
    MAX_FAULTS,
    MAX_SPANS,
    MAX_TEXT_LENGTH,
    MAX_VALUES,
    Span,
    TaintHistory,
    _needed,
    _together,
    decode_histories,
    encode_histories,
    joined,
    observed,
    read_histories,
    until_now,
)
from taintwarden.engine.numeric import parse_integer


def history(*values: tuple[str, float]) -> TaintHistory:
    made = TaintHistory.begin(*values[0])
    for value, since in values[1:]:
        made = made.with_value(value, since)
    return made


def steps(made: TaintHistory) -> list[tuple[str, float]]:
    return [(span.values[0], span.since) for span in made.spans]


def read_back(made: TaintHistory) -> TaintHistory:
    return decode_histories(encode_histories({"k:NoExecute": made}))["k:NoExecute"]


# -- from when a taint counts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "absent_at", "added"),
    [
        (None, 100.0, 100.0),
        (40.0, 100.0, 100.0),
        (40.0, 60.0, 60.0),
        (80.0, 60.0, 80.0),
        (40.0, float("-inf"), 40.0),
        (None, 60.0, 100.0),
        (4e12, 60.0, 100.0),
        (-5.0, float("-inf"), 0.0),
    ],
    ids=["watched", "watched-old", "gap-old", "gap", "unknown", "gap-no-stamp", "future", "before-1970"],
)
def test_a_new_taint_counts_from_the_later_of_its_stamp_and_when_it_was_not_there(stamp, absent_at, added):
    made = TaintHistory.begin("940", 100.0, stamp, absent_at)
    assert (made.added_at, made.held_since, made.value) == (added, added, "940")


@pytest.mark.parametrize("stamp", [None, 1.0, 9.0, 20.0, 4e12])
def test_while_it_is_watched_another_stamp_moves_nothing(stamp):
    made = TaintHistory.begin("980", 10.0, 9.0).seen("980", stamp, 30.0)
    assert made.added_at == 9.0


@pytest.mark.parametrize(
    ("stamp", "gap_from", "added"), [(25.0, 20.0, 25.0), (15.0, 20.0, 20.0), (30.5, 20.0, 30.0), (12.0, 0.0, 12.0)]
)
def test_after_a_gap_a_later_stamp_is_another_taint(stamp, gap_from, added):
    made = TaintHistory.begin("980", 10.0, 9.0).seen("980", stamp, 30.0, gap_from)
    assert steps(made) == [("980", added)]


def test_a_later_stamp_says_when_the_taint_was_added_and_not_when_its_value_began():
    made = TaintHistory.begin("970", 0.0, 0.0).seen("900", 100.0, 400.0, 90.0)
    assert (made.added_at, made.held_since, made.values) == (100.0, 400.0, ("900",))
    assert read_back(made) == made


@pytest.mark.parametrize("stamp", [300.0, 599.0, 600.0])
def test_a_stamp_before_the_last_recorded_value_moves_nothing(stamp):
    made = history(("970", 0.0), ("980", 600.0)).seen("900", stamp, 3605.0, 3600.0)
    assert steps(made) == [("970", 0.0), ("980", 600.0), ("900", 3605.0)]


@pytest.mark.parametrize("value", ["900", "unknown"])
def test_a_stamp_in_the_future_moves_nothing_and_hides_no_later_one(value):
    made = history(("980", 10.0), ("900", 20.0)).seen(value, 4000.0, 202.0, 200.0)
    assert made.added_at == 10.0
    assert made.values == (("unknown",) if value == "unknown" else ()) + ("900", "980")
    again = made.seen(value, 250.0, 302.0, 240.0)
    assert again.added_at == 250.0, "a real one counts later"


def test_a_stamp_that_was_in_the_future_when_it_was_seen_is_none_of_a_later_gap():
    made = TaintHistory.begin("980", 10.0, 9.0).seen("900", 83.0, 77.0)
    assert steps(made.seen("900", 83.0, 111.0, 110.0)) == [("980", 9.0), ("900", 77.0)]


def test_a_stamp_that_was_seen_before_a_gap_is_no_later_one_though_its_second_has_not_ended():
    made = TaintHistory.begin("980", 10.0, 9.0).seen("980", 30.0, 29.5)
    assert made.seen("980", 30.0, 29.6, gap_from=29.5).added_at == 9.0


@pytest.mark.parametrize(("gap", "added"), [(True, 25.0), (False, 9.0)])
def test_a_known_taint_was_added_again_only_if_changes_may_be_missing(gap, added):
    known = TaintHistory.begin("980", 10.0, 9.0)
    assert observed(known, "980", 25.0, 30.0, absent_at=20.0, gap=gap).added_at == added


def test_the_newest_stamp_is_remembered_though_an_older_one_follows():
    made = TaintHistory.begin("980", 10.0, 9.0).seen("980", 20.0, 30.0).seen("980", 15.0, 40.0)
    assert made.stamp == 20.0


@pytest.mark.parametrize("stamp", [None, 1.0, 9.0])
def test_after_a_gap_no_other_stamp_is(stamp):
    made = TaintHistory.begin("980", 10.0, 9.0).seen("980", stamp, 30.0, 20.0)
    assert steps(made) == [("980", 9.0)]


def test_a_clock_that_runs_ahead_is_compared_with_itself_only():
    """Written as 12.0 at 10.0, and read again after a restart: the same taint."""
    made = TaintHistory.begin("980", 10.0, 12.0, 10.0).with_value("940", 47.0)
    assert read_back(made).seen("940", 12.0, 50.0, float("-inf")) == made


@pytest.mark.parametrize(("stamp", "added"), [(10.5, 10.0), (11.0, 10.0), (11.5, 11.5)])
def test_the_first_stamp_of_a_taint_is_compared_with_when_it_was_seen(stamp, added):
    made = TaintHistory.begin("980", 10.0).seen("980", stamp, 30.0, float("-inf"))
    assert made.added_at == added


# -- observing --------------------------------------------------------------------------------------------------------


def test_another_value_is_added_and_the_same_changes_nothing():
    made = history(("980", 10.0), ("940", 20.0))
    assert steps(made) == [("980", 10.0), ("940", 20.0)]
    assert made.with_value("940", 99.0) is made


def test_a_clock_that_steps_back_does_not_reorder_the_past():
    assert steps(history(("980", 100.0), ("940", 50.0))) == [("980", 100.0), ("940", 100.0)]


def test_times_are_kept_to_the_millisecond_and_never_earlier():
    assert steps(history(("980", 1.00001), ("940", 2.9999))) == [("980", 1.001), ("940", 3.0)]


def test_more_steps_than_are_remembered_are_joined_with_all_their_values():
    made = history(("31", 0.0), *[(["79", "48", "63"][at % 3], float(at)) for at in range(1, 500)])
    assert len(made.spans) <= MAX_SPANS
    assert (made.added_at, made.spans[-1]) == (0.0, Span(499.0, ("48",)))
    assert {*made.values} == {"31", "79", "48", "63"}
    assert all(after.since - span.since <= (499.0 - span.since) / 7 + 1 for span, after in pairwise(made.spans))


def test_values_that_are_stored_no_more_leave_a_mark_where_they_were():
    """Without it, a pod that tolerates exactly one of them would be evicted as if that value had never been there."""
    made = history(*[(f"v{at}", float(at)) for at in range(400)])
    stored = {*made.values}
    assert abs(len(stored) - MAX_VALUES) < MAX_SPANS
    assert "v0" in stored, "the lowest of all may decide a comparison"
    for span, after in pairwise(made.spans):
        there = {f"v{at}" for at in range(int(span.since), int(after.since))}
        assert (None in span.values) is bool(there - stored)


def test_values_that_come_back_are_dropped_where_they_were_first_and_leave_no_mark():
    made = history(*[(f"v{at % 200}", float(at)) for at in range(500)])
    assert {*made.values} == {f"v{at}" for at in range(200)}
    assert not any(None in span.values for span in made.spans)


def test_values_that_are_joined_are_in_the_order_in_which_they_ended():
    assert _together(["a", "b", None, "a", "c", "b"]) == (None, "a", "c", "b")


@pytest.mark.parametrize("number", [1, 2, 3, 8])
def test_a_history_is_shortened_to_any_number_of_spans(number):
    made = history(*[(str(at), float(at)) for at in range(MAX_SPANS)]).shortened(number)
    assert len(made.spans) <= number
    assert made.spans[-1] == Span(MAX_SPANS - 1.0, (str(MAX_SPANS - 1),))


@given(st.lists(st.none() | st.text("0123456789.ab", max_size=4), min_size=1, max_size=40))
def test_of_values_that_are_forgotten_no_threshold_needs_one(values):
    """The lowest and the highest of each order stay, and the last that cannot be read in it: it may hold another."""
    needed = _needed([*values, "5", "9"])
    assert needed >= {*[value for value in values if value is not None and parse_integer(value) is None][-1:]}
    integers = [int(value) for value in needed if value and value.isdecimal() and str(int(value)) == value]
    every = [int(value) for value in [*values, "5", "9"] if value and value.isdecimal() and str(int(value)) == value]
    assert (min(integers), max(integers)) == (min(every), max(every))


# -- what two processes saw -------------------------------------------------------------------------------------------


def test_a_recovery_that_one_process_missed_counts():
    mine, theirs = history(("940", 0.0)), history(("940", 0.0), ("980", 20.0), ("940", 40.0))
    for both in (mine.joined(theirs), theirs.joined(mine)):
        assert both.values[:2] == ("940", "980")
        assert both.held_since == 40.0


def test_a_value_that_one_process_saw_last_ended_when_another_saw_the_next():
    mine = history(("940", 0.0), ("930", 5.0), ("960", 10.0))
    theirs = history(("940", 0.0), ("980", 20.0))
    for both in (mine.joined(theirs), theirs.joined(mine)):
        assert (both.values[:2], both.held_since) == (("980", "960"), 20.0)


def test_stored_histories_complete_the_known_ones():
    """A taint that is not known was absent when the known state was current."""
    known, stored = history(("940", 15.0)), history(("980", 0.0), ("940", 20.0))
    found = joined({"a": known, "b": known}, {"b": stored, "c": stored}, 20.0)
    assert found == {"a": known, "b": known.joined(stored), "c": history(("940", 20.0))}


def test_a_full_history_loses_nothing_if_another_process_saw_the_same():
    made = history(*[(str(at), at if at > 2 else at / 1000) for at in range(MAX_SPANS)])
    assert made.joined(made) == made


def test_one_that_was_added_again_unseen_counts_from_then():
    assert history(("980", 0.0), ("940", 10.0)).joined(history(("940", 30.0))).added_at == 30.0


@pytest.mark.parametrize("stamp", [None, 5.0])
def test_the_newest_time_that_one_of_them_saw_is_known(stamp):
    """Else it would look as if the taint had been added again since."""
    mine, theirs = (history(("940", 0.0)).seen("940", one, 30.0) for one in (stamp, 9.0))
    assert [mine.joined(theirs).stamp, theirs.joined(mine).stamp] == [9.0, 9.0]


def test_what_another_saw_before_the_taint_was_added_does_not_count():
    """A restore of the store brings back an old annotation."""
    mine = history(("940", 500.0))
    assert mine.joined(history(("980", 1.0), ("940", 2.0))) == mine


@given(st.lists(st.sampled_from(["0", "940", "980"]), min_size=1, max_size=8), st.floats(0, 2))
def test_who_saw_the_same_a_little_later_moves_nothing_earlier_and_nothing_much_later(values, skew):
    mine = history(*((value, 100.0 + 10 * index) for index, value in enumerate(values)))
    theirs = history(*((value, 100.0 + 10 * index + skew) for index, value in enumerate(values)))
    both = mine.joined(theirs)
    assert both.value == mine.value
    assert mine.held_since <= both.held_since <= mine.held_since + skew + 0.001
    assert both.joined(theirs) == both


# -- the annotation ---------------------------------------------------------------------------------------------------


def test_nothing_is_an_empty_text():
    assert encode_histories({}) == ""
    assert decode_histories("") == {}


def test_it_is_json_that_people_can_read():
    text = encode_histories({"sla:NoExecute": history(("980", 10.0), ("940", 20.5)).seen("940", 9.0, 30.0)})
    assert json.loads(text) == {"sla:NoExecute": {"values": [[10.0, ["980"]], [20.5, ["940"]]], "stamp": 9.0}}


def test_it_is_the_same_text_whatever_the_order():
    one, two = history(("1", 1.0)), history(("2", 2.0))
    assert encode_histories({"a:x": one, "b:x": two}) == encode_histories({"b:x": two, "a:x": one})


@pytest.mark.parametrize(("began", "counts_from"), [(1e9, 100.0), (159.0, 159.0), (90.0, 90.0)])
def test_a_time_further_in_the_future_than_clocks_differ_counts_as_now(began, counts_from):
    made = until_now({"k": TaintHistory.begin("940", began)}, 100.0)["k"]
    assert made.added_at == counts_from


@pytest.mark.parametrize(("stamp", "read"), [(4e12, None), (159.0, 159.0), (90.0, 90.0)])
def test_a_stamp_further_in_the_future_than_clocks_differ_is_not_read(stamp, read):
    stored = {"k:NoExecute": TaintHistory.begin("980", 10.0, stamp)}
    assert until_now(stored, 100.0)["k:NoExecute"].stamp == read


def test_so_does_that_of_a_later_value():
    """Else a kubelet postpones an eviction by the value that it writes."""
    made = until_now({"k": history(("980", 10.0), ("940", 1e9))}, 100.0)["k"]
    assert steps(made) == [("980", 10.0), ("940", 100.0)]


def test_a_text_that_is_too_long_counts_as_absent():
    assert read_histories("x" * (MAX_TEXT_LENGTH + 1)) == ({}, [f"it is longer than {MAX_TEXT_LENGTH} characters"])
    assert "longer" not in read_histories("x" * MAX_TEXT_LENGTH)[1][0]


@pytest.mark.parametrize(
    "text",
    [
        "not JSON",
        "[]",
        '{"k:NoExecute": 7}',
        '{"k:NoExecute": {}}',
        '{"k:NoExecute": {"values": []}}',
        '{"k:NoExecute": {"values": [["1", ["a"]]]}}',
        '{"k:NoExecute": {"values": [[1.0]]}}',
        '{"k:NoExecute": {"values": [[1.0, []]]}}',
        '{"k:NoExecute": {"values": [[1.0, ["a", "b"]]]}}',
        '{"k:NoExecute": {"values": [[1.0, [null]]]}}',
        '{"k:NoExecute": {"values": [[2.0, ["a"]], [1.0, ["b"]]]}}',
        '{"k:NoExecute": {"values": [[1.0, [7]]]}}',
        json.dumps({"k:NoExecute": {"values": [[1.0, ["980\x1b[2J\nforged"]]]}}),
        json.dumps({"k:NoExecute": {"values": [[1.0, ["9" * 64]]]}}),
        '{"k:NoExecute": {"values": [[1e999, ["a"]]]}}',
        '{"k:NoExecute": {"values": [[-1.0, ["a"]]]}}',
        json.dumps({"k:NoExecute": {"values": [[0.0, ["a"]]] * (MAX_SPANS + 1)}}),
        json.dumps({"k:NoExecute": {"values": [[0.0, ["a"] * (MAX_VALUES + 1)], [0.0, ["a"]]]}}),
        '{"k:NoExecute": {"x": ' + "[" * 20_000 + "]" * 20_000 + "}}",
    ],
)
def test_text_of_another_writer_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        decode_histories(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["k:NoExecute", "values", "stamp"]), inner),
        max_leaves=6,
    )
)
def test_any_json_is_read_or_refused(value):
    with contextlib.suppress(ValueError):
        assert all(one.value for one in decode_histories(json.dumps(value)).values())


def test_any_time_that_is_read_can_be_written():
    found = decode_histories('{"k:NoExecute": {"values": [[1.0, ["a"]]], "stamp": -1e308}}')
    assert decode_histories(encode_histories(found)) == found


@pytest.mark.parametrize(("length", "is_read"), [(63, True), (64, False)])
def test_a_value_that_no_taint_can_have_is_refused(length, is_read):
    """A kubelet may write it, and caches would keep it."""
    found, faults = read_histories(json.dumps({"sla:NoExecute": {"values": [[1, ["9" * length]]]}}))
    assert (bool(found), not faults) == (is_read, is_read)


def test_as_many_values_as_are_stored_can_be_read():
    values = [str(at) for at in range(MAX_VALUES)]
    spans = [[0.0, values], *[[0.0, ["a"]]] * (MAX_SPANS - 1)]
    [found] = decode_histories(json.dumps({"k": {"values": spans}})).values()
    assert len(found.values) == MAX_VALUES + MAX_SPANS - 1


def test_one_entry_that_cannot_be_read_costs_no_other():
    good = history(("980", 10.0))
    text = encode_histories({"good:x": good})[:-1] + ',"bad:x":{"values":[]}}'
    found, faults = read_histories(text)
    assert found == {"good:x": good}
    assert faults == ["'bad:x': its values are missing, too many or out of order"]


def test_of_thousands_of_faults_the_first_are_reported():
    found, faults = read_histories(json.dumps(dict.fromkeys(map(str, range(5_000)), 0)))
    assert (found, len(faults)) == ({}, MAX_FAULTS)


def many(number: int, values: int) -> dict[str, TaintHistory]:
    made = history(*[(f"{'v' * 50}-{at}", float(at)) for at in range(values)])
    return {f"example.com/{'k' * 40}-{index}:NoExecute": made for index in range(number)}


@pytest.mark.parametrize(("taints", "values"), [(20, MAX_SPANS), (60, 20), (400, 2), (700, 1)])
def test_what_is_written_can_always_be_read(taints, values):
    text = encode_histories(many(taints, values))
    found = decode_histories(text)
    assert len(text) <= MAX_TEXT_LENGTH
    assert all(one.value == f"{'v' * 50}-{values - 1}" for one in found.values())
    assert len(found) == taints or taints == 700


@pytest.mark.parametrize(
    "other",
    [
        TaintHistory.begin("980", 5.0),
        TaintHistory.begin("980", 5.0, 7.0),
        TaintHistory.begin("980", 5.0, 4.0, absent_at=5.0),
        TaintHistory.begin("980", 5.0, 5.0).with_value("940", 9.0),
    ],
    ids=["no stamp", "later stamp", "earlier stamp", "another value"],
)
def test_of_too_many_histories_those_stay_that_the_stamp_of_the_taint_does_not_replace(other):
    replaced = {name: TaintHistory.begin("980", 5.0, 5.0) for name in many(700, 1)}
    of_device = {"a:NoExecute@gpu": TaintHistory.begin("980", 5.0)}
    found = decode_histories(encode_histories({**replaced, **of_device, "z:NoExecute": other}))
    assert len(found) < 700
    assert found["z:NoExecute"] == other.shortened(1)
    assert not found.keys() & of_device.keys()


def test_values_beyond_the_capacity_are_merged():
    found = decode_histories(encode_histories(many(20, MAX_SPANS)))
    assert all(1 < len(one.spans) < MAX_SPANS for one in found.values())
    assert {one.added_at for one in found.values()} == {0.0}


def test_a_taint_was_not_added_again_before_its_last_value_was_seen():
    history = TaintHistory.begin("980", 100.0, 90.0).with_value("940", 120.0)
    assert history.seen("940", 110.0, 130.0, gap_from=105.0).added_at == 90.0
    assert history.seen("940", 125.0, 130.0, gap_from=105.0).added_at == 125.0
