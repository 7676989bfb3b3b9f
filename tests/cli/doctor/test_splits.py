"""Workloads whose pods have several controllers, each of which loses its share at once."""

import pytest

from cli.doctor.scene import asking, controlled, named, workload
from cli.world import Json, budget, pod, policy, toleration

split = asking("workload-split")
EXISTS = toleration("Exists")


def member(name: str, app: str = "db", kind: str = "StatefulSet", number: int = 0, **labels: str) -> Json:
    metadata = {"name": f"{name}-{number}", "uid": f"{name}-{number}", "ownerReferences": controlled(kind, name)}
    labels = {"app": app, "statefulset.kubernetes.io/pod-name": f"{name}-{number}", **labels}
    return pod(EXISTS, metadata={**metadata, "labels": labels})


def below(owner: str, name: str) -> Json:
    """A StatefulSet of a custom object."""
    reference = {"apiVersion": "example.com/v1", "kind": "Group", "name": owner, "uid": owner, "controller": True}
    return workload("StatefulSet", name, metadata={"ownerReferences": [reference]})


def test_replicas_of_one_database_with_a_stateful_set_each():
    (found,) = split(named("n1"), policy(), *(member(name) for name in ("a", "b", "c")))
    assert (found.severity, found.pods) == ("warning", 3)
    assert found.remedy.startswith("set limits.perWorkload.label: app if no other pods have its value; or create one ")
    assert found.message == (
        "its pods have 3 controllers, each a workload of its own for limits.perWorkload: "
        "StatefulSet shop/a, StatefulSet shop/b, StatefulSet shop/c"
    )


INSTANCE = "app.kubernetes.io/instance"


def test_the_proposed_label_names_the_instance():
    pods = [member(name, **{INSTANCE: "orders"}) for name in "ab"]
    (found,) = split(named("n1"), policy(), *pods)
    assert found.remedy.startswith(f"set limits.perWorkload.label: {INSTANCE} ")


def test_replicas_that_share_an_instance_only():
    pods = [member(name, app="", **{INSTANCE: "orders"}) for name in "ab"]
    (found,) = split(named("n1"), policy(), *pods)
    assert found.remedy.startswith(f"set limits.perWorkload.label: {INSTANCE} ")


def test_a_label_with_another_value_on_each_pod_counts_none_together():
    pods = [member(name, shard=name) for name in "ab"]
    (found,) = split(named("n1"), policy(limits={"perWorkload": {"label": "shard"}}), *pods)
    assert found.remedy.startswith("set limits.perWorkload.label: app ")


def test_pods_without_a_shared_label_need_a_budget():
    pods = [member(name, app=name) for name in ("g-0", "g-1")]
    (found,) = split(named("n1"), policy(), *pods, below("g", "g-0"), below("g", "g-1"))
    assert found.remedy.startswith("create one PodDisruptionBudget ")


def test_stateful_sets_of_one_custom_object():
    pods = [member(name, app=name, number=number) for name in ("g-0", "g-1") for number in (0, 1)]
    (found,) = split(named("n1"), policy(), *pods, below("g", "g-0"), below("g", "g-1"))
    assert (str(found.subject), found.pods) == ("Group shop/g", 4)
    assert found.message.startswith("its pods have 2 controllers")


@pytest.mark.parametrize(
    "world",
    [
        (policy(), member("a")),
        (policy(), *(member("a", number=number) for number in (0, 1, 2))),
        (policy(), member("a"), member("b", app="web")),
        (policy(), member("a"), member("b", **{"app.kubernetes.io/component": "proxy"})),
        (policy(), *(member(name, number=number) for name in "ab" for number in (0, 1))),
        (member("a"), member("b")),
        (policy(limits={"perWorkload": {"maxUnavailable": "100%"}}), member("a"), member("b")),
        (policy(), budget(selector={"matchLabels": {"app": "db"}}), member("a"), member("b")),
        (policy(limits={"perWorkload": {"label": "app"}}), member("a"), member("b")),
    ],
    ids=[
        "one-pod", "one-controller", "other-app", "other-component", "several-pods-each", "no-policy", "limit-is-off",
        "a-budget-selects-them", "a-label-counts-them-together",
    ],
)  # fmt: skip
def test_pods_that_are_no_split_workload(world):
    assert split(named("n1"), *world) == []
