"""Pods and templates are grouped by their topmost owner."""

import json

import pytest

from cli.doctor.scene import asking, controlled, named, replicas, subjects, workload
from cli.world import pod, taint, toleration
from taintwarden_cli.rehearsal.sources import WORKLOADS

alone = asking("native-missing")
STRICT = toleration("Gt", "950")
ANNOTATED = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"taintwarden.io/tolerations": json.dumps([STRICT])}}
}


def natively(*objects):
    """Each group with an extended toleration alone is a finding."""
    return alone(named("n1", taint("900")), *objects)


def test_a_thousand_pods_of_one_deployment_are_one_line():
    found = natively(replicas(1_000, extended=[STRICT]))
    assert [(str(one.subject), one.pods, one.template) for one in found] == [("Deployment shop/web", 1_000, True)]


def test_pods_of_two_revisions_are_one_line():
    older = workload("ReplicaSet", "web-0", metadata={"ownerReferences": controlled("Deployment", "web")})
    lone = pod(
        extended=[STRICT], metadata={"name": "w", "uid": "w", "ownerReferences": controlled("ReplicaSet", "web-0")}
    )
    (pods,) = natively(replicas(2, extended=[STRICT]), older, lone)
    assert (str(pods.subject), pods.pods) == ("Deployment shop/web", 3)


def test_pod_without_owner_is_named():
    assert subjects(natively(pod(extended=[STRICT]))) == ["Pod shop/web"]


def test_owner_that_cannot_be_read_is_the_last_that_is_known():
    lone = pod(extended=[STRICT], metadata={"ownerReferences": controlled("ReplicaSet", "web-0")})
    assert subjects(natively(lone)) == ["ReplicaSet shop/web-0"]


def test_owners_that_name_each_other_end():
    loop = [
        workload("ReplicaSet", a, metadata={"ownerReferences": controlled("ReplicaSet", b)}) for a, b in ("ab", "ba")
    ]
    lone = pod(extended=[STRICT], metadata={"ownerReferences": controlled("ReplicaSet", "a")})
    assert len(natively(*loop, lone)) == 1


@pytest.mark.parametrize("kind", [listing.kind for listing in WORKLOADS.values()])
def test_templates_of_every_kind(kind):
    found = natively(workload(kind, template=ANNOTATED))
    assert [(str(one.subject), one.pods, one.template) for one in found] == [(f"{kind} shop/web", 0, True)]


def test_template_that_another_workload_makes_is_reported_once():
    owned = {"ownerReferences": controlled("Deployment", "web")}
    assert natively(workload("ReplicaSet", template=ANNOTATED, metadata=owned)) == []


def test_job_that_has_finished_makes_no_pods():
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert natively(workload("Job", template=ANNOTATED, status=done)) == []
