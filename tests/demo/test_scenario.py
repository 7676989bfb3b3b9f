"""The story fits together: expectations name pods that are there, and leave time to be judged."""

import pytest

from taintwarden_demo.replicas import may_stay
from taintwarden_demo.scenario import Story, tell_story

PACES = [0.3, 0.5, 1.0, 3.0]


def taint(value: str) -> dict[str, str]:
    return {"key": "sla", "value": value, "effect": "NoExecute"}


def test_everybody_starts_where_they_may_stay(story: Story) -> None:
    values = {node.name: node.sla for node in story.nodes}
    misplaced = [
        (one.name, node)
        for one in story.workloads
        if not one.daemon_set
        for node in one.nodes
        if not may_stay(one, taint(values[node]))
    ]
    assert misplaced == []


@pytest.mark.parametrize("pace", PACES)
def test_all_pods_of_a_workload_leave_a_node(pace: float) -> None:
    story = tell_story(pace)
    nodes = {one.name: one.nodes for one in story.workloads}
    leaves = [(change.node, leave) for change in story.changes for leave in change.leaves]
    assert leaves
    for node, leave in leaves:
        assert nodes[leave.workload].count(node) == leave.pods


@pytest.mark.parametrize("pace", PACES)
def test_the_recovery_comes_well_before_the_deadline(pace: float) -> None:
    story = tell_story(pace)
    fell, recovered = (change.at for change in story.changes if change.node == "b1")
    assert recovered + 0.75 <= fell + story.grace_seconds


@pytest.mark.parametrize("pace", PACES)
def test_the_mistake_lasts_longer_than_any_grace(pace: float) -> None:
    story = tell_story(pace)
    mistyped, mended = (change.at for change in story.changes if change.node == "c1")
    assert mended - mistyped > story.grace_seconds + 1


def test_it_ends_after_the_last_change_and_gives_up_later(story: Story) -> None:
    assert story.changes[-1].at < story.ends_at < story.gives_up_at < 50


@pytest.mark.parametrize(
    ("name", "stays_at", "leaves_at"), [("payments", "951", "950"), ("catalog", "901", "900"), ("search", "931", "930")]
)
def test_extended_tolerations_narrow(story: Story, name: str, stays_at: str, leaves_at: str) -> None:
    workload = next(one for one in story.workloads if one.name == name)
    assert may_stay(workload, taint(stays_at))
    assert not may_stay(workload, taint(leaves_at))
