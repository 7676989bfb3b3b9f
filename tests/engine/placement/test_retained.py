"""Which keys nodes carry labels of, and which of these belong on every node."""

from hypothesis import given
from hypothesis import strategies as st

from taintwarden.engine.placement import Kept, Retained, carried_by, neutral_labels
from taintwarden.engine.placement.retained import MAX_SPREAD

SLA = neutral_labels(["sla"])
GONE = {"effect.taintwarden.io/sla": "Removed"}
NUMBER = {"example.com.label-version.taintwarden.io/driver": "10000000000001"}


def spread(*nodes):
    found = Retained()
    for number, labels in enumerate(nodes):
        found.put(f"n{number}", labels)
    return found.spread


def test_a_key_is_read_from_any_label_of_it():
    assert {one for label in SLA for one in carried_by({label: "x"}).kept} == {Kept("sla")}
    assert carried_by(NUMBER).kept == {Kept("example.com/driver", of_label=True)}


def test_two_nodes_or_half_of_them_are_enough():
    assert spread(SLA, SLA, {}, {}, {}) == {Kept("sla")}
    assert spread(SLA, {}) == spread(SLA) == {Kept("sla")}
    assert spread(SLA, {}, {}) == frozenset()


def test_what_is_being_removed_counts_against_it():
    assert spread(SLA, SLA, GONE, {}, {}) == {Kept("sla")}
    assert spread(SLA, SLA, GONE, GONE, {}) == frozenset()


def test_a_number_of_a_version_can_be_removed_too():
    assert carried_by(dict.fromkeys(NUMBER, "Removed")).kept == frozenset()


def test_a_value_that_says_removed_is_a_value():
    assert carried_by({"value.taintwarden.io/sla": "Removed"}).kept == {Kept("sla")}


def test_those_that_most_nodes_carry_are_spread_if_they_are_too_many():
    many = neutral_labels(f"k{number:03}" for number in range(MAX_SPREAD + 10))
    found = spread(many, many, SLA, SLA, SLA)
    assert len(found) == MAX_SPREAD
    assert Kept("sla") in found


NODES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.none() | st.sampled_from([{}, SLA, GONE, NUMBER, {**SLA, **NUMBER}]))
)


@given(NODES)
def test_counting_on_is_the_same_as_counting_anew(changes):
    counted, nodes = Retained(), {}
    for name, labels in changes:
        before = counted.spread
        if labels is None:
            changed, _ = counted.drop(name), nodes.pop(name, None)
        else:
            nodes[name] = labels
            changed = counted.put(name, labels)
        assert changed == (counted.spread != before)
    assert counted.spread == spread(*nodes.values())
