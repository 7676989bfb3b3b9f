"""Where kube-scheduler puts pods: by the labels of placement, and by the scheduler extender as documented."""

import base64
import itertools
import json
from collections.abc import Iterator

import pytest
import yaml

from controlplane import OPERATOR_NAMESPACE, Cluster, Json, wait_until
from controlplane.target import EXTENDER as COMPONENT
from kind.control_plane import CONTROL_PLANE, Component
from kind.installation import EXTENDER, Installation, KubeCtl
from kind.nodes import remove_file, write_file
from kind.scene import BAD, GOOD, KEY, Scene, above

CNI = "example.com/cni"
OLD, NEW = "v3.27.2", "v3.28.0"
EXISTS = [{"key": key, "operator": "Exists"} for key in (KEY, CNI)]
"""Native tolerations: kube-scheduler itself then refuses no node because of these taints."""
BY_NUMBER = above()
BY_VERSION = {"key": CNI, "operator": "SemverGt", "value": OLD, "effect": "NoExecute"}
NOWHERE = above(value="10000")
NO_VERSION = {**BY_VERSION, "value": "v10.0.0"}
CONFIGURATION = "/etc/kubernetes/kube-scheduler.yaml"
CERTIFICATE = "/etc/kubernetes/taintwarden-scheduler-extender.crt"
DECIDED_SECONDS = 30
REPLACED_SECONDS = 120
STAMP = "taintwarden-e2e/restarted-at"


@pytest.fixture
def tainted(scene: Scene) -> Scene:
    """Three nodes: the first has the number, the second the version, and the third neither."""
    for node, number, version in zip(scene.workers, (GOOD, BAD, BAD), (OLD, NEW, OLD), strict=True):
        scene.taint(node, number)
        scene.taint(node, version, key=CNI)
    return scene


@pytest.fixture(scope="module")
def extender(cluster: Cluster, on_cluster: KubeCtl) -> Iterator[Installation]:
    """The component, and a kube-scheduler that asks it. Afterwards neither is there."""
    installed = Installation(cluster, EXTENDER)
    scheduler = Component(cluster, "kube-scheduler")
    before = scheduler.manifest
    try:
        on_cluster("apply", "-k", COMPONENT)
        installed.wait_complete()
        write_file(CONTROL_PLANE, CERTIFICATE, certificate(cluster))
        write_file(CONTROL_PLANE, CONFIGURATION, yaml.safe_dump(configuration(cluster)))
        scheduler.run_by(with_configuration(before))
        yield installed
    finally:
        scheduler.run_by(before)
        remove_file(CONTROL_PLANE, CONFIGURATION)
        remove_file(CONTROL_PLANE, CERTIFICATE)
        on_cluster("delete", "-k", COMPONENT, "--ignore-not-found")


def certificate(cluster: Cluster) -> str:
    secret = cluster.get("secrets", EXTENDER, OPERATOR_NAMESPACE)
    return base64.b64decode(secret["data"]["ca.crt"]).decode()


def configuration(cluster: Cluster) -> Json:
    """The shipped one. The network of a node resolves no names of Services, so it has the address."""
    shipped: Json = yaml.safe_load((COMPONENT / "kube-scheduler.yaml").read_text())
    [entry] = shipped["extenders"]
    assert entry["tlsConfig"]["caFile"] == CERTIFICATE
    address = cluster.get("services", EXTENDER, OPERATOR_NAMESPACE)["spec"]["clusterIP"]
    entry["urlPrefix"] = f"https://{address}:443"
    return shipped


def with_configuration(manifest: str) -> str:
    """The static pod of kube-scheduler, with the configuration and what that names."""
    pod = yaml.safe_load(manifest)
    [container] = pod["spec"]["containers"]
    container["command"].append(f"--config={CONFIGURATION}")
    for name, path in (("configuration", CONFIGURATION), ("extender", CERTIFICATE)):
        container["volumeMounts"].append({"name": name, "mountPath": path, "readOnly": True})
        pod["spec"]["volumes"].append({"name": name, "hostPath": {"path": path, "type": "File"}})
    return yaml.safe_dump(pod)


def create(scene: Scene, name: str, *tolerations: Json) -> str:
    """A pod with these extended tolerations, which a native Exists accompanies."""
    template = scene.template(grace_seconds=1, tolerations=EXISTS)
    annotations = {"taintwarden.io/tolerations": json.dumps(tolerations)}
    template["metadata"] |= {"name": name, "annotations": annotations}
    scene.cluster.create("pods", template, scene.name)
    return name


def decision(scene: Scene, name: str) -> str:
    """Wait until the scheduler has decided; the node of the pod, empty if none suits it."""

    def scheduled() -> Json | None:
        status = scene.cluster.get("pods", name, scene.name).get("status", {})
        return next((one for one in status.get("conditions", []) if one["type"] == "PodScheduled"), None)

    wait_until(scheduled, DECIDED_SECONDS, f"{name} to be scheduled, or not")
    return scene.cluster.get("pods", name, scene.name)["spec"].get("nodeName", "")


def assert_placed_by_number_and_version(scene: Scene) -> None:
    first, second, _ = scene.workers
    create(scene, "by-number", BY_NUMBER)
    create(scene, "by-version", BY_VERSION)
    assert scene.wait_running(2) == {"by-number": first, "by-version": second}


def wait_known(scene: Scene) -> None:
    """Wait until the extender knows the taints of all nodes, the last of which is a version."""
    names = (f"probe-{number}" for number in itertools.count())

    def is_refused() -> bool:
        node = decision(scene, name := create(scene, next(names), NO_VERSION))
        scene.cluster.delete("pods", name, scene.name, grace_seconds=0)
        return node == ""

    wait_until(is_refused, DECIDED_SECONDS, "the extender to know the taints")


@pytest.mark.usefixtures("extender")
def test_the_extender_leads_pods_to_nodes_that_they_tolerate(tainted: Scene) -> None:
    wait_known(tainted)
    assert_placed_by_number_and_version(tainted)


def test_an_upgrade_of_the_extender_misplaces_no_pod(tainted: Scene, extender: Installation) -> None:
    wait_known(tainted)
    before = {pod["metadata"]["uid"] for pod in extender.pods()}
    names = (f"web-{number}" for number in itertools.count())

    def replaced() -> bool:
        assert decision(tainted, create(tainted, next(names), NOWHERE)) == ""
        return before.isdisjoint(pod["metadata"]["uid"] for pod in extender.all_pods())

    stamp = {"spec": {"template": {"metadata": {"annotations": {STAMP: tainted.name}}}}}
    extender.cluster.patch("deployments", extender.name, stamp, OPERATOR_NAMESPACE)
    wait_until(replaced, REPLACED_SECONDS, "new pods of the extender")
    extender.wait_complete()
