"""The chart over what kubectl installed, with some of the same stories, and what an uninstall leaves."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import OPERATOR_NAMESPACE, Cluster, wait_until
from deploy.rendering import CHART, kustomize, run, tool
from kind.installation import PUBLISHER, Installation
from kind.test_nodes import manager_arguments, prompt, replacing, test_a_node_that_is_away_loses_its_pods_and_comes_back
from kind.test_wave import test_an_upgrade_in_the_middle_of_a_wave_loses_nothing
from kind.test_webhooks import (
    test_a_replacement_lands_where_it_may_stay,
    test_one_replica_that_is_gone_makes_no_difference,
)
from monitoring.loop import Publishing

__all__ = [
    "manager_arguments",
    "prompt",
    "replacing",
    "test_a_node_that_is_away_loses_its_pods_and_comes_back",
    "test_a_replacement_lands_where_it_may_stay",
    "test_an_upgrade_in_the_middle_of_a_wave_loses_nothing",
    "test_one_replica_that_is_gone_makes_no_difference",
]
OVERLAY = CHART.parents[1] / "overlays" / "replacing-built-in"
# What the overlay installs is what the release takes over, else some of it would stay without an owner.
VALUES = [
    "--set=replicas=2",
    "--set=podAnnotations=null",
    "--set=image.pullPolicy=Never",
    "--set=rbac.allowDelete=true",
    "--set=metrics.protected=true",
    "--set=networkPolicy.enabled=true",
    "--set=publisher.enabled=true",
    "--set=publisher.keys={sla}",
]
UNOWNED = {"NetworkPolicy/taintwarden-scheduler-extender"}
"""Objects that the overlay installs, and the chart only with the scheduler extender: no release takes them over."""
DEFINED = ("taintevictionpolicies", "taintpublishers", "tolerationprofiles")
KINDS = {
    "Deployment": "deployments",
    "Service": "services",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "NetworkPolicy": "networking.k8s.io/v1/networkpolicies",
    "ServiceAccount": "serviceaccounts",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}


@pytest.fixture(scope="module", autouse=True)
def helm(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str | Path]]:
    """The release as `make release` packs it, over what was there. Afterwards that is there again."""
    folder = tmp_path_factory.mktemp("release")
    run(tool("helm"), "package", CHART, "--destination", folder)
    [archive] = folder.glob("*.tgz")
    where: list[str | Path] = [
        f"--namespace={OPERATOR_NAMESPACE}",
        f"--kubeconfig={request.config.getoption('--kubeconfig')}",
        f"--kube-context={request.config.getoption('--context')}",
    ]
    run(
        tool("helm"),
        "upgrade",
        "--install",
        "taintwarden",
        archive,
        *VALUES,
        "--take-ownership",
        "--force-conflicts",
        *where,
    )
    Installation(cluster).wait_complete(2)
    yield where
    for document in kustomize(OVERLAY):
        cluster.apply(document)
    Installation(cluster).wait_complete()


def test_the_release_runs(operator: Installation, helm: list[str | Path]) -> None:
    run(tool("helm"), "test", "taintwarden", *helm)
    assert operator.metric(operator.leader(), "taintwarden_stale_view") == 0


def test_the_release_is_upgraded_without_more_flags(cluster: Cluster, helm: list[str | Path]) -> None:
    """Nothing that it gives is owned by a controller of the cluster, as the rules of a ClusterRole may be."""
    run(tool("helm"), "upgrade", "taintwarden", CHART, *VALUES, *helm)
    Installation(cluster).wait_complete(2)


def test_the_publisher_of_the_release_queries_and_reports(cluster: Cluster, reader: str) -> None:
    """With the rights and behind the metrics that the chart gives it."""
    publisher = Installation(cluster, PUBLISHER, token=reader)
    publisher.wait_complete()
    publishing = Publishing(cluster, "http://nowhere.invalid:9090")
    publishing.publish("sla")
    publishing.wait_reason("sla", "Answered", "Unreachable")
    [pod] = publisher.pods()
    is_stuck = lambda: publisher.metric(pod, "taintwarden_publisher_stuck") == 1  # noqa: E731
    wait_until(is_stuck, 60, "the publisher to count as stuck")
    publishing.remove("sla")


def test_zz_an_uninstall_leaves_what_the_docs_say(cluster: Cluster, helm: list[str | Path]) -> None:
    """Definitions, the namespace and what the chart did not take over. Nothing of the operator runs or is called.

    The last of this file.
    """
    began = time.monotonic()
    run(tool("helm"), "uninstall", "taintwarden", "--wait", *helm)
    assert time.monotonic() - began < 60
    left = {kind: cluster.items(resource) for kind, resource in KINDS.items()}
    named = {
        f"{kind}/{one['metadata']['name']}"
        for kind, found in left.items()
        for one in found
        if one["metadata"]["name"].startswith("taintwarden")
    }
    assert named == UNOWNED
    wait_until(lambda: not Installation(cluster).pods(), 60, "the pods to be gone")
    definitions = {one["metadata"]["name"] for one in cluster.items("customresourcedefinitions")}
    assert {f"{one}.taintwarden.io" for one in DEFINED} <= definitions
