"""Labels that repeat taints, on a real API server: they come, follow, and stay when placement has ended."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from controlplane import Json, Target, wait_until
from e2e.stories import PATIENCE_SECONDS, POLICY_LABEL, Scene, Stories, Story, Told, events, policies, taint, telling
from taintwarden.engine.model import Taint, TaintSelector
from taintwarden.engine.placement import neutral_labels, node_labels

PLACING, OTHER = "labels-placing", "labels-none"
TAINTS = [
    {"key": "sla", "effects": ["NoExecute", "NoSchedule"], "valueType": "Integer", "placement": True},
    {"key": "example.com/cni", "effects": ["NoSchedule"], "valueType": "Version", "placement": True},
]
POLICIES = {PLACING: {"taints": TAINTS}, OTHER: {}}
STORIES = Stories()
FIGHT_SECONDS = 8.0

SLA = "value.taintwarden.io/sla"
NO_SLA, NO_CNI = neutral_labels(["sla"]), neutral_labels(["example.com/cni"])


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with telling(request, control_plane, tmp_path_factory.mktemp("labels"), STORIES, POLICIES) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def test_the_shipped_rights_suffice(told: Told) -> None:
    told.judge_rights()


def labels(scene: Scene, node: str) -> dict[str, str]:
    found = scene.cluster.get("nodes", node)["metadata"]["labels"]
    ours = {label: value for label, value in found.items() if "taintwarden.io/" in label and label != POLICY_LABEL}
    # Other stories end placement by keys of their own, on all nodes.
    return {label: value for label, value in ours.items() if not label.partition("/")[2].startswith("own-")}


def labels_of(scene: Scene, node: str, key: str) -> dict[str, str]:
    found = scene.cluster.get("nodes", node)["metadata"]["labels"]
    return {label: value for label, value in found.items() if label.endswith(f".taintwarden.io/{key}")}


def says(key: str, value: str) -> dict[str, str]:
    """The labels of a taint."""
    return node_labels([Taint(key, value)], [TaintSelector(key, placement=True)]).labels


def until(scene: Scene, node: str, wanted: dict[str, str]) -> None:
    wait_until(lambda: labels(scene, node) == wanted, PATIENCE_SECONDS, f"{node} to carry {wanted}")


@STORIES.under(PLACING)
def labels_follow_the_value_and_go_with_the_taint(scene: Scene) -> None:
    node = scene.node(taint("980"))
    until(scene, node, {**says("sla", "980"), **NO_CNI})
    scene.taint(node, taint("940"))
    until(scene, node, {**says("sla", "940"), **NO_CNI})
    scene.taint(node)
    until(scene, node, {**NO_SLA, **NO_CNI})


def until_of(scene: Scene, node: str, key: str, wanted: dict[str, str]) -> None:
    what = f"{node} to carry {wanted} of {key}"
    wait_until(lambda: labels_of(scene, node, key) == wanted, PATIENCE_SECONDS, what)


@STORIES.under(OTHER)
def where_placement_has_ended_labels_say_that_there_is_no_taint(scene: Scene) -> None:
    """On a node that comes later, too; and they come back with the policy."""
    key = "own-ended"
    spec = {"taints": [{"key": key, "effects": [], "placement": True}]}
    node = scene.node(taint("980", key))
    with policies(scene.cluster, {key: spec}):
        until_of(scene, node, key, says(key, "980"))
        scene.cluster.patch("taintevictionpolicies", key, {"spec": {"mode": "DryRun"}})
        until_of(scene, node, key, neutral_labels([key]))
        scene.cluster.patch("taintevictionpolicies", key, {"spec": {"mode": "Enforce"}})
        until_of(scene, node, key, says(key, "980"))
    until_of(scene, node, key, neutral_labels([key]))
    until_of(scene, scene.node(taint("940", key), name="later"), key, neutral_labels([key]))


def test_labels_that_a_client_keeps_changing_are_written_ever_later(told: Told) -> None:
    """It had been rewritten 193 times within six seconds. Others may not change meanwhile what is to be written."""
    told.wait()
    scene = replace(next(iter(told.scenes.values())), policy=PLACING, namespace="story-contested")
    scene.cluster.create_namespace(scene.namespace)
    try:
        fight(scene)
    finally:
        scene.clear()


def fight(scene: Scene) -> None:
    node, since = scene.node(taint("980")), time.monotonic()
    until(scene, node, {**says("sla", "980"), **NO_CNI})
    early = late = 0
    contested: list[Json] = []
    while time.monotonic() < since + FIGHT_SECONDS or not contested or early + late < 4:
        assert time.monotonic() < since + 3 * PATIENCE_SECONDS, (early, late)
        if labels(scene, node)[SLA] != "1":
            scene.cluster.patch("nodes", node, {"metadata": {"labels": {SLA: "1"}}})
            is_early = time.monotonic() < since + FIGHT_SECONDS
            early, late = early + is_early, late + (not is_early)
        contested = contested or events(scene.cluster, "default", node, "LabelsContested")
    assert early <= 10
    event = contested[0]
    assert SLA in event["note"]
    are_right = lambda: labels(scene, node) == {**says("sla", "980"), **NO_CNI}  # noqa: E731
    wait_until(are_right, 4 * PATIENCE_SECONDS, "the labels, which are written later each time")
