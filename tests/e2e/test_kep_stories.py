"""The user stories of KEP-5471 and KEP-5721 with the real API server, scheduler and operator.

The API server refuses their operators: the tolerations are in the annotation, and the webhook adds what the scheduler
needs. `test_a_native_comparison_is_honoured` of the black box has the feature gate of KEP-5471.

The example of KEP-5471 for story 2 tolerates `Gt 950` and has a node of 950, where such a pod cannot run: `Gt` is
strict. So the story has better nodes, too. Names, keys, values and resources are the KEPs'; a node selector keeps the
stories apart.
"""

import json
import time
from collections.abc import Iterator

import pytest

from controlplane import ApiError, Json
from e2e.conftest import FEATURE_GATES, started_working_cluster
from e2e.limit_scenes import LEAVE_SECONDS, SCENE_LABEL
from e2e.placement_scenes import PlacementScene, placing
from e2e.pod_watch import RUN_LABEL
from e2e.stories import EARLY_SECONDS, RunningStories, Stories, Story, annotation, toleration
from taintwarden.engine.versions import parse_version
from taintwarden_placement.node_labels import encode_version
from taintwarden_placement.node_labels.names import label_version_label

SLA = "node.kubernetes.io/sla"
KUBELET, RUNTIME = "node.kubernetes.io/kubelet-version", "node.kubernetes.io/container-runtime-version"
CNI = "cni.projectcalico.org/version"
SHADOW, EXECUTE, VERSIONS, LABELS = "kep-no-schedule", "kep-no-execute", "kep-versions", "kep-labels"
RUNTIME_LABEL = "example.com/container-runtime-version"
NO_SCHEDULE = {"effect": "NoSchedule"}


def selected(key: str, value_type: str, effect: str) -> Json:
    return {"key": key, "valueType": value_type, "effects": [effect], "placement": True}


POLICIES = {
    # NoSchedule never evicts in Kubernetes. This policy does, when the value falls while pods run.
    SHADOW: {"taints": [selected(SLA, "Integer", "NoSchedule")]},
    EXECUTE: {"taints": [selected(SLA, "Integer", "NoExecute")]},
    VERSIONS: {"taints": [selected(key, "Version", "NoSchedule") for key in (KUBELET, RUNTIME, CNI)]},
    LABELS: {"versionLabels": [KUBELET, RUNTIME_LABEL]},
}
STORIES = Stories()
GRACE_SECONDS = 30
PATIENCE_SECONDS = 20
NO_NODE = "didn't match Pod's node affinity/selector"

pytestmark = pytest.mark.timeout(800)  # the first test waits for the cluster, and each for its story


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStories]:
    """Stories on a cluster whose API server refuses the native tolerations of KEP-5471."""
    gates = dict.fromkeys(FEATURE_GATES, False)
    with (
        started_working_cluster(request, tmp_path_factory.mktemp("gates"), gates) as ground,
        placing(request, ground, tmp_path_factory.mktemp("keps"), STORIES, POLICIES) as running,
    ):
        yield running


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(running: RunningStories, story: Story) -> None:
    running.judge(story)


def test_the_shipped_rights_suffice(running: RunningStories) -> None:
    running.judge_rights()


def wait_gone(scene: PlacementScene, app: str) -> None:
    scene.wait(lambda: scene.placed(app) == [], LEAVE_SECONDS, f"{app} to leave")


def sla(value: str, effect: str = "NoSchedule") -> Json:
    return {"key": SLA, "value": value, "effect": effect}


def above(value: str, **more: object) -> Json:
    return toleration("Gt", value, key=SLA, **{**NO_SCHEDULE, **more})


@STORIES.under(SHADOW)
def kep_5471_story_1_spot_nodes_repel_all_but_those_who_opt_in(scene: PlacementScene) -> None:
    """Nodes are added while pods wait, and one gets another taint while they run."""
    scene.opt_in(above("950"))
    spot = scene.add_node("spot-node-1", sla("800"))
    scene.place("no-toleration")
    scene.place("cost-optimized", above("750"))
    scene.place("flexible-sla-workload", toleration("Equal", "900", key=SLA, **NO_SCHEDULE), above("900"))
    scene.place("critical-workload", above("950"))
    scene.wait_placed("cost-optimized", spot)
    scene.wait_pending("flexible-sla-workload", NO_NODE)
    middle = scene.add_node("middle", sla("900"))
    scene.wait_placed("flexible-sla-workload", middle)
    scene.wait_pending("critical-workload", NO_NODE)
    demanded = scene.add_node("ondemand-node-1", sla("980"))
    scene.wait_placed("critical-workload", demanded)
    scene.wait_pending("no-toleration", "untolerated taint")
    scene.cluster.set_taints(demanded, [sla("920")])
    wait_gone(scene, "critical-workload")
    assert scene.placed("flexible-sla-workload") == [middle]
    assert scene.placed("cost-optimized") == [spot]


@STORIES.under(EXECUTE)
def kep_5471_story_2_inference_leaves_a_node_that_falls_below_its_objective(scene: PlacementScene) -> None:
    """With 30 s of grace, after which the replacements are where they may stay."""
    needed = above("950", effect="NoExecute", seconds=GRACE_SECONDS)
    scene.opt_in(needed)
    scene.add_node("ondemand-node-1", sla("950", "NoExecute"))
    best, other = (
        scene.add_node(f"ondemand-node-{number}", sla(value, "NoExecute")) for number, value in ((2, "980"), (3, "900"))
    )
    workload = scene.ground.create_deployment(
        "inference-service",
        scene.namespace,
        2,
        node_selector={SCENE_LABEL: scene.namespace},
        labels={RUN_LABEL: scene.run},
        annotations=annotation(needed),
    )
    scene.wait_placed("inference-service", best, best)
    scene.cluster.set_taints(other, [sla("990", "NoExecute")])
    scene.wait_mirrored({other: "990"}, SLA)
    fell = time.monotonic()
    scene.cluster.set_taints(best, [sla("940", "NoExecute")])
    departures = scene.wait_departures(2, fell)
    for left in departures:
        latest = GRACE_SECONDS + PATIENCE_SECONDS + scene.lost(fell, left.at)
        assert GRACE_SECONDS - EARLY_SECONDS <= left.at - fell <= latest
    scene.wait_placed("inference-service", other, other)
    scene.ground.wait_complete(workload)
    assert scene.ever_placed() == {best, other}


def version(key: str, value: str) -> Json:
    return {"key": key, "value": value, "effect": "NoSchedule"}


def compares(operator: str, value: str, key: str) -> Json:
    return toleration(operator, value, key=key, **NO_SCHEDULE)


def assert_refused(scene: PlacementScene, spec: Json) -> None:
    """The API server takes no operator for versions, whether the gate is on or off."""
    with pytest.raises(ApiError, match="Semver") as refused:
        scene.place("refused", spec=spec)
    assert refused.value.status == 422


def affinity(key: str, operator: str, value: str) -> Json:
    expression = {"key": key, "operator": operator, "values": [value]}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@STORIES.under(VERSIONS)
def kep_5721_story_1_pods_wait_for_nodes_with_a_new_kubelet(scene: PlacementScene) -> None:
    """The KEP writes node affinity on a label; refused. Here nodes have a taint with their version."""
    assert_refused(scene, {"affinity": affinity(KUBELET, "SemverGt", "v1.31.99")})
    modern = compares("SemverGt", "v1.31.99", KUBELET)
    scene.opt_in(modern)
    first, second = (scene.add_node(name, version(KUBELET, "v1.31.7")) for name in ("a", "b"))
    scene.place("modern-app", modern)
    scene.wait_pending("modern-app", "node affinity")
    scene.cluster.set_taints(first, [version(KUBELET, "v1.32.3")])
    scene.wait_placed("modern-app", first)
    scene.cluster.set_taints(second, [version(KUBELET, "v1.33.0")])
    scene.cluster.set_taints(first, [version(KUBELET, "v1.31.7")])
    wait_gone(scene, "modern-app")
    scene.wait_mirrored({first: "v1.31.7", second: "v1.33.0"}, KUBELET)
    scene.ground.wait_scheduler(first)
    scene.place("modern-app-2", modern)
    scene.wait_placed("modern-app-2", second)


def annotated(node_affinity: Json) -> Json:
    """The affinity as an annotation, which every server accepts."""
    return {"annotations": {"taintwarden.io/node-affinity": json.dumps(node_affinity["nodeAffinity"])}}


def labelled(scene: PlacementScene, name: str, key: str, version: str) -> str:
    """A node with a version in a label, which is repeated as a number."""
    node = scene.place_node(name, labels={key: version})
    number = encode_version(parse_version(version))
    scene.wait_labels({node: str(number)}, label_version_label(key))
    return node


@STORIES.under(LABELS)
def kep_5721_story_1_by_node_affinity_on_a_label(scene: PlacementScene) -> None:
    """The KEP's example, except for its place: it is in the annotation."""
    scene.wait_completed(toleration("Exists"))
    modern = affinity(KUBELET, "SemverGt", "v1.31.99")
    old = labelled(scene, "a", KUBELET, "v1.31.7")
    scene.place("modern-app", **annotated(modern))
    scene.wait_pending("modern-app", "node affinity")
    new = labelled(scene, "b", KUBELET, "v1.32.3")
    scene.wait_placed("modern-app", new)
    scene.cordon([new])
    scene.place("modern-app-2", **annotated(modern))
    scene.wait_pending("modern-app-2", "node affinity")
    scene.cluster.patch("nodes", old, {"metadata": {"labels": {KUBELET: "v1.33.0"}}})  # upgraded
    scene.wait_placed("modern-app-2", old)


@STORIES.under(VERSIONS)
def kep_5721_story_2_some_pods_tolerate_an_old_network_plugin(scene: PlacementScene) -> None:
    """The KEP's example, except for its place: in the annotation, since the server refuses the toleration."""
    assert_refused(scene, {"tolerations": [compares("SemverLt", "v3.28.0", CNI)]})
    tolerant = compares("SemverLt", "v3.28.0", CNI)
    scene.opt_in(tolerant)
    old = scene.add_node("old-cni-node-1", version(CNI, "v3.27.2"))
    scene.place("tolerant-pod", tolerant)
    scene.place("other-pod")
    scene.wait_placed("tolerant-pod", old)
    scene.wait_pending("other-pod", "untolerated taint")
    scene.cluster.set_taints(old, [])  # upgraded
    scene.wait_placed("other-pod", old)
    assert scene.placed("tolerant-pod") == [old]
