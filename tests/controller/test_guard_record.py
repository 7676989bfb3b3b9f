"""A guard's record in the store: nothing is lost on the way there and back, and nothing unknown is believed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import NOW
from taintwarden.api.status import MAX_CAUSE_LENGTH, MAX_SPENT
from taintwarden.controller.guard_record import read, written
from taintwarden.engine.guard import GuardRecord

OPEN = GuardRecord(
    NOW + 0.5, "taint sla on 9 nodes", 120, spent=((NOW + 30, 12), (NOW + 60.123, 3)), enforces=(3, NOW), term=7
)
MILLISECONDS = st.integers(0, 4_000_000_000_000).map(lambda number: number / 1_000)
SPENT = st.lists(st.tuples(MILLISECONDS, st.integers(0, 10_000)), max_size=MAX_SPENT).map(tuple)
CLOSED = st.builds(
    GuardRecord,
    accepted=st.none() | st.integers(0, 1_000),
    released_at=st.none() | MILLISECONDS,
    spent=SPENT,
    reset=st.sampled_from(["", "3"]),
    enforces=st.none() | st.tuples(st.integers(1, 1_000), MILLISECONDS),
    term=st.integers(0, 1_000),
)
OPENED = st.builds(
    GuardRecord, MILLISECONDS, st.text(max_size=MAX_CAUSE_LENGTH), st.integers(0, 1_000), st.none(), st.none(), SPENT
)


def as_json(record: GuardRecord) -> Any:
    return msgspec.json.decode(msgspec.json.encode(written(record)))


@given(CLOSED | OPENED)
def test_what_is_written_is_read_back_exactly(record):
    assert read(as_json(record)) == record


def test_an_open_guard_says_why():
    assert as_json(OPEN) == {
        "open": True,
        "since": "2023-11-14T22:13:20.500000Z",
        "cause": "taint sla on 9 nodes",
        "wouldEvict": 120,
        "accepted": None,
        "releasedAt": None,
        "resetGranted": None,
        "enforcedGeneration": 3,
        "enforcedSince": "2023-11-14T22:13:20.000000Z",
        "term": 7,
        "spent": [
            {"until": "2023-11-14T22:13:50.000000Z", "pods": 12},
            {"until": "2023-11-14T22:14:20.123000Z", "pods": 3},
        ],
    }


def test_a_guard_that_closed_takes_back_what_it_said():
    """In a merge patch null removes, and what is left out stays."""
    patch = as_json(GuardRecord())
    names = ("since", "cause", "wouldEvict", "accepted", "releasedAt", "resetGranted")
    gone = dict.fromkeys((*names, "enforcedGeneration", "enforcedSince"))
    assert patch == {"open": False, "term": 0, "spent": []} | gone


def test_a_reset_says_when_it_was():
    patch = as_json(GuardRecord(accepted=120, released_at=NOW + 0.25))
    assert (patch["accepted"], patch["releasedAt"]) == (120, "2023-11-14T22:13:20.250000Z")


def test_a_cause_that_is_too_long_is_cut():
    assert len(written(msgspec.structs.replace(OPEN, cause="x" * 5_000))["cause"]) == MAX_CAUSE_LENGTH


@pytest.mark.parametrize("more", [1, 10])
def test_more_than_can_be_stored_is_put_together_so_that_it_counts_for_longer(more):
    spent = tuple((NOW + number, 1) for number in range(MAX_SPENT + more))
    kept = read(written(GuardRecord(spent=spent))).spent
    assert len(kept) == MAX_SPENT
    assert kept[0] == (NOW + more, more + 1)
    assert kept[1:] == spent[more + 1 :]


def test_a_time_nobody_lives_to_see_can_be_written():
    assert written(GuardRecord(spent=((1e15, 1),)))["spent"][0]["until"].startswith("9999-12-31")


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("text", "Expected `object`"),
        ({}, "open"),
        ({"open": "yes"}, "Expected `bool`"),
        ({"open": True}, "since when"),
        ({"open": True, "since": "soon"}, "Invalid RFC3339"),
        ({"open": True, "since": "2023-11-14T22:13:20"}, "Expected `datetime`"),
        ({"open": False, "spent": [{"until": "2023-11-14T22:13:20Z"}]}, "pods"),
        ({"open": False, "spent": [{"until": "2023-11-14T22:13:20Z", "pods": -1}]}, ">= 0"),
    ],
)
def test_what_is_no_record_is_refused(stored: Any, said: str):
    with pytest.raises(ValueError, match=said):
        read(stored)


def test_a_time_without_a_fraction_is_read():
    """A person may have written it by hand."""
    assert read({"open": True, "since": "2023-11-14T22:13:20Z"}).open_since == NOW
