"""Placement with the real scheduler: who has to leave a node is replaced on one that suits, or waits for one."""

import time
from collections.abc import Iterator

import pytest

from controlplane import Json, WorkingCluster
from e2e.limit_scenes import BAD, DEMANDING, GOOD, LEAVE_SECONDS, SCENE_LABEL
from e2e.placement_scenes import PlacementScene, placing
from e2e.replay.pod_watch import RUN_LABEL
from e2e.stories import PATIENCE_SECONDS, Stories, Story, Told, annotation, taint, toleration
from taintwarden.engine.placement.labels import effect_label

PLACING, DRY, NONE, ONLY = "placing", "placing-dry", "placing-none", "placing-only"
TAINTS = [{"key": "sla", "valueType": "Integer", "placement": True}]
POLICIES = {
    PLACING: {"taints": TAINTS},
    # Keys of their own: a policy places the pods that it selects, and these select all.
    DRY: {"taints": [{**TAINTS[0], "key": "dry"}], "mode": "DryRun"},
    NONE: {"taints": [{"key": "none"}]},
    ONLY: {"taints": [{**TAINTS[0], "key": "shelf", "effects": []}]},
}
STORIES = Stories()
REPLICAS, TURNS = 4, 5
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
def values_that_change_again_and_again_move_each_pod_once_a_time(scene: PlacementScene) -> None:
    """One node is good at a time. Its successor is good already when it falls, so nobody has to wait."""
    nodes = [scene.place_node(name, BAD) for name in ("a", "b", "c")]
    scene.recover(nodes[0])
    scene.wait_mirrored({nodes[0]: "980", nodes[1]: "940", nodes[2]: "940"})
    scene.opt_in(DEMANDING)
    workload = deploy(scene, REPLICAS)
    scene.wait_placed("web", *[nodes[0]] * REPLICAS)
    began = time.monotonic()
    for turn in range(1, TURNS + 1):
        good, fallen = nodes[turn % 3], nodes[(turn - 1) % 3]
        scene.recover(good)
        scene.wait_mirrored({good: "980"})
        scene.degrade(fallen)
        scene.wait_placed("web", *[good] * REPLICAS)
        scene.ground.wait_complete(workload)
    assert len(scene.departures(began)) == TURNS * REPLICAS


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
def a_node_without_the_taint_stays_usable(scene: PlacementScene) -> None:
    low, plain = scene.place_node("a", BAD), scene.place_node("b")
    scene.wait_mirrored({low: "940", plain: None})
    scene.wait_labels({plain: "None"}, effect_label("sla"))
    scene.opt_in(DEMANDING)
    scene.place("web", DEMANDING)
    scene.wait_placed("web", plain)


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


@STORIES.under(PLACING)
def what_a_profile_tolerates_counts_as_well(scene: PlacementScene) -> None:
    low, good = scene.place_node("a", BAD), scene.place_node("b", GOOD)
    scene.wait_mirrored({low: "940", good: "980"})
    scene.opt_in(DEMANDING)
    scene.cordon([good])  # or the pod could be there by chance
    kind = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TolerationProfile", "metadata": {"name": "demanding"}}
    profile = {**kind, "spec": {"tolerations": [DEMANDING]}}
    scene.cluster.create("tolerationprofiles", profile, scene.namespace)
    scene.wait(lambda: "affinity" in scene.rehearsed(), PATIENCE_SECONDS, "the profile to count")
    scene.place("web")
    scene.wait_pending("web", NO_NODE)
    scene.cordon([good], off=True)
    scene.wait_placed("web", good)


@STORIES.under(PLACING)
def a_value_that_labels_cannot_say_keeps_pods_away(scene: PlacementScene) -> None:
    """The scheduler would read 0990 as 990, and the pod would have to leave at once."""
    odd = scene.place_node("a", taint("0990"))
    scene.wait_mirrored({odd: ""})
    scene.opt_in(DEMANDING)
    scene.place("web", DEMANDING)
    scene.wait_pending("web", NO_NODE)


@STORIES.under(PLACING)
def a_toleration_of_every_value_restricts_nothing(scene: PlacementScene) -> None:
    low = scene.place_node("a", BAD)
    scene.wait_mirrored({low: "940"})
    scene.opt_in(DEMANDING)
    assert "affinity" not in scene.rehearsed(toleration("Exists"))
    scene.place("web", toleration("Exists"))
    scene.wait_placed("web", low)


@STORIES.under(NONE)
def without_placement_the_scheduler_puts_pods_where_they_have_to_leave(scene: PlacementScene) -> None:
    low, demanding = scene.place_node("a", taint("940", "none")), toleration("Gt", "950", key="none")
    scene.wait_completed(demanding)
    assert "affinity" not in scene.rehearsed(demanding)
    scene.place("web", demanding)
    scene.wait(lambda: scene.ever_placed() == {low}, LEAVE_SECONDS, "the pod to be placed")
    scene.wait(lambda: scene.placed("web") == [], LEAVE_SECONDS, "the pod to leave again")


@STORIES.under(DRY)
def a_rehearsing_policy_places_nobody(scene: PlacementScene) -> None:
    low, demanding = scene.place_node("a", taint("940", "dry")), toleration("Gt", "950", key="dry")
    scene.wait_completed(demanding)
    assert "affinity" not in scene.rehearsed(demanding)
    scene.place("web", demanding)
    scene.wait_placed("web", low)


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
def where_nothing_keeps_a_pod_off_it_does_not_tolerate_no_schedule(scene: PlacementScene) -> None:
    unknown = toleration("Gt", "950", key="unplaced", effect="NoSchedule")
    scene.opt_in(above("950"))
    assert "unplaced" not in {one["key"] for one in scene.rehearsed(unknown)["tolerations"]}
    scene.place_node("a", {**shelf("980"), "key": "unplaced"})
    scene.place("web", unknown)
    scene.wait_pending("web", "untolerated taint")


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


def restricting(spec: Json) -> list[Json]:
    """The terms that a stored pod has."""
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return required["nodeSelectorTerms"]


@STORIES.under(PLACING)
def negative_bounds_are_written_so_that_the_server_takes_them(scene: PlacementScene) -> None:
    zero = scene.place_node("a", taint("0"))
    scene.wait_mirrored({zero: "0"})
    scene.opt_in(DEMANDING)
    scene.place("web", toleration("Gt", "-1"))
    scene.wait_placed("web", zero)
    label = "effect.taintwarden.io/sla"
    assert restricting(scene.rehearsed(toleration("Lt", "-1"))) == [
        {"matchExpressions": [{"key": label, "operator": "In", "values": ["None"]}]}
    ]
