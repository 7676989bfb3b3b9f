"""The scheduler extender with the real kube-scheduler: the stories of KEP-5471 and KEP-5721, and what may go wrong."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from controlplane import Cluster, ControlPlane, Extender, Json, Webhook, wait_until, webhook_setup
from controlplane.api_server import free_port
from controlplane.comparisons import known_gates
from e2e.conftest import FEATURE_GATES
from e2e.extender_scenes import Double, SchedulingScene, configuration, installed, serving
from e2e.stories import taint

SLA, CNI = "node.kubernetes.io/sla", "cni.projectcalico.org/version"
KUBELET, RUNTIME = "node.kubernetes.io/kubelet-version", "node.kubernetes.io/container-runtime-version"
KERNEL = "node.kubernetes.io/kernel-version"
FAILING = "failing-scheduler"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
NATIVE = pytest.param("native", marks=pytest.mark.skipif(not known_gates(), reason="needs the feature gate"))

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.in_time("the extender answers by what it has heard of, and the scheduler asks it once"),
]


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a scheduler of its own, not --kubeconfig")
    with ControlPlane(tmp_path_factory.mktemp("extender"), feature_gates=FEATURE_GATES) as started:
        installed(started)
        yield started


@pytest.fixture(scope="module")
def meddler() -> Iterator[Double]:
    """An extender that is asked after ours: between its answer and the binding."""
    with Double() as double:
        yield double


@pytest.fixture(scope="module")
def extender(ground: ControlPlane, meddler: Double) -> Iterator[Extender]:
    """Ours, with a scheduler that asks it as shipped."""
    with serving(ground, ground.folder) as (extender, entry):
        ground.start_configured_scheduler("scheduler", configuration(entry, meddler.entry))
        yield extender


@pytest.fixture(scope="module")
def failing(ground: ControlPlane) -> Iterator[Double]:
    """An extender that does what a test says, with a scheduler of its own."""
    with Double() as double:
        ground.start_configured_scheduler("failing", configuration(double.entry, scheduler=FAILING))
        yield double


@pytest.fixture
def cluster(ground: ControlPlane) -> Cluster:
    return ground.client


@pytest.fixture
def control_plane(ground: ControlPlane) -> ControlPlane:
    return ground


@pytest.fixture
def scene(extender: Extender, cluster: Cluster, namespace: str) -> SchedulingScene:
    return SchedulingScene(cluster, namespace)


@pytest.fixture
def failing_scene(failing: Double, cluster: Cluster, namespace: str) -> SchedulingScene:
    return SchedulingScene(cluster, namespace, FAILING)


def sla(value: object, effect: str = "NoSchedule") -> Json:
    return taint(str(value), SLA, effect)


def compares(operator: str, value: object, key: str = SLA, effect: str = "NoSchedule", **more: object) -> Json:
    return {"key": key, "operator": operator, "value": str(value), "effect": effect, **more}


def required(key: str, operator: str, *values: str) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def tolerating(scene: SchedulingScene, way: str, name: str, *tolerations: Json) -> str:
    """A pod that has its tolerations in the annotation, or in spec.tolerations where the feature gate takes them."""
    return scene.pod(name, *tolerations) if way == "extender" else scene.pod(name, native=list(tolerations))


# -- KEP-5471: the same placements by the extender and natively -------------------------------------------------------


@pytest.mark.parametrize("way", ["extender", NATIVE])
def test_kep_5471_story_1_only_who_opts_in_lands_on_spot_nodes(scene, way):
    spot = scene.node("spot", sla(800))
    tolerating(scene, way, "cost-optimized", compares("Gt", 750))
    tolerating(scene, way, "critical", compares("Gt", 950))
    tolerating(scene, way, "flexible", compares("Equal", 900), compares("Gt", 900))
    tolerating(scene, way, "plain")
    scene.wait_placed("cost-optimized", spot)
    told = "is not tolerated" if way == "extender" else "untolerated taint"
    scene.wait_pending("critical", told)
    scene.wait_pending("flexible", told)
    scene.wait_pending("plain", "untolerated taint")
    middle = scene.node("middle", sla(900))
    scene.wait_placed("flexible", middle)
    reliable = scene.node("reliable", sla(951))
    scene.wait_placed("critical", reliable)


@pytest.mark.parametrize("way", ["extender", NATIVE])
def test_kep_5471_story_2_inference_waits_for_a_node_above_its_threshold(scene, way):
    """The evictions of the story are in test_kep_stories.py."""
    scene.node("at", sla(950, "NoExecute"))
    tolerating(scene, way, "inference", compares("Gt", 950, effect="NoExecute", tolerationSeconds=30))
    scene.wait_pending("inference", "is not tolerated" if way == "extender" else "untolerated taint")
    above = scene.node("above", sla(951, "NoExecute"))
    scene.wait_placed("inference", above)


@pytest.mark.parametrize("way", ["extender", NATIVE])
def test_kep_5471_story_3_roles_of_a_training_get_what_they_need(scene, way):
    cheap = scene.node("cheap", sla(850))
    tolerating(scene, way, "training-worker", compares("Gt", 800))
    scene.wait_placed("training-worker", cheap)
    tolerating(scene, way, "parameter-server", compares("Gt", 999))
    scene.wait_pending("parameter-server", "is not tolerated" if way == "extender" else "untolerated taint")
    dear = scene.node("dear", sla(1000))
    scene.wait_placed("parameter-server", dear)


# -- KEP-5721: as the KEP writes it, but for the place ----------------------------------------------------------------


def test_kep_5721_story_1_pods_wait_for_a_new_kubelet(scene):
    old = scene.node("a", **{KUBELET: "v1.31.7"})
    scene.pod("modern-app", affinity=required(KUBELET, "SemverGt", "v1.31.99"))
    scene.wait_pending("modern-app", f"{KUBELET} SemverGt 'v1.31.99' does not hold for 'v1.31.7'")
    scene.cluster.patch("nodes", old, {"metadata": {"labels": {KUBELET: "v1.32.0"}}})
    scene.wait_placed("modern-app", old)


def test_kep_5721_story_2_some_pods_tolerate_an_old_network_plugin(scene):
    old = scene.node("old-cni-node-1", taint("v3.27.2", CNI, "NoSchedule"))
    scene.pod("tolerant-pod", compares("SemverLt", "v3.28.0", CNI))
    scene.pod("stricter-pod", compares("SemverLt", "v3.27.2", CNI))
    scene.pod("other-pod")
    scene.wait_placed("tolerant-pod", old)
    scene.wait_pending("stricter-pod", f"taint {CNI}=v3.27.2:NoSchedule is not tolerated")
    scene.wait_pending("other-pod", "untolerated taint")


def test_kep_5721_story_3_sensitive_pods_need_a_new_container_runtime(scene):
    scene.node("old", **{RUNTIME: "1.6.8"})
    scene.node("same", **{RUNTIME: "2.0.0"})
    scene.node("odd", **{RUNTIME: "containerd-2.1.4"})
    scene.pod("modern-app", affinity=required(RUNTIME, "SemverGt", "2.0.0"), spec={"hostUsers": False})
    scene.wait_pending("modern-app", "cannot compare the label's value 'containerd-2.1.4': the label is no version")
    new = scene.node("new", **{RUNTIME: "2.1.4"})
    scene.wait_placed("modern-app", new)


def test_kep_5721_story_4_a_volume_needs_a_new_kernel(scene):
    scene.node("old", **{KERNEL: "5.4.0"})
    volume = database_with_volume(scene, bound=True)
    scene.wait_pending("database", f"the node affinity of PersistentVolume {volume} does not match")
    new = scene.node("new", **{KERNEL: "5.15.0"})
    scene.wait_placed("database", new)


def test_a_pod_waits_until_the_claim_that_names_a_volume_is_bound_to_it(scene):
    """Also of a class that waits for a consumer: so the volume is always known when the extender is asked."""
    scene.node("old", **{KERNEL: "5.4.0"})
    volume = database_with_volume(scene, bound=False)
    scene.wait_pending("database", "unbound immediate PersistentVolumeClaims")
    scene.cluster.annotate("persistentvolumeclaims", "data", BOUND, scene.namespace)
    scene.wait_pending("database", f"the node affinity of PersistentVolume {volume} does not match")


def database_with_volume(scene: SchedulingScene, *, bound: bool) -> str:
    """A pod whose claim names a volume that needs a new kernel; returns the name of the volume."""
    volume = f"{scene.namespace}-pv"
    terms = {"nodeSelectorTerms": required(KERNEL, "SemverGt", "5.10.0").popitem()[1]["nodeSelectorTerms"]}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": waiting_class(scene)}
    spec = {**common, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
    annotations = {"taintwarden.io/node-affinity": json.dumps({"required": terms})}
    scene.cluster.create("persistentvolumes", {"metadata": {"name": volume, "annotations": annotations}, "spec": spec})
    request = {**common, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
    metadata = {"name": "data", "annotations": BOUND if bound else {}}
    scene.cluster.create("persistentvolumeclaims", {"metadata": metadata, "spec": request}, scene.namespace)
    mounted = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    scene.pod("database", spec=mounted)
    return volume


def waiting_class(scene: SchedulingScene) -> str:
    name = f"{scene.namespace}-waiting"
    body = {"metadata": {"name": name}, "provisioner": "none", "volumeBindingMode": "WaitForFirstConsumer"}
    scene.cluster.create("storage.k8s.io/v1/storageclasses", body)
    return name


def test_the_order_of_pre_releases_counts(scene):
    scene.node("rc1", **{KUBELET: "v1.32.0-rc.1"})
    later = scene.node("rc2", **{KUBELET: "v1.32.0-rc.2"})
    scene.pod("app", affinity=required(KUBELET, "SemverGt", "v1.32.0-rc.1"))
    scene.wait_placed("app", later)


# -- more of what may be said -----------------------------------------------------------------------------------------


def test_a_taint_that_is_preferably_avoided_is_avoided_where_there_is_a_choice(scene):
    scene.node("low", sla(900, "PreferNoSchedule"))
    high = scene.node("high", sla(990, "PreferNoSchedule"), which="best")
    scene.wait_both_known(high)
    for number in range(3):
        scene.pod(f"app-{number}", compares("Gt", 950, effect="PreferNoSchedule"))
        scene.wait_placed(f"app-{number}", high)


def test_preferred_versions_are_chosen_where_there_is_a_choice(scene):
    scene.node("old", **{KUBELET: "v1.31.0"})
    new = scene.node("new", which="best", **{KUBELET: "v1.32.0"})
    scene.wait_both_known(new)
    term = required(KUBELET, "SemverGt", "v1.31.99").popitem()[1]["nodeSelectorTerms"][0]
    preferred = [{"weight": 100, "preference": term}]
    for number in range(3):
        scene.pod(f"app-{number}", affinity={"preferredDuringSchedulingIgnoredDuringExecution": preferred})
        scene.wait_placed(f"app-{number}", new)


def test_profiles_count(scene):
    scene.node("low", sla(900), **{KUBELET: "v1.31.0"})
    kind = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TolerationProfile", "metadata": {"name": "gold"}}
    spec = {"tolerations": [compares("Gt", 950)], "nodeAffinity": required(KUBELET, "SemverGt", "v1.31.99")}
    scene.cluster.create("tolerationprofiles", {**kind, "spec": spec}, scene.namespace)
    exists = [{"key": SLA, "operator": "Exists"}]
    scene.pod("app", native=exists)
    scene.wait_pending("app", f"taint {SLA}=900:NoSchedule is not tolerated")
    scene.wait_pending("app", "the node affinity of profile gold does not match")
    good = scene.node("good", sla(960), **{KUBELET: "v1.32.0"})
    scene.wait_placed("app", good)


@pytest.mark.parametrize(
    ("affinity", "told"),
    [
        ("{", "is not JSON"),
        (required(KUBELET, "SemverGe", "1.0.0"), "must be one of"),
        (required(KUBELET, "SemverGt", "newest"), "is not a version"),
        ({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [1] * 10_000}}, "has 10000 items"),
    ],
)
def test_an_affinity_that_cannot_be_read_is_told(scene, affinity, told):
    scene.node("any")
    scene.pod("app", affinity=affinity)
    scene.wait_pending("app", "annotation taintwarden.io/node-affinity is invalid, so no node matches")
    assert told in scene.reason("app")
    assert "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling." in scene.reason("app")


def test_a_value_that_is_none_is_told(scene):
    scene.node("odd", sla("high"))
    scene.pod("app", compares("Gt", 950))
    scene.wait_pending("app", f"taint {SLA}=high:NoSchedule is not tolerated ({SLA} Gt '950':NoSchedule cannot compare")


def test_no_pod_is_preempted_on_a_node_that_is_refused(scene):
    """Without the verb `preempt` the scheduler would remove the low pod, and place none."""
    name = f"{scene.namespace}-high"
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 9}
    scene.cluster.create("scheduling.k8s.io/v1/priorityclasses", priority)
    node = scene.node("full", sla(900))
    whole = {"containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "60"}}}]}
    scene.pod("low", compares("Gt", 800), spec=whole)
    scene.wait_placed("low", node)
    scene.pod("high", compares("Gt", 950), spec={**whole, "priorityClassName": name})
    scene.wait_pending("high", "Insufficient cpu")
    assert "deletionTimestamp" not in scene.cluster.get("pods", "low", scene.namespace)["metadata"]
    scene.pod("able", compares("Gt", 800), spec={**whole, "priorityClassName": name})

    def leaves() -> bool:
        low = scene.cluster.find("pods", "low", scene.namespace)
        return low is None or "deletionTimestamp" in low["metadata"]

    wait_until(leaves, 30, "the low pod to be preempted for one that may go there")
    scene.cluster.delete("scheduling.k8s.io/v1/priorityclasses", name)


def test_beside_the_webhook_a_pod_needs_its_annotations_only(scene, ground, tmp_path):
    """No policy is there: nothing but the extender keeps the pod off."""
    low = scene.node("low", sla(900), **{KUBELET: "v1.32.0"})
    port = free_port()
    webhook_setup.install(ground.client, port)
    scene.cluster.patch("namespaces", scene.namespace, {"metadata": {"labels": {"taintwarden.io/inject": "true"}}})
    kubeconfig, flags = ground.webhook_kubeconfig(), ["--placement=extender"]
    try:
        with Webhook(kubeconfig, tmp_path, port, args=flags):
            webhook_setup.trust(ground)
            wait_until(lambda: is_completed(scene), 60, "pods to be completed")
            affinity = required(KUBELET, "SemverGt", "v1.31.99")
            scene.pod("app", compares("Gt", 950), affinity=affinity, native=[])
            scene.pod("modest", compares("Gt", 800), affinity=affinity, native=[])
    finally:
        webhook_setup.remove(ground.client)
    scene.wait_placed("modest", low)
    scene.wait_pending("app", f"taint {SLA}=900:NoSchedule is not tolerated")
    stored = scene.cluster.get("pods", "app", scene.namespace)["spec"]
    assert "affinity" not in stored
    high = scene.node("high", sla(980), **{KUBELET: "v1.32.0"})
    scene.wait_placed("app", high)


def is_completed(scene: SchedulingScene) -> bool:
    body = {
        "metadata": {
            "name": "rehearsed",
            "annotations": {"taintwarden.io/tolerations": json.dumps([compares("Gt", 950)])},
        },
        "spec": {"containers": [{"name": "main", "image": "none"}], "automountServiceAccountToken": False},
    }
    found = scene.cluster.create("pods", body, scene.namespace, dryRun="All")["spec"].get("tolerations", [])
    return any(one.get("key") == SLA for one in found)


def test_in_a_large_cluster_every_node_is_looked_at(scene):
    """By default the scheduler stops at 100 nodes that suit by its own plugins, and asks the extender about these."""
    for number in range(104):
        scene.node(f"low-{number}", sla(900))
    scene.pod("app", compares("Gt", 950))
    scene.wait_pending("app", f"104 taint {SLA}=900:NoSchedule is not tolerated")


# -- values that change, and extenders that fail ----------------------------------------------------------------------


def test_a_value_that_changes_between_the_answer_and_the_binding_counts_for_the_next_pod(scene, meddler):
    """As natively: the scheduler does not ask again. A NoExecute taint then has the pod evicted by a policy."""
    node = scene.node("a", sla(980))

    def fall(args: Json) -> bytes:
        scene.cluster.set_taints(node, [sla(900)])
        return json.dumps({"NodeNames": args["NodeNames"]}).encode()

    before, meddler.answer = meddler.answer, fall
    try:
        scene.pod("first", compares("Gt", 950))
        scene.wait_placed("first", node)
    finally:
        meddler.answer = before
    scene.pod("second", compares("Gt", 950))
    scene.wait_pending("second", f"taint {SLA}=900:NoSchedule is not tolerated")


def test_an_extender_that_hangs_delays_a_pod_by_its_timeout_and_is_then_ignored(scene, extender):
    node = scene.node("low", sla(900))
    os.kill(extender.process.pid or 0, signal.SIGSTOP)
    try:
        began = time.monotonic()
        scene.pod("app", compares("Gt", 950))
        scene.wait_placed("app", node)
        assert time.monotonic() - began >= 2
    finally:
        os.kill(extender.process.pid or 0, signal.SIGCONT)
    wait_until(extender.is_ready, 30, "the extender to go on")
    scene.pod("next", compares("Gt", 950))
    scene.wait_pending("next", "is not tolerated")


def test_without_an_extender_pods_are_placed_by_what_the_scheduler_knows(scene, extender):
    node = scene.node("low", sla(900))
    extender.kill9()
    try:
        scene.pod("app", compares("Gt", 950))
        scene.wait_placed("app", node)
    finally:
        extender.start()
    scene.pod("next", compares("Gt", 950))
    scene.wait_pending("next", "is not tolerated")


@pytest.mark.parametrize(
    "nonsense", [b"", b"no JSON", b'{"NodeNames": ["nowhere"]}', b'{"NodeNames": 1}', b'{"Error": "broken"}'], ids=str
)
def test_an_extender_that_answers_nonsense_is_ignored(failing_scene, failing, nonsense):
    node = failing_scene.node("a")
    failing.answer = lambda _: nonsense
    failing_scene.pod("app")
    failing_scene.wait_placed("app", node)


def test_what_it_did_is_counted(scene, extender):
    scene.node("low", sla(900))
    scene.pod("app", compares("Gt", 950))
    scene.wait_pending("app", "is not tolerated")
    assert extender.metric("taintwarden_extender_requests_total", verb="filter", result="answered") >= 1
    assert extender.metric("taintwarden_extender_refused_nodes_total", reason="taint") >= 1
    assert extender.metric("taintwarden_extender_requests_total", result="failed") == 0
    assert extender.metric("taintwarden_extender_requests_total", result="malformed") == 0
