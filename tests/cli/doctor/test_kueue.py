"""Pods that Kueue assigns to nodes: it compares nothing once they run, and takes a native Exists for good."""

import json

import pytest

from cli.doctor.scene import asking, controlled, named, replicas, subjects, workload
from cli.world import Json, namespace, pod, policy, taint, toleration

compares, pinned = asking("kueue-native-comparison"), asking("kueue-pinned")
STRICT, EXISTS = toleration("Gt", "950"), toleration("Exists")
SHORT, LONG = ({**EXISTS, "tolerationSeconds": seconds} for seconds in (60, 315_360_000))
EXTENDED = {"taintwarden.io/tolerations": json.dumps([STRICT])}
REQUIRED = {"kueue.x-k8s.io/podset-required-topology": "kubernetes.io/hostname"}
HOST = {"kubernetes.io/hostname": "a1"}
RACK = {"example.com/rack": "7"}
NODE = named("a1", taint("980"), **HOST)
INJECTED = (
    {"kind": "MutatingWebhookConfiguration", "metadata": {}, "webhooks": [{"name": "pods.mutate.taintwarden.io"}]},
    namespace(**{"taintwarden.io/inject": "true"}),
)


def job(*tolerations: Json, annotations: Json | None = None) -> Json:
    """One that Kueue has admitted, so that its template has the annotations of the workload."""
    metadata = {"annotations": {**REQUIRED, **EXTENDED} if annotations is None else annotations}
    return workload("Job", "train", {"metadata": metadata, "spec": {"tolerations": list(tolerations)}})


def running(*tolerations: Json, selector: Json = HOST, owner: str = "JobSet", annotations: Json | None = None) -> Json:
    """A pod of a workload whose template is not read."""
    owners = [{"apiVersion": "v1", "kind": owner, "name": "train", "uid": "u", "controller": True}]
    metadata = {"annotations": {**REQUIRED, **EXTENDED} if annotations is None else annotations}
    spec = {"nodeName": "a1", "nodeSelector": selector}
    return pod(*tolerations, metadata={**metadata, "ownerReferences": owners}, spec=spec)


# -- native comparisons -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["required", "preferred", "unconstrained"])
def test_native_comparison_of_pods_that_kueue_assigns(kind):
    (found,) = compares(job(STRICT, annotations={f"kueue.x-k8s.io/podset-{kind}-topology": "true"}))
    assert (str(found.subject), found.severity) == ("Job shop/train", "warning")
    assert found.message == (
        "sla Gt '950':NoExecute: once its pods have ended, a node with the taint counts as failed, whatever the value"
    )


@pytest.mark.parametrize(
    "objects",
    [
        (job(STRICT, annotations={}),),
        (job(STRICT, annotations={"kueue.x-k8s.io/queue-name": "q"}),),
        (job(EXISTS),),
        (job({**STRICT, "effect": "PreferNoSchedule"}),),
    ],
    ids=["not Kueue's", "without topology", "no comparison", "an effect that keeps no pod off"],
)
def test_what_kueue_does_not_misread(objects):
    assert compares(*objects) == []


def test_pods_and_template_are_one_finding():
    owner = {"ownerReferences": controlled("Job", "train"), "annotations": REQUIRED}
    one = pod(STRICT, metadata=owner, spec={"nodeName": "a1", "nodeSelector": HOST})
    (found,) = compares(job(STRICT, annotations=REQUIRED), one)
    assert (found.pods, found.template) == (1, True)


# -- the same node again ----------------------------------------------------------------------------------------------


def test_native_exists_keeps_the_assignment():
    (found,) = pinned(NODE, policy(), job(EXISTS))
    assert (str(found.subject), found.severity, found.template) == ("Job shop/train", "warning", True)
    assert found.message == "for Kueue a node is not failed because of sla: it assigns the same node again"


@pytest.mark.parametrize("native", [(), (SHORT,), (LONG,), (STRICT,)], ids=["none", "short", "long", "comparison"])
def test_a_taint_that_kueue_sees_frees_the_assignment(native):
    assert pinned(NODE, policy(), job(*native)) == []


def test_placement_does_not_change_the_assignment():
    placing = policy(taints=[{"key": "sla", "placement": True}])
    assert subjects(pinned(NODE, placing, job(EXISTS), *INJECTED)) == ["Job shop/train"]


def test_a_value_that_a_policy_reads_from_the_node_is_no_taint_for_kueue():
    reading = policy(taints=[{"key": "sla", "from": {"label": "sla"}}])
    assert subjects(pinned(named("a1", sla="980"), reading, job())) == ["Job shop/train"]


@pytest.mark.parametrize(
    "objects",
    [
        (policy(key="other"), job(EXISTS)),
        (policy(), job(EXISTS, annotations=EXTENDED)),
        (policy(), job(EXISTS, annotations=REQUIRED)),
        (policy(), replicas(1, EXISTS, extended=[STRICT])),
    ],
    ids=["no policy evicts", "not Kueue's", "no comparison", "a Deployment of its own"],
)
def test_who_is_not_pinned(objects):
    assert pinned(NODE, *objects) == []


def test_pods_whose_template_is_not_read():
    assert subjects(pinned(NODE, policy(), running(EXISTS))) == ["JobSet shop/train"]


@pytest.mark.parametrize("owner", ["Deployment", "ReplicaSet"])
def test_pods_that_are_admitted_one_by_one(owner):
    assert pinned(NODE, policy(), running(EXISTS, owner=owner)) == []


def test_pods_that_are_assigned_to_a_rack_only():
    assert pinned(NODE, policy(), running(EXISTS, selector=RACK)) == []


def test_a_toleration_that_the_webhook_may_have_added_says_nothing():
    assert pinned(NODE, policy(), running(EXISTS), *INJECTED) == []
