"""The chart in a cluster: helm installs, upgrades and removes it, and the operator works with what it was given."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import OPERATOR_NAMESPACE, Cluster, Target, wait_until
from deploy.rendering import CHART, Json, RenderingError, by_key, load, run, tool
from e2e.rendered_operator import RenderedOperator
from e2e.stories import NO_LIMITS, annotation, complaints, taint, toleration

Helm = Callable[..., str]
DEFINITION = "taintevictionpolicies.taintwarden.io"
CHANGED = {"name": "Changed", "type": "string", "jsonPath": ".metadata.uid"}
NO_PODS = "--set=replicas=0,webhooks.trustJob=false"  # operators are processes here, and without pods no Job ends
WAIT_SECONDS = 30


@pytest.fixture(scope="module")
def helm(control_plane: Target) -> Iterator[Helm]:
    """helm as the administrator. What was installed is gone afterwards, and what all tests need is back."""

    def helm(*words: str | Path, namespace: str = OPERATOR_NAMESPACE) -> str:
        where = (f"--kubeconfig={control_plane.admin_kubeconfig}", f"--namespace={namespace}")
        return run(tool("helm"), *words, *where)

    yield helm
    helm("uninstall", "taintwarden", "--ignore-not-found")
    # On a cluster with controllers the webhook ran. While it ends it is denied what it asks for, and others count that.
    webhooks = {"labelSelector": "app.kubernetes.io/name=taintwarden-webhook"}
    wait_until(
        lambda: not control_plane.client.items("pods", OPERATOR_NAMESPACE, **webhooks), WAIT_SECONDS, "no webhook"
    )
    control_plane.apply_crds()
    control_plane.apply_manifests()


@pytest.fixture(scope="module")
def release(helm: Helm, control_plane: Target) -> Helm:
    """The chart over what `kubectl apply -k deploy/base` left: the way from one to the other."""
    helm("upgrade", "--install", "taintwarden", CHART, NO_PODS, "--take-ownership", "--force-conflicts")
    return helm


Start = Callable[..., RenderedOperator]


@pytest.fixture
def operator(release: Helm, control_plane: Target, tmp_path: Path) -> Iterator[Start]:
    """Start the operator of the release, as its Deployment says."""
    started: list[RenderedOperator] = []

    def start(namespace: str = OPERATOR_NAMESPACE) -> RenderedOperator:
        manifest = load(release("get", "manifest", "taintwarden", namespace=namespace))
        deployment = by_key(manifest)["Deployment", "taintwarden"]
        started.append(RenderedOperator.on(control_plane, deployment, tmp_path))
        return started[-1].__enter__()

    yield start
    for one in started:
        one.process.stop()


@pytest.fixture
def elsewhere(release: Helm, cluster: Cluster, namespace: str) -> Iterator[str]:
    """Another namespace for the release. Both are removed afterwards in any case."""
    name = f"{namespace}-ops"
    cluster.create_namespace(name)
    yield name
    release("uninstall", "taintwarden", "--ignore-not-found", namespace=name)
    cluster.remove_namespace(name)


@pytest.fixture
def doomed(cluster: Cluster, namespace: str, create_policy: Callable[..., Any]) -> str:
    """A pod whose node has a taint that it does not tolerate any more, and a policy that enforces."""
    node = f"{namespace}-n1"
    cluster.create_node(node, taints=[taint("980")], labels={"test": namespace})
    tolerates = annotation(toleration("Gt", "950"))
    cluster.create_pod("p1", namespace, node, tolerations=[{"operator": "Exists"}], annotations=tolerates)
    selector = {"matchLabels": {"test": namespace}}
    create_policy({"taints": [{"key": "sla"}], "nodeSelector": selector, "limits": NO_LIMITS})
    cluster.set_taints(node, [taint("900")])
    return "p1"


def test_the_operator_evicts_with_the_rights_arguments_and_environment_of_the_chart(
    operator: Start, cluster: Cluster, namespace: str, doomed: str
) -> None:
    running = operator()
    cluster.wait_evicted(doomed, namespace)
    assert running.answers("livenessProbe")
    assert complaints(running) == []
    lease = cluster.get("leases", "taintwarden", OPERATOR_NAMESPACE)
    assert lease["spec"]["holderIdentity"].startswith("taintwarden-0_")


def test_an_upgrade_brings_changed_definitions(release: Helm, cluster: Cluster, tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "chart")  # the links are followed, so this is a chart of another version
    path = tmp_path / "chart" / "source" / "crds" / "taintevictionpolicies.yaml"
    definition = yaml.safe_load(path.read_text())
    definition["spec"]["versions"][0]["additionalPrinterColumns"].append(CHANGED)
    path.write_text(yaml.safe_dump(definition, sort_keys=False))
    # The administrator's client applied the definitions, too, and would have to agree to every change.
    release("upgrade", "taintwarden", tmp_path / "chart", NO_PODS, "--force-conflicts")
    assert CHANGED in columns(cluster)
    release("upgrade", "taintwarden", CHART, NO_PODS)
    assert CHANGED not in columns(cluster)


def columns(cluster: Cluster) -> list[Json]:
    found: list[Json] = cluster.get("customresourcedefinitions", DEFINITION)["spec"]["versions"][0][
        "additionalPrinterColumns"
    ]
    return found


def test_definitions_and_policies_outlive_the_release(
    release: Helm, cluster: Cluster, create_policy: Callable[..., Any]
) -> None:
    policy = create_policy({"taints": [{"key": "sla"}]})["metadata"]["name"]
    release("uninstall", "taintwarden")
    assert cluster.find("clusterroles", "taintwarden") is None
    assert cluster.find("apps/v1/deployments", "taintwarden", OPERATOR_NAMESPACE) is None
    assert cluster.get("taintevictionpolicies", policy)
    release("install", "taintwarden", CHART, NO_PODS)  # what was kept is taken up again
    assert cluster.get("taintevictionpolicies", policy)


def test_a_second_release_is_refused(release: Helm) -> None:
    with pytest.raises(RenderingError, match="invalid ownership metadata"):
        release("install", "another", CHART, NO_PODS)


def test_the_operator_works_in_another_namespace(
    release: Helm, operator: Start, cluster: Cluster, namespace: str, doomed: str, elsewhere: str
) -> None:
    """Last, since there is one release in a cluster: its rights, Lease and certificates go with it."""
    release("uninstall", "taintwarden")
    # The definitions that were kept remember the release they belonged to.
    release("install", "taintwarden", CHART, NO_PODS, "--take-ownership", namespace=elsewhere)
    running = operator(elsewhere)
    cluster.wait_evicted(doomed, namespace)
    assert complaints(running) == []
    assert cluster.get("leases", "taintwarden", elsewhere)["spec"]["holderIdentity"]
