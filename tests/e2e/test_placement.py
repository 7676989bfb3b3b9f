"""Placement with the real scheduler: who has to leave a node is replaced on one that suits, or waits for one."""

from collections.abc import Iterator

import pytest

from controlplane import Json, WorkingCluster
from e2e.limit_scenes import BAD, DEMANDING, GOOD, SCENE_LABEL
from e2e.placement_scenes import PlacementScene, placing
from e2e.replay.pod_watch import RUN_LABEL
from e2e.stories import Stories, Story, Told, annotation, taint, toleration

PLACING, ONLY = "placing", "placing-only"
TAINTS = [{"key": "sla", "valueType": "Integer", "placement": True}]
POLICIES = {
    PLACING: {"taints": TAINTS},
    # A key of its own: a policy places the pods that it selects, and this selects all.
    ONLY: {"taints": [{**TAINTS[0], "key": "shelf", "effects": []}]},
}
STORIES = Stories()
NO_NODE = "didn't match Pod's node affinity/selector"

pytestmark = pytest.mark.timeout(600)  # the first test waits for the cluster, and each for its story


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, own_working_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with placing(request, own_working_cluster, tmp_path_factory.mktemp("placing"), STORIES, POLICIES) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def test_the_shipped_rights_suffice(told: Told) -> None:
    told.judge_rights()


def deploy(scene: PlacementScene, replicas: int) -> str:
    """A workload whose pods say only in the annotation that they want nodes above 950."""
    return scene.ground.create_deployment(
        "web",
        scene.namespace,
        replicas,
        node_selector={SCENE_LABEL: scene.namespace},
        annotations=annotation(DEMANDING),
        labels={RUN_LABEL: scene.run},
    )


@STORIES.under(PLACING)
def replacements_land_where_they_may_stay(scene: PlacementScene) -> None:
    first, second, low = (
        scene.place_node(name, taint(sla)) for name, sla in (("a", "980"), ("b", "940"), ("c", "940"))
    )
    scene.wait_mirrored({first: "980", second: "940", low: "940"})
    scene.opt_in(DEMANDING)
    workload = deploy(scene, 3)
    scene.wait_placed("web", first, first, first)
    scene.recover(second)
    scene.wait_mirrored({second: "980"})
    fell = scene.degrade(first)
    scene.wait_placed("web", second, second, second)
    scene.ground.wait_complete(workload)
    assert len(scene.departures(fell)) == 3, "nobody had to leave twice"
    assert scene.ever_placed() == {first, second}


@STORIES.under(PLACING)
def who_finds_no_node_waits_and_the_scheduler_says_why(scene: PlacementScene) -> None:
    node, low = scene.place_node("a", GOOD), scene.place_node("b", BAD)
    scene.wait_mirrored({node: "980", low: "940"})
    scene.opt_in(DEMANDING)
    deploy(scene, 2)
    scene.wait_placed("web", node, node)
    fell = scene.degrade(node)
    scene.wait_pending("web", NO_NODE, pods=2)
    assert len(scene.departures(fell)) == 2, "nobody was tried on the other node"
    scene.recover(low)
    scene.wait_placed("web", low, low)


@STORIES.under(PLACING)
def nodes_are_added_and_only_good_ones_are_used(scene: PlacementScene) -> None:
    low = scene.place_node("a", BAD)
    scene.wait_mirrored({low: "940"})
    scene.opt_in(DEMANDING)
    deploy(scene, 2)
    scene.wait_pending("web", NO_NODE, pods=2)
    scene.add_node("b", BAD)
    good = scene.add_node("c", GOOD)
    scene.wait_placed("web", good, good)
    assert scene.ever_placed() == {good}


@STORIES.under(PLACING)
def what_a_pod_asked_for_itself_still_holds(scene: PlacementScene) -> None:
    """Two alternatives of its own: of each, only nodes that suit are left."""
    nodes = {
        name: scene.place_node(name, value, labels={"disk": disk})
        for name, value, disk in (("slow", GOOD, "hdd"), ("bad", BAD, "ssd"), ("good", GOOD, "nvme"))
    }
    scene.wait_mirrored({nodes["slow"]: "980", nodes["bad"]: "940", nodes["good"]: "980"})
    scene.opt_in(DEMANDING)
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": [disk]}]} for disk in ("ssd", "nvme")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    scene.place("web", DEMANDING, spec={"affinity": {"nodeAffinity": required}})
    scene.wait_placed("web", nodes["good"])


def shelf(value: str, effect: str = "NoSchedule") -> Json:
    return {"key": "shelf", "value": value, "effect": effect}


def above(value: str, effect: str = "NoSchedule") -> Json:
    return toleration("Gt", value, key="shelf", effect=effect)


@STORIES.under(ONLY)
def no_schedule_lets_in_who_tolerates_the_value_and_evicts_nobody(scene: PlacementScene) -> None:
    low, good = scene.place_node("a", shelf("940")), scene.place_node("b", shelf("980"))
    scene.wait_mirrored({low: "940", good: "980"}, "shelf")
    scene.opt_in(above("950"))
    scene.place("web", above("950"))
    scene.wait_placed("web", good)
    scene.place("other")
    scene.wait_pending("other", "untolerated taint")
    scene.place("demanding", above("990"))
    scene.wait_pending("demanding", NO_NODE)
    scene.cluster.set_taints(good, [shelf("900")])
    scene.wait_mirrored({good: "900"}, "shelf")
    scene.place("web-2", above("950"))
    scene.wait_pending("web-2", NO_NODE)
    assert scene.placed("web") == [good], "as with NoSchedule in Kubernetes"


@STORIES.under(ONLY)
def nodes_that_are_not_tolerated_are_used_last_by_prefer_no_schedule(scene: PlacementScene) -> None:
    soft = "PreferNoSchedule"
    low, good = scene.place_node("a", shelf("940", soft)), scene.place_node("b", shelf("980", soft))
    scene.wait_labels({low: "940", good: "980"}, "prefer-value.taintwarden.io/shelf")
    scene.opt_in(above("950", soft))
    for number in range(4):
        scene.place(f"web-{number}", above("950", soft))
        scene.wait_placed(f"web-{number}", good)
    scene.cordon([good])
    scene.place("last", above("950", soft))
    scene.wait_placed("last", low)
