"""Without the built-in controller: the overlay and the sample made for that remove what is on a dead node.

Also a replica of the operator itself, which nobody else would remove.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from controlplane import OPERATOR_NAMESPACE, Cluster, Json, Target, is_evicted, webhook_setup
from controlplane.binaries import ROOT
from deploy.rendering import BASE, OVERLAYS, by_key, kustomize
from e2e.rendered_operator import RenderedOperator

SAMPLE = yaml.safe_load((ROOT / "deploy" / "samples" / "replacing-built-in.yaml").read_text())
[OVERLAY] = [folder for folder in OVERLAYS if folder.name == "replacing-built-in"]
DEPLOYMENT = ("Deployment", "taintwarden")
DEAD = "node.kubernetes.io/unreachable"
REPLICA_SECONDS = 60  # it tolerates a dead node for 30 of them


@pytest.fixture
def dead_node(cluster: Cluster, namespace: str) -> str:
    """A node as node-lifecycle-controller taints it when its kubelet is silent."""
    name = f"{namespace}-dead"
    cluster.create_node(name, taints=[{"key": DEAD, "effect": "NoExecute"}], ready=None)
    return name


@pytest.fixture
def overlay(control_plane: Target) -> Iterator[Json]:
    """The overlay installed, but for its Deployments, which nothing would run: that of the operator is given."""
    rendered = by_key(kustomize(OVERLAY))
    for document in rendered.values():
        if document["kind"] != "Deployment":
            control_plane.client.apply(document)
    yield rendered[DEPLOYMENT]
    webhook_setup.remove(control_plane.client)
    control_plane.client.delete("networking.k8s.io/v1/networkpolicies", "taintwarden", OPERATOR_NAMESPACE)


@pytest.fixture
def policy(cluster: Cluster) -> Iterator[None]:
    cluster.apply({**SAMPLE, "spec": {**SAMPLE["spec"], "mode": "Enforce"}})
    yield
    cluster.delete("taintevictionpolicies", SAMPLE["metadata"]["name"])


@pytest.fixture
def replica(cluster: Cluster, dead_node: str, namespace: str) -> Iterator[Callable[[Path], str]]:
    """Put a replica of what a folder renders to on the dead node; its name."""
    names: list[str] = []

    def put(folder: Path) -> str:
        template = by_key(kustomize(folder))[DEPLOYMENT]["spec"]["template"]
        name = f"{namespace}-{folder.name}"
        spec = {**template["spec"], "nodeName": dead_node, "terminationGracePeriodSeconds": 0}
        body = {"metadata": {**template["metadata"], "name": name}, "spec": spec}
        cluster.create("pods", body, OPERATOR_NAMESPACE)
        cluster.report_phase(name, OPERATOR_NAMESPACE, "Running", ready=False)
        names.append(name)
        return name

    yield put
    for name in names:
        if cluster.find("pods", name, OPERATOR_NAMESPACE):
            cluster.delete("pods", name, OPERATOR_NAMESPACE, grace_seconds=0)


def test_a_dead_node_loses_its_pods_and_its_replica_of_the_operator(
    control_plane: Target,
    cluster: Cluster,
    namespace: str,
    dead_node: str,
    overlay: Json,
    policy: None,
    replica: Callable[[Path], str],
    tmp_path: Path,
) -> None:
    tolerant = {"key": DEAD, "operator": "Exists", "effect": "NoExecute"}
    cluster.create_pod("brief", namespace, dead_node, tolerations=[tolerant | {"tolerationSeconds": 2}])
    cluster.create_pod("patient", namespace, dead_node, tolerations=[tolerant | {"tolerationSeconds": 3600}])
    dead, kept = replica(OVERLAY), replica(BASE)
    with RenderedOperator.on(control_plane, overlay, tmp_path) as operator:
        cluster.wait_evicted("brief", namespace)
        cluster.wait_evicted(dead, OPERATOR_NAMESPACE, REPLICA_SECONDS)
        assert not is_evicted(cluster.find("pods", "patient", namespace))
        assert not is_evicted(cluster.find("pods", kept, OPERATOR_NAMESPACE))
        assert operator.complaints() == []
