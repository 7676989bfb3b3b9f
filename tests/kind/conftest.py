"""Fixtures of the stories with real kubelets: the kind cluster with the operator in it, as deploy/kind/up makes it."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import Cluster, Target
from controlplane.target import PUBLISHER, ForbiddenContextError, check_context, existing_cluster
from deploy.rendering import kubectl, run
from kind.installation import PUBLISHER as PUBLISHER_NAME
from kind.installation import Installation, KubeCtl
from kind.scene import Scene

NO_CLUSTER = 3  # exit code: neither passed (0) nor failed (1)
STORY_SECONDS = 400
KUBECTL_SECONDS = 300


def pytest_collection_finish(session: pytest.Session) -> None:
    """Say before the first test that there is nothing to test against: skipping would look like success."""
    if session.config.option.collectonly or not session.items:
        return
    if not session.config.getoption("--kubeconfig"):
        pytest.exit("the stories with real kubelets need --kubeconfig and --context: make kind-e2e", NO_CLUSTER)
    try:
        check_context(session.config.getoption("--context"), os.environ)
    except ForbiddenContextError as error:
        pytest.exit(str(error), returncode=NO_CLUSTER)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A story waits for kubelets, nodes and leases, each within its own time, and a module may say how long that is."""
    for item in items:
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(STORY_SECONDS))


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The cluster, with its address and the administrator's client."""
    kubeconfig: Path = request.config.getoption("--kubeconfig")
    found = existing_cluster(kubeconfig, request.config.getoption("--context"), tmp_path_factory.mktemp("kind"))
    yield found
    found.client.close()


@pytest.fixture(scope="session")
def cluster(target: Target) -> Cluster:
    """The administrator's client."""
    return target.client


@pytest.fixture(scope="session")
def on_cluster(request: pytest.FixtureRequest) -> KubeCtl:
    """kubectl as the administrator."""
    where = [
        f"--kubeconfig={request.config.getoption('--kubeconfig')}",
        f"--context={request.config.getoption('--context')}",
    ]

    def execute(*words: str | Path) -> str:
        return run(kubectl(), *where, *words, seconds=KUBECTL_SECONDS)

    return execute


@pytest.fixture(scope="session")
def workers(cluster: Cluster) -> list[str]:
    """The nodes that run pods."""
    return sorted(
        node["metadata"]["name"]
        for node in cluster.items("nodes")
        if "node-role.kubernetes.io/control-plane" not in node["metadata"]["labels"]
    )


@pytest.fixture(scope="session")
def reader(cluster: Cluster) -> Iterator[str]:
    """The token of an account that may get metrics, as documented."""
    name = f"metrics-reader-{uuid.uuid4().hex[:6]}"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "taintwarden-metrics-reader"}
    account = {"kind": "ServiceAccount", "name": "default", "namespace": name}
    cluster.create_namespace(name)
    cluster.create("clusterrolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": [account]})
    token = cluster.create("serviceaccounts", {"spec": {}}, name, name="default", subresource="token")
    yield token["status"]["token"]
    cluster.delete("clusterrolebindings", name)
    cluster.remove_namespace(name)


@pytest.fixture
def operator(cluster: Cluster, reader: str) -> Installation:
    """The operator with all replicas, one of which leads."""
    installed = Installation(cluster, token=reader)
    if installed.deployment["spec"]["replicas"] == 0:
        installed.scale(3)
    installed.wait_complete()
    installed.leader()
    return installed


@pytest.fixture(scope="module")
def publisher(cluster: Cluster, on_cluster: KubeCtl) -> Iterator[Installation]:
    """The component, applied as it is shipped."""
    on_cluster("apply", "-k", PUBLISHER)
    installed = Installation(cluster, PUBLISHER_NAME)
    installed.wait_complete()
    yield installed
    on_cluster("delete", "-k", PUBLISHER, "--ignore-not-found")


@pytest.fixture
def scene(operator: Installation, workers: list[str]) -> Iterator[Scene]:
    """A namespace for a story, and the policy and taints that go with it."""
    name = f"story-{uuid.uuid4().hex[:6]}"
    operator.cluster.create_namespace(name)
    made = Scene(operator.cluster, name, operator.image, workers)
    yield made
    made.end()
