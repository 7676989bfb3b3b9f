"""The user stories of KEP-5471 and KEP-5721 with the real API server, scheduler and operator.

Those of KEP-5471 are played twice. With the feature gate TaintTolerationComparisonOperators pods have the native
tolerations as the KEP writes them. Without it the API server refuses those: then the same stand in the annotation, the
webhook adds what the scheduler needs, and it has to end alike. The operators of KEP-5721 are refused either way.

The example of KEP-5471 for story 2 tolerates `Gt 950` and has a node of 950, where such a pod cannot run: `Gt` is
strict. So the story has better nodes, too. Names, keys, values and resources are the KEPs'; a node selector keeps the
stories apart.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from controlplane import ApiError, Json
from controlplane.comparisons import NOT_KNOWN
from e2e.conftest import FEATURE_GATES, started_working_cluster
from e2e.limit_scenes import LEAVE_SECONDS, SCENE_LABEL
from e2e.placement_scenes import PlacementScene, placing
from e2e.replay.pod_watch import RUN_LABEL
from e2e.stories import EARLY_SECONDS, Stories, Story, Told, annotation, toleration
from taintwarden.api.placement_labels import label_version_label
from taintwarden.engine.versions import parse_version
from taintwarden_placement.node_labels import encode_version

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
GPU = "nvidia.com/gpu"

pytestmark = pytest.mark.timeout(800)  # the first test waits for the cluster, and each for its story


@dataclass
class KepScene(PlacementScene):
    """A scene on a cluster with the feature gate of KEP-5471 on or off."""

    gate: bool = field(kw_only=True)

    def asking(self, *tolerations: Json) -> Json:
        """What of a pod says that it tolerates this: its tolerations where the server takes them."""
        return {"tolerations": tolerations} if self.gate else {"annotations": annotation(*tolerations)}

    def pod_of(self, name: str, tolerations: list[Json], requests: Json | None = None) -> str:
        """Create a pod of KEP-5471, which asks for resources, if any."""
        resources = {"requests": requests, "limits": requests} if requests else {}
        containers = [{"name": "main", "image": "none", "resources": resources}]
        return self.place(name, spec={"containers": containers}, **self.asking(*tolerations))

    def wait_repelled(self, app: str) -> None:
        """Wait until the scheduler finds no node because of what taints say."""
        self.wait_pending(app, "untolerated taint" if self.gate else "didn't match Pod's node affinity/selector")

    def wait_gone(self, app: str) -> None:
        self.wait(lambda: self.placed(app) == [], LEAVE_SECONDS, f"{app} to leave")


@pytest.fixture(scope="class")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """The stories on a cluster whose API server takes the native tolerations of KEP-5471, or does not."""
    gate = request.cls.gate
    gates, scene = dict.fromkeys(FEATURE_GATES, gate), partial(KepScene, gate=gate)
    with (
        started_working_cluster(request, tmp_path_factory.mktemp("gates"), gates) as ground,
        placing(request, ground, tmp_path_factory.mktemp("keps"), of(gate=gate), POLICIES, scene) as told,
    ):
        yield told


def of(*, gate: bool) -> list[Story]:
    """The stories in which the gate makes a difference, or all."""
    return [one for one in STORIES if one.play.__name__.startswith("kep_5471") or not gate]


def sla(value: str, effect: str = "NoSchedule") -> Json:
    return {"key": SLA, "value": value, "effect": effect}


def above(value: str, **more: object) -> Json:
    return toleration("Gt", value, key=SLA, **{**NO_SCHEDULE, **more})


@STORIES.under(SHADOW)
def kep_5471_story_1_spot_nodes_repel_all_but_those_who_opt_in(scene: KepScene) -> None:
    """Nodes are added while pods wait, and one is tainted anew while they run."""
    scene.opt_in(above("950"))
    spot = scene.add_node("spot-node-1", sla("800"))
    scene.place("no-toleration")
    scene.pod_of("cost-optimized", [above("750")])
    scene.pod_of("flexible-sla-workload", [toleration("Equal", "900", key=SLA, **NO_SCHEDULE), above("900")])
    scene.pod_of("critical-workload", [above("950")])
    scene.wait_placed("cost-optimized", spot)
    scene.wait_repelled("flexible-sla-workload")
    middle = scene.add_node("middle", sla("900"))
    scene.wait_placed("flexible-sla-workload", middle)
    scene.wait_repelled("critical-workload")
    demanded = scene.add_node("ondemand-node-1", sla("980"))
    scene.wait_placed("critical-workload", demanded)
    scene.wait_pending("no-toleration", "untolerated taint")
    scene.cluster.set_taints(demanded, [sla("920")])
    scene.wait_gone("critical-workload")
    assert scene.placed("flexible-sla-workload") == [middle]
    assert scene.placed("cost-optimized") == [spot]


@STORIES.under(EXECUTE)
def kep_5471_story_2_inference_leaves_a_node_that_falls_below_its_objective(scene: KepScene) -> None:
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
        **scene.asking(needed),
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


@STORIES.under(SHADOW)
def kep_5471_story_3_training_uses_cheap_nodes_and_keeps_some_roles_off_them(scene: KepScene) -> None:
    """One parameter server and two workers, with the graphics processors that they ask for."""
    scene.opt_in(above("999"))
    scene.pod_of("parameter-server", [above("999")], {GPU: "1"})
    for number in (1, 2):
        scene.pod_of(f"training-worker-{number}", [above("800")], {GPU: "4"})
    spot = scene.add_node("spot", sla("850"), **processors("9"))
    scene.wait_placed("training-worker-1", spot)
    scene.wait_placed("training-worker-2", spot)
    scene.wait_repelled("parameter-server")
    demanded = scene.add_node("ondemand", sla("1000"), **processors("8"))
    scene.wait_placed("parameter-server", demanded)


def processors(number: str) -> Json:
    amount = {GPU: number, "cpu": "64", "memory": "256Gi", "pods": "250"}
    return {"capacity": amount, "allocatable": amount}


def version(key: str, value: str) -> Json:
    return {"key": key, "value": value, "effect": "NoSchedule"}


def compares(operator: str, value: str, key: str) -> Json:
    return toleration(operator, value, key=key, **NO_SCHEDULE)


def assert_refused(scene: KepScene, spec: Json) -> None:
    """The API server takes no operator for versions, whether the gate is on or off."""
    with pytest.raises(ApiError, match="Semver") as refused:
        scene.place("refused", spec=spec)
    assert refused.value.status == 422


def affinity(key: str, operator: str, value: str) -> Json:
    expression = {"key": key, "operator": operator, "values": [value]}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@STORIES.under(VERSIONS)
def kep_5721_story_1_pods_wait_for_nodes_with_a_new_kubelet(scene: KepScene) -> None:
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
    scene.wait_gone("modern-app")
    scene.wait_mirrored({first: "v1.31.7", second: "v1.33.0"}, KUBELET)
    scene.place("modern-app-2", modern)
    scene.wait_placed("modern-app-2", second)


def annotated(node_affinity: Json) -> Json:
    """The same affinity where every server takes it."""
    return {"annotations": {"taintwarden.io/node-affinity": json.dumps(node_affinity["nodeAffinity"])}}


def labelled(scene: KepScene, name: str, key: str, version: str) -> str:
    """A node with a version in a label, which is repeated as a number."""
    node = scene.place_node(name, labels={key: version})
    number = encode_version(parse_version(version))
    scene.wait_labels({node: str(number)}, label_version_label(key))
    return node


@STORIES.under(LABELS)
def kep_5721_story_1_by_node_affinity_on_a_label(scene: KepScene) -> None:
    """As the KEP writes it, but for the place: in the annotation."""
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


@STORIES.under(LABELS)
def kep_5721_story_3_by_node_affinity_on_a_label(scene: KepScene) -> None:
    scene.wait_completed(toleration("Exists"))
    modern = affinity(RUNTIME_LABEL, "SemverGt", "2.0.0")
    labelled(scene, "old", RUNTIME_LABEL, "1.6.8")
    labelled(scene, "same", RUNTIME_LABEL, "2.0.0")
    scene.place("modern-app", spec={"hostUsers": False}, **annotated(modern))
    scene.wait_pending("modern-app", "node affinity")
    new = labelled(scene, "new", RUNTIME_LABEL, "2.1.4")
    scene.wait_placed("modern-app", new)


@STORIES.under(VERSIONS)
def kep_5721_story_2_some_pods_tolerate_an_old_network_plugin(scene: KepScene) -> None:
    """As the KEP writes it, but for the place: the server refuses the toleration, so it stands in the annotation."""
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


@STORIES.under(VERSIONS)
def kep_5721_story_3_sensitive_pods_need_a_new_container_runtime(scene: KepScene) -> None:
    """The KEP writes node affinity; refused. Nor may a taint say `containerd://2.1.4`: the scheme is dropped."""
    assert_refused(scene, {"hostUsers": False, "affinity": affinity(RUNTIME, "SemverGt", "2.0.0")})
    modern = compares("SemverGt", "2.0.0", RUNTIME)
    scene.opt_in(modern)
    old = scene.add_node("old", version(RUNTIME, "1.6.8"))
    with pytest.raises(ApiError, match="containerd"):
        scene.cluster.set_taints(old, [version(RUNTIME, "containerd://2.1.4")])
    scene.add_node("same", version(RUNTIME, "2.0.0"))
    scene.place("modern-app", modern, spec={"hostUsers": False})
    scene.wait_pending("modern-app", "node affinity")
    new = scene.add_node("new", version(RUNTIME, "2.1.4"))
    scene.wait_placed("modern-app", new)


@pytest.mark.skipif(not FEATURE_GATES, reason=NOT_KNOWN)
class TestWithTheGate:
    gate = True

    @pytest.mark.parametrize("story", of(gate=True), ids=str)
    def test_story(self, told: Told, story: Story) -> None:
        told.judge(story)


class TestWithoutTheGate:
    gate = False

    @pytest.mark.parametrize("story", of(gate=False), ids=str)
    def test_story(self, told: Told, story: Story) -> None:
        told.judge(story)

    def test_the_shipped_rights_suffice(self, told: Told) -> None:
        told.judge_rights()
