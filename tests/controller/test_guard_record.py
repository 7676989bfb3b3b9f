"""A guard's record in the store: encoding and decoding lose nothing, and invalid records are refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import NOW
from taintwarden.api.status import MAX_CAUSE_LENGTH, MAX_NAMESPACES, MAX_PAST, ReservedEviction
from taintwarden.controller.stores.guard_record import MAX_COUNT, decode_guard, encode_guard
from taintwarden.engine.records import GuardRecord
from taintwarden.engine.reported_status import Status

OPEN = GuardRecord(
    NOW + 0.5,
    "taint sla on 9 nodes",
    (("shop", 120),),
    ((NOW + 30, (("shop", 12),)), (NOW + 60.123, (("bank", 1), ("shop", 2)))),
    (("uid-a", "shop"),),
    term=7,
    population=300,
)
MILLISECONDS = st.integers(0, 4_000_000_000_000).map(lambda number: number / 1_000)
NAMESPACES = st.dictionaries(st.sampled_from("abc"), st.integers(1, 10_000)).map(
    lambda pods: tuple(sorted(pods.items(), key=lambda one: (-one[1], one[0])))
)
EVICTED = st.lists(st.tuples(MILLISECONDS, NAMESPACES), max_size=MAX_PAST).map(tuple)
RECORDS = st.builds(
    GuardRecord,
    st.none() | MILLISECONDS,
    st.just(""),
    NAMESPACES,
    EVICTED,
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc"))).map(tuple),
    st.integers(0, 1_000),
    st.integers(0, MAX_COUNT),
)


def as_json(record: GuardRecord) -> Any:
    return msgspec.json.decode(msgspec.json.encode(encode_guard(record)))


@given(RECORDS)
def test_a_record_that_is_encoded_and_decoded_is_the_same(record):
    assert decode_guard(as_json(record)) == record


def test_the_record_of_a_tripped_guard_has_its_cause():
    assert as_json(OPEN) == {
        "trippedAt": "2023-11-14T22:13:20.500000Z",
        "cause": "taint sla on 9 nodes",
        "counted": [{"namespace": "shop", "pods": 120}],
        "evicted": [
            {"until": "2023-11-14T22:13:50.000000Z", "namespaces": [{"namespace": "shop", "pods": 12}]},
            {
                "until": "2023-11-14T22:14:20.123000Z",
                "namespaces": [{"namespace": "shop", "pods": 2}, {"namespace": "bank", "pods": 1}],
            },
        ],
        "reserved": [{"uid": "uid-a", "namespace": "shop"}],
        "term": 7,
        "population": 300,
    }


def test_the_record_of_an_armed_guard_removes_time_and_cause():
    """In a merge patch null removes, and what is left out stays."""
    gone = dict.fromkeys(("trippedAt", "cause"))
    assert as_json(GuardRecord()) == {"counted": [], "evicted": [], "reserved": [], "term": 0, "population": 0} | gone


def test_of_many_namespaces_the_small_ones_are_stored_together():
    counted = tuple((f"n{number:03}", 1 + (number == 7)) for number in range(MAX_NAMESPACES + 5))
    stored = encode_guard(GuardRecord(NOW, counted=counted))["counted"]
    assert (stored[0], len(stored)) == ({"namespace": "n007", "pods": 2}, MAX_NAMESPACES + 1)
    assert stored[-1] == {"namespace": "", "pods": 5}


def test_a_cause_that_is_too_long_is_cut():
    assert len(encode_guard(msgspec.structs.replace(OPEN, cause="x" * 5_000))["cause"]) == MAX_CAUSE_LENGTH


@pytest.mark.parametrize("more", [1, 10])
def test_too_many_slots_are_merged_into_the_latest_of_them(more):
    evicted = tuple((NOW + number, (("shop", 1),)) for number in range(MAX_PAST + more))
    kept = decode_guard(encode_guard(GuardRecord(evicted=evicted))).evicted
    assert len(kept) == MAX_PAST
    assert kept[0] == (NOW + more, (("shop", more + 1),))
    assert kept[1:] == evicted[more + 1 :]


def test_a_time_after_the_year_9999_is_cut():
    [one] = encode_guard(GuardRecord(evicted=((1e15, (("shop", 1),)),)))["evicted"]
    assert one["until"].startswith("9999-12-31")


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("text", "Expected `object`"),
        ({"trippedAt": 3}, "Expected `str"),
        ({"trippedAt": "soon"}, "Invalid RFC3339"),
        ({"trippedAt": "2023-11-14T22:13:20"}, "Expected `datetime`"),
        ({"evicted": [{"until": "2023-11-14T22:13:20Z"}]}, "namespaces"),
        (
            {"evicted": [{"until": "2023-11-14T22:13:20Z", "namespaces": [{"namespace": "a", "pods": -1}]}]},
            ">= 0",
        ),
    ],
)
def test_an_invalid_record_is_refused(stored: Any, said: str):
    with pytest.raises(ValueError, match=said):
        decode_guard(stored)


def test_a_count_that_is_too_high_is_cut():
    """Such a count would hold every wave, and the sum of two could not be written."""
    huge = [{"namespace": "a", "pods": 2**62}, {"namespace": "b", "pods": 2**63 - 1}]
    evicted = [{"until": "2023-11-14T22:13:20Z", "namespaces": huge}]
    record = decode_guard({"counted": huge, "evicted": evicted, "population": 2**62})
    most = (("a", MAX_COUNT), ("b", MAX_COUNT))
    assert (record.counted, record.evicted, record.population) == (most, ((NOW, most),), MAX_COUNT)


def test_a_record_of_the_version_before_is_read():
    stored = as_json(OPEN)
    del stored["population"]
    assert decode_guard(stored) == msgspec.structs.replace(decode_guard(as_json(OPEN)), population=0)


def test_the_version_before_reads_a_record():
    """The version before ignores unknown fields, and they remain in the merge."""

    class Before(Status, frozen=True):
        tripped_at: str | None = None
        reserved: tuple[ReservedEviction, ...] = ()

    read_before = msgspec.convert(as_json(OPEN), Before)
    assert read_before == Before("2023-11-14T22:13:20.500000Z", (ReservedEviction("uid-a", "shop"),))


def test_a_time_without_a_fraction_is_read():
    """A person may have written it by hand."""
    assert decode_guard({"trippedAt": "2023-11-14T22:13:20Z"}).tripped_at == NOW
