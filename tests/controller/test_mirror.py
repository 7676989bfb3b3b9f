"""A mirror keeps a value for every node of a stream."""

import pytest

from controller import deletion, deliver, node_object
from taintwarden.kube.wire.kinds import Identity, NodeObject
from taintwarden.telemetry.metrics import Metrics
from taintwarden_placement.mirror import Mirror


@pytest.fixture
def mirror() -> Mirror[dict[str, str]]:
    return Mirror("nodes", Metrics(), lambda one: one.metadata.labels)


def listed(mirror: Mirror, *objects: NodeObject) -> None:
    mirror.list_began()
    mirror.listed(objects)
    mirror.list_ended("1")


def test_a_list_replaces_the_known_nodes(mirror):
    listed(mirror, node_object("a"), node_object("b"))
    listed(mirror, node_object("b", labels={"x": "y"}))
    assert (mirror.get("a"), mirror.get("b"), len(mirror)) == (None, {"x": "y"}, 1)


def test_a_node_that_a_list_does_not_name_counts_until_the_list_is_complete(mirror):
    listed(mirror, node_object("a"))
    mirror.list_began()
    mirror.listed([node_object("b")])
    assert (mirror.get("a"), mirror.get("b")) == ({}, {})
    mirror.list_began()
    mirror.listed([node_object("a")])
    mirror.list_ended("2")
    assert (mirror.get("a"), mirror.get("b")) == ({}, None)


def test_changes_and_deletions_are_followed(mirror):
    deliver(mirror, node_object("a"), node_object("b"), deletion(node_object("a")))
    assert (mirror.get("a"), mirror.get("b")) == (None, {})


def test_each_change_calls_back():
    called: list[str] = []
    mirror = Mirror("nodes", Metrics(), lambda one: one.metadata.name, lambda: called.append(str(len(mirror))))
    deliver(mirror, node_object("a"), deletion(node_object("a")))
    assert called == ["1", "0"]


def test_a_deletion_needs_only_a_name(mirror):
    listed(mirror, node_object("a"))
    assert mirror.lost(Identity(name="a"))
    assert mirror.get("a") is None
    assert not mirror.lost(Identity())
