"""The scheduler extender with the real kube-scheduler: the stories of KEP-5471 and KEP-5721, and what may go wrong."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from controlplane import Cluster, ControlPlane, Extender, Json, Webhook, wait_until, webhook_setup
from controlplane.api_server import free_port
from e2e.conftest import FEATURE_GATES
from e2e.extender_scenes import SchedulingScene, configuration, installed, serving
from e2e.stories import taint

SLA, KUBELET = "node.kubernetes.io/sla", "node.kubernetes.io/kubelet-version"

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a scheduler of its own, not --kubeconfig")
    with ControlPlane(tmp_path_factory.mktemp("extender"), feature_gates=FEATURE_GATES) as started:
        installed(started)
        yield started


@pytest.fixture(scope="module")
def extender(ground: ControlPlane) -> Iterator[Extender]:
    """The operator's extender, with a scheduler that calls it with the shipped configuration."""
    with serving(ground, ground.folder) as (extender, entry):
        ground.start_configured_scheduler("scheduler", configuration(entry))
        yield extender


@pytest.fixture
def cluster(ground: ControlPlane) -> Cluster:
    return ground.client


@pytest.fixture
def scene(extender: Extender, cluster: Cluster, namespace: str) -> SchedulingScene:
    return SchedulingScene(cluster, namespace)


def sla(value: object, effect: str = "NoSchedule") -> Json:
    return taint(str(value), SLA, effect)


def compares(operator: str, value: object, key: str = SLA, effect: str = "NoSchedule", **more: object) -> Json:
    return {"key": key, "operator": operator, "value": str(value), "effect": effect, **more}


def required(key: str, operator: str, *values: str) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def test_preferred_versions_are_chosen_where_there_is_a_choice(scene):
    scene.node("old", **{KUBELET: "v1.31.0"})
    new = scene.node("new", which="best", **{KUBELET: "v1.32.0"})
    scene.wait_both_known(new)
    term = required(KUBELET, "SemverGt", "v1.31.99").popitem()[1]["nodeSelectorTerms"][0]
    preferred = [{"weight": 100, "preference": term}]
    for number in range(3):
        scene.pod(f"app-{number}", affinity={"preferredDuringSchedulingIgnoredDuringExecution": preferred})
        scene.wait_placed(f"app-{number}", new)


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


def test_an_extender_that_hangs_delays_a_pod_by_its_timeout_and_is_then_ignored(scene, extender):
    node = scene.node("low", sla(900))
    scene.pod("before", compares("Gt", 950))
    scene.wait_pending("before", "is not tolerated")
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
