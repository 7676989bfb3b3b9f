"""A budget whose controller fails: the original says so in a condition, and we say what it says."""

import json

import pytest

from controlplane import Json, WorkingCluster, wait_until
from controlplane.operator_process import EXECUTABLE
from e2e.test_explain import run
from localcluster import LocalCluster

NAME = "budget-failed"


@pytest.fixture
def status(working_cluster: WorkingCluster) -> Json:
    """That of a budget over a pod of a Job, which cannot be scaled."""
    cluster = working_cluster.client
    cluster.create_namespace(NAME)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "none"}]}}
    job = cluster.create(
        "batch/v1/jobs", {"metadata": {"name": "job"}, "spec": {"suspend": True, "template": template}}, NAME
    )
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": job["metadata"]["uid"], "controller": True}
    pod = {"metadata": {"name": "job-1", "labels": {"app": "web"}, "ownerReferences": [owner]}}
    cluster.create("pods", pod | {"spec": {"containers": [{"name": "a", "image": "none"}]}}, NAME)
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    cluster.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec}, NAME)

    def failed() -> Json:
        found = cluster.get("poddisruptionbudgets", "web", NAME).get("status", {})
        return found if any(one["reason"] == "SyncFailed" for one in found.get("conditions", ())) else {}

    found: Json = wait_until(failed, 60, "the disruption controller to fail")
    return found


def test_the_double_fails_as_the_original_does(status: Json, working_cluster: WorkingCluster) -> None:
    double = LocalCluster(disruption=True)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "none", "uid": "job-1", "controller": True}
    meta = {"name": "job-1", "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner]}
    double.store.create("pods", {"metadata": meta, "spec": {"containers": [{"name": "a", "image": "none"}]}})
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    double.create("poddisruptionbudgets", {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    assert double.disruption is not None
    double.disruption.sync()
    ours = double.store.get("poddisruptionbudgets", "web", "default")["status"]
    varies = ("message", "lastTransitionTime")
    for found in (ours, status):
        for name in varies:
            assert found["conditions"][0].pop(name)
    assert ours == status

    kubeconfig = working_cluster.admin_kubeconfig
    shown = run([str(EXECUTABLE), "doctor", "--only", "budget-never-allows", "-o", "json"], kubeconfig)
    found = [(one["namespace"], one["name"]) for one in json.loads(shown.stdout)["findings"]]
    assert found == [(NAME, "web")], shown
