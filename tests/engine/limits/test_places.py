"""Nodes that take places, and pods that are retried when a place ends."""

import pytest

from engine.limits.asking import AT_ONCE, ask
from engine.rig import limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import FreedKeys
from taintwarden.engine.limits.places import STORING, Nodes, Places, key
from taintwarden.engine.model import Pod, Tolerations
from taintwarden.engine.records import Place

LIMITED = limited(concurrent_nodes=1)


def pod(name: str, node: str = "a", bound_at: float = 0.0) -> Pod:
    return Pod(name, name, node, Interner().pod_class("shop", {}, Tolerations()), bound_at, 1)


@pytest.fixture
def nodes() -> Nodes:
    return Nodes("p", FreedKeys())


def takes(nodes: Nodes, node: str) -> bool:
    refused = nodes.admit(node, AT_ONCE)
    return refused is not None and refused.detail == STORING


def test_a_free_place_is_for_the_first_that_waits(nodes):
    assert not takes(nodes, "first")
    nodes.most = 1
    assert not takes(nodes, "second")
    assert takes(nodes, "first")
    assert not takes(nodes, "second")


def test_a_place_admits_pods_when_it_is_stored(nodes):
    nodes.most = 1
    assert takes(nodes, "a")
    nodes.note_saved(nodes.held.values())
    assert nodes.admit("a", AT_ONCE) is None


def test_no_pod_is_called_while_a_place_ends(nodes):
    nodes.restart([Place("a", 0.0)])
    nodes.ending["a"] = None
    assert nodes.admit("a", AT_ONCE) is not None


def test_a_node_whose_place_ended_takes_another(nodes):
    nodes.restart([Place("a", 0.0)])
    nodes.most, nodes.ending["a"] = 1, None
    nodes.end("a")
    assert takes(nodes, "a")
    nodes.note_saved(nodes.held.values())
    assert nodes.admit("a", AT_ONCE) is None


def test_the_end_of_a_place_frees_the_pods_that_wait_for_it(nodes):
    nodes.restart([Place("a", 0.0)])
    nodes._freed.take()
    nodes.end("a")
    assert nodes._freed.take() == [key("p", "a")]


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("", "node z waits for a place: 1 node waits"),
        ("a", "node z waits for a place: a loses pods now; 1 node waits"),
        ("abcd", "node z waits for a place: a, b, c and 1 more lose pods now; 1 node waits"),
    ],
)
def test_the_sentence(nodes, held, told):
    nodes.restart([Place(node, 0.0) for node in held])
    nodes.waiting["z"] = None
    assert nodes.describe_wait("z") == told


def test_a_new_leader_begins_with_all_of_the_time(nodes):
    nodes.restart([Place("a", 0.0)])
    nodes.idle["a"], nodes.ending["a"], nodes.changed = 7.0, None, False
    nodes.restart()
    assert nodes.admit("a", AT_ONCE) is None
    assert (nodes.idle, nodes.changed) == ({}, True)


def test_nodes_that_have_begun_come_first_and_those_that_are_passed_over_last(nodes):
    nodes.restart([Place("a", 0.0), Place("b", 0.0)])
    nodes.waiting = {"a": None, "c": None, "b": None}
    nodes.pass_over("a")
    assert [*nodes.in_order()] == ["b", "c", "a"]


def test_places_that_are_stored_are_those_of_a_limit_that_was_there_before():
    places = Places(FreedKeys())
    places.configure([limited()], AT_ONCE)
    places.configure([LIMITED], AT_ONCE)
    assert places.by_policy["p"].is_new
    places.keep("p", (Place("a", 0.0),))
    assert not places.by_policy["p"].is_new


def test_places_that_are_stored_outlast_a_restart():
    places = Places(FreedKeys())
    places.keep("p", (Place("a", 0.0),))
    places.configure([limited("other"), LIMITED], AT_ONCE)
    assert places.by_policy["p"].admit("a", AT_ONCE) is None


def test_calls_are_forgotten_with_the_last_limit():
    places = Places(FreedKeys())
    places.configure([LIMITED], AT_ONCE)
    places.reserve(ask(pod("x"), LIMITED))
    places.configure([], AT_ONCE)
    assert places._called == set()


@pytest.mark.parametrize(
    ("name", "bound_at", "stayed", "is_progress"),
    [("x", 0.0, "", True), ("x", 0.0, "x", False), ("x", 2.0, "", False), ("y", 0.0, "", False)],
)
def test_a_pod_that_was_called_and_did_not_come_back_is_progress(name, bound_at, stayed, is_progress):
    places = Places(FreedKeys())
    places.configure([LIMITED], AT_ONCE)
    places.keep("p", (Place("a", 1.0),))
    nodes = places.by_policy["p"]
    nodes.idle["a"] = 7.0
    for one in (pod("x"), pod("of-another", "node")):
        places.reserve(ask(one, LIMITED))
    places.gone(pod("of-another", "node"), AT_ONCE)
    places.stay(stayed)
    nodes.changed = False
    places.gone(pod(name, bound_at=bound_at), AT_ONCE)
    assert ("a" not in nodes.idle) == is_progress
    assert nodes.changed, "it may be drained"
