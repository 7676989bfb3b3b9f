"""Spread constraints are made once for a workload, and never taken from one that only looks alike."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from taintwarden.controller.decoding.selecting import Spreads, spread
from taintwarden.kube.wire.kinds import SpreadObject

LABELS = {"app": "web", "hash": "abc"}


def constraints(*keys: str, topology: str = "zone", **selector: Any) -> list[SpreadObject]:
    value = {"topologyKey": topology, "labelSelector": selector, "matchLabelKeys": keys}
    return msgspec.convert([value], list[SpreadObject])


def test_pods_of_one_workload_share_their_constraints():
    spreads = Spreads()
    first, second = (spreads.of("uid", constraints("hash"), dict(LABELS)) for _ in range(2))
    assert first is second


def test_labels_that_no_constraint_asks_for_do_not_matter():
    spreads = Spreads()
    first = spreads.of("uid", constraints("hash"), LABELS)
    assert spreads.of("uid", constraints("hash"), LABELS | {"pod-name": "web-1"}) is first


@pytest.mark.parametrize(
    ("other", "labels"),
    [
        (constraints("hash", topology="host"), LABELS),
        (constraints("hash", matchLabels={"app": "web"}), LABELS),
        (constraints("hash"), LABELS | {"hash": "def"}),
        (constraints("hash"), {"app": "web"}),
        (constraints("app"), {"app": "abc"}),
    ],
    ids=["topology", "selector", "value", "no-value", "key"],
)
def test_other_constraints_of_the_same_workload_are_its_own(other, labels):
    spreads = Spreads()
    spreads.of("uid", constraints("hash"), LABELS)
    assert spreads.of("uid", other, labels) == spread(other, labels)


def test_what_is_remembered_of_workloads_is_bounded():
    spreads = Spreads(max_workloads=3)
    for number in range(10):
        spreads.of(f"uid-{number}", constraints("hash"), LABELS)
    assert sum(bool(kept(spreads, f"uid-{number}")) for number in range(10)) <= 3


VALUES = st.sampled_from("abc")
PODS = st.tuples(VALUES, st.lists(VALUES, max_size=2), VALUES, st.dictionaries(VALUES, VALUES))


@given(st.lists(PODS, max_size=8))
def test_remembering_changes_nothing(pods):
    spreads = Spreads()
    for uid, keys, topology, labels in pods:
        asked = constraints(*keys, topology=topology)
        assert spreads.of(uid, asked, labels) == spread(asked, labels)
