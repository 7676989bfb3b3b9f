"""Who uses what plain Kubernetes does not know, counted by topmost owner."""

import pytest

from cli.doctor.scene import asking, controlled, replicas, subjects, workload
from cli.world import pod, profile, toleration
from taintwarden.rehearsal.sources import WORKLOADS

annotated = asking("uses-annotation")
natively = asking("uses-native-comparison")
profiles = asking("uses-profile")
STRICT = toleration("Gt", "950")
EXISTS = toleration("Exists")


def test_ten_thousand_pods_of_one_deployment_are_one_line():
    found = annotated(replicas(10_000, EXISTS, extended=[STRICT]))
    assert [(str(one.subject), one.pods, one.template) for one in found] == [("Deployment shop/web", 10_000, True)]
    assert found[0].message == "sla Gt '950':NoExecute"


def test_pods_of_two_revisions_are_one_line():
    older = workload("ReplicaSet", "web-0", metadata={"ownerReferences": controlled("Deployment", "web")})
    lone = pod(STRICT, metadata={"name": "w", "uid": "w", "ownerReferences": controlled("ReplicaSet", "web-0")})
    (pods,) = natively(replicas(2, STRICT), older, lone)
    assert (str(pods.subject), pods.pods) == ("Deployment shop/web", 3)


def test_pod_without_owner_is_named():
    assert subjects(natively(pod(STRICT))) == ["Pod shop/web"]


def test_owner_that_cannot_be_read_is_the_last_that_is_known():
    lone = pod(STRICT, metadata={"ownerReferences": controlled("ReplicaSet", "web-0")})
    assert subjects(natively(lone)) == ["ReplicaSet shop/web-0"]


def test_owners_that_name_each_other_end():
    loop = [
        workload("ReplicaSet", a, metadata={"ownerReferences": controlled("ReplicaSet", b)}) for a, b in ("ab", "ba")
    ]
    lone = pod(STRICT, metadata={"ownerReferences": controlled("ReplicaSet", "a")})
    assert len(natively(*loop, lone)) == 1


@pytest.mark.parametrize("kind", [listing.kind for listing in WORKLOADS.values()])
def test_templates_of_every_kind(kind):
    found = natively(workload(kind, template={"spec": {"tolerations": [STRICT]}}))
    assert [(str(one.subject), one.pods, one.template) for one in found] == [(f"{kind} shop/web", 0, True)]


def test_template_that_another_workload_makes_is_not_told_twice():
    owned = {"ownerReferences": controlled("Deployment", "web")}
    assert natively(workload("ReplicaSet", template={"spec": {"tolerations": [STRICT]}}, metadata=owned)) == []


def test_job_that_has_finished_makes_no_pods():
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert natively(workload("Job", template={"spec": {"tolerations": [STRICT]}}, status=done)) == []


def test_versions_count_too():
    assert len(natively(pod(toleration("SemverGt", "1.28.0")))) == 1


def test_profile_with_the_pods_it_selects():
    (found,) = profiles(replicas(3, EXISTS), profile("strict", STRICT, app="web"), profile("none", STRICT, app="no"))[
        1:
    ]
    assert (str(found.subject), found.pods) == ("TolerationProfile shop/strict", 3)


def test_plain_pods_use_nothing():
    plain = replicas(2, EXISTS, toleration("Equal", "950"))
    assert annotated(plain) == natively(plain) == profiles(plain) == []
