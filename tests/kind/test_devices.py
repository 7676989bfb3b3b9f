"""KEP-5471, stories 4 and 5, with real kubelets: pods with claims leave a sick device for one that is well.

Two nodes have two devices each, of a driver that publishes them and prepares claims. The operator has the rights of
the shipped component only. Kubernetes' own eviction for taints of devices runs beside it.
"""

import time
from collections.abc import Iterator

import pytest

from controlplane import Cluster, Json, wait_until
from controlplane.binaries import ROOT
from e2e.stories import annotation
from kind.devices import NAME, NodeDriver, build, device_of
from kind.installation import Installation, KubeCtl
from kind.scene import LEAVE_SECONDS, Scene

BINDING = ROOT / "deploy" / "components" / "devices" / "binding.yaml"
KEY = f"{NAME}/health"
CLAIM = "gpu"
STAYS_SECONDS = 4
GRACE_SECONDS = 30
GOOD, BAD = "960", "940"


@pytest.fixture(scope="module")
def rights(on_cluster: KubeCtl) -> Iterator[None]:
    """The component, as it is shipped."""
    on_cluster("apply", "-f", BINDING)
    yield
    on_cluster("delete", "-f", BINDING)


@pytest.fixture(scope="module")
def driver(cluster: Cluster, workers: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeDriver]:
    started = NodeDriver(cluster, workers[:2], Installation(cluster).image)
    try:
        started.start(build(tmp_path_factory.mktemp("driver")))
        yield started
    finally:
        started.stop()


@pytest.fixture
def park(scene: Scene, driver: NodeDriver, rights: None) -> Scene:
    """With a template for claims for one device. No device has a taint."""
    driver.well()
    exactly = {"deviceClassName": NAME}
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    scene.cluster.create("resourceclaimtemplates", {"metadata": {"name": CLAIM}, "spec": {"spec": claim}}, scene.name)
    return scene


def deploy(scene: Scene, stop_seconds: float = 0) -> None:
    """A Deployment whose pod has a device, and accepts values of its taint above 950."""
    template = scene.template(
        stop_seconds=stop_seconds,
        annotations=annotation({"key": KEY, "operator": "Gt", "value": "950"}),
        container={"resources": {"claims": [{"name": "gpu"}]}},
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": CLAIM}],
    )
    scene.workload("deployments", "web", template, replicas=1)


def follow(scene: Scene, **spec: object) -> None:
    """The policy is in force, and devices are known."""
    scene.policy(devices=[{"driver": NAME, "effects": ["NoSchedule"], "key": KEY, "valueType": "Integer"}], **spec)
    scene.wait_enforcing()

    def known() -> bool:
        conditions = scene.status().get("conditions", [])
        return any(one["type"] == "DevicesKnown" and one["status"] == "True" for one in conditions)

    wait_until(known, LEAVE_SECONDS, "devices to be known")


def devices(scene: Scene) -> dict[str, tuple[str, str]]:
    """The device of each running pod, as node and name."""
    claims = scene.cluster.items("resourceclaims", scene.name)
    running = scene.running()
    return {
        pod["metadata"]["name"]: device_of(claims, pod["metadata"])
        for pod in scene.pods()
        if pod["metadata"]["name"] in running
    }


def wait_stored(scene: Scene, node: str, value: str) -> None:
    """Wait until the operator has seen this value of a device."""

    def stored() -> bool:
        return f'"{value}"' in scene.cluster.get("nodes", node)["metadata"]["annotations"].get(
            "taintwarden.io/taint-history", ""
        )

    wait_until(stored, LEAVE_SECONDS, f"{value} to be stored")


def stays(scene: Scene, *names: str) -> None:
    with pytest.raises(TimeoutError):
        wait_until(lambda: not set(names) <= scene.running().keys(), STAYS_SECONDS, "a pod to leave, which none should")


def test_a_pod_leaves_a_sick_device_and_gets_another(park: Scene, driver: NodeDriver) -> None:
    deploy(park, stop_seconds=3)
    [(name, node)] = park.wait_running().items()
    uid = park.cluster.get("pods", name, park.name)["metadata"]["uid"]
    follow(park)
    before = devices(park)[name]
    assert before[0] == node
    driver.taint(before, KEY, GOOD)
    wait_stored(park, node, GOOD)
    stays(park, name)
    driver.taint(before, KEY, BAD)
    wait_until(lambda: reason(park, name) == "EvictionByEvictionAPI", LEAVE_SECONDS, "the pod to be evicted")
    park.wait_gone(name, uid, time.monotonic())
    park.wait_running()
    [(other, after)] = devices(park).items()
    assert (other != name, after != before) == (True, True)
    wait_until(lambda: len(claims(park)) == 1, LEAVE_SECONDS, "the kubelet to give the first device back")


def reason(scene: Scene, name: str) -> str:
    """Why a pod is disrupted."""
    pod = scene.cluster.get("pods", name, scene.name)
    return next((one["reason"] for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget"), "")


def claims(scene: Scene) -> list[Json]:
    return scene.cluster.items("resourceclaims", scene.name)


def test_a_restart_in_the_grace_moves_no_deadline(park: Scene, driver: NodeDriver, operator: Installation) -> None:
    operator.replace_restarted()
    deploy(park)
    [(name, node)] = park.wait_running().items()
    uid = park.cluster.get("pods", name, park.name)["metadata"]["uid"]
    follow(park, timing={"violationGraceSeconds": GRACE_SECONDS})
    device = devices(park)[name]
    driver.taint(device, KEY, GOOD)
    wait_stored(park, node, GOOD)
    since = time.monotonic()
    driver.taint(device, KEY, BAD)
    wait_stored(park, node, BAD)
    leader = operator.leader()
    operator.crash(leader)
    operator.wait_restarted(leader)
    stays(park, name)
    seconds = park.wait_gone(name, uid, since, GRACE_SECONDS + LEAVE_SECONDS)
    assert seconds >= GRACE_SECONDS - 1
    park.wait_running()
    assert device not in devices(park).values()
