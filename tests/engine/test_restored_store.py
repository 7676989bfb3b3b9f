"""The API server's store was restored from a backup: what it has now is older than what was seen, and counts."""

import pytest

from engine.rig import REACHED, Rig, exists, gt, limited
from taintwarden.engine import commands, events
from taintwarden.engine.model import Node
from taintwarden.engine.outcomes import Outcome


def seen_again(value: str, version: int) -> Node:
    """The rig's node with another value of its taint."""
    return Rig().node("n1", f"sla={value}", version=version)


@pytest.mark.parametrize(("listed", "stays"), [(True, True), (False, False)])
def test_an_older_node_counts_in_a_list_only(listed, stays):
    rig = Rig()
    rig.node("n1", "sla=940", version=500)
    rig.feed(events.NodeSeen(seen_again("980", version=100), listed=listed))
    rig.pod("a", gt())
    assert rig.evictions() == ([] if stays else ["a"])


def test_after_an_older_list_pods_that_are_newer_wait_for_a_fresh_read():
    rig = Rig()
    rig.node("n1", "sla=940", version=500)
    rig.feed(events.NodeSeen(seen_again("940", version=100), listed=True), events.NodesListed(frozenset({"n1"}), 200))
    rig.pod("a", gt(), version=201)
    assert rig.take(commands.CheckNode) == [commands.CheckNode("n1")]


def test_a_read_before_the_restore_does_not_count_for_a_node_after_it():
    rig = Rig()
    node = rig.node("n1", "sla=940", version=500)
    rig.pod("a", gt(), version=REACHED + 5)
    rig.process(events.NodeChecked("n1", node.resource_version, REACHED + 5))
    assert rig.evictions() == ["a"]
    rig.feed(events.NodeSeen(seen_again("940", version=100), listed=True), events.NodesListed(frozenset({"n1"}), 200))
    rig.pod("b", gt(), version=201)
    assert rig.evictions() == []


def test_a_pod_that_had_to_leave_before_the_restore_does_not_wait_until_versions_are_as_high_again():
    """That may take days."""
    rig = Rig(reached=600)
    rig.budget(allowed=0)
    rig.node("n1", "sla=940", version=400)
    rig.pod("a", gt(), version=500, ready=True)
    assert rig.evictions() == []
    rig.feed(events.NodeSeen(seen_again("940", version=100), listed=True), events.NodesListed(frozenset({"n1"}), 200))
    again = rig.make_pod("a", gt(), version=150, ready=True)
    rig.feed(events.PodsSeen((again,)), events.PodsListed({"uid-a": "n1"}, 200))
    rig.budget(allowed=1)
    assert rig.evictions() == ["a"]


def test_an_addition_of_before_the_restore_makes_no_deadline_earlier():
    """The taint was taken off and added again since; pods tolerated the node meanwhile."""
    rig = Rig()
    rig.node("n1", "sla=940", version=500, added=rig.now.wall - 10)
    older = Rig().node("n1", "sla=940", version=100, added=rig.now.wall - 500)
    rig.feed(events.NodeSeen(older, listed=True), events.NodesListed(frozenset({"n1"}), 200))
    rig.pod("a", exists(toleration_seconds=60))
    assert rig.evictions() == []
    rig.advance(49)
    assert rig.evictions() == []
    rig.advance(2)
    assert rig.evictions() == ["a"]


def test_a_pod_that_is_on_two_nodes_until_the_list_ends_has_claims_on_one_of_them():
    rig = Rig(*[limited(key, spec={"taints": [{"key": key}]}) for key in "xy"])
    rig.node("n1")
    rig.node("n2", "y=1")
    rig.pod("a")
    rig.feed(events.PodsSeen((rig.make_pod("a", node="n2"),)))
    rig.node("n1", "x=1", "y=1")
    rig.process(events.PodsListed({"uid-a": "n2"}))
    rig.settle("a", Outcome.NOT_SENT)
    assert [claim.policy.name for claim in rig.view.claims("uid-a")] == ["y"]
