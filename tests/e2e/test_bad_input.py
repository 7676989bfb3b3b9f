"""Policies that cannot be read, on a real API server: nothing is evicted."""

import copy
import itertools
import time
from collections.abc import Callable, Iterator

import pytest
import yaml

from controlplane import Cluster, ControlPlane, Json, Operator, sleep_until, wait_until
from controlplane.binaries import ROOT
from controlplane.client import resource_path
from e2e.stories import (
    PATIENCE_SECONDS,
    POLICY_LABEL,
    conditions,
    policies,
    policy,
    taint,
    wait_event,
)

CRD = ROOT / "crds" / "taintevictionpolicies.yaml"


@pytest.fixture(scope="module")
def operator(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with Operator(own_control_plane.operator_kubeconfig(), tmp_path_factory.mktemp("bad-input")) as started:
        started.wait_leading()
        yield started


def test_the_operator_survives_a_reinstallation_of_the_definitions(
    own_control_plane: ControlPlane, operator: Operator, namespace: str
) -> None:
    [crd] = yaml.safe_load_all(CRD.read_text())
    cluster, pid = own_control_plane.client, operator.process.pid
    try:
        cluster.delete("customresourcedefinitions", crd["metadata"]["name"])
        gone = resource_path("taintevictionpolicies")
        wait_until(lambda: not own_control_plane.answers(gone), PATIENCE_SECONDS, "the definition to go")
        sleep_until(time.monotonic() + 1)  # a watch of what is not there ends, and is tried again
    finally:
        own_control_plane.apply_crds()
    with policies(cluster, {"reinstalled": {}}):
        cluster.wait_evicted(victim(cluster, namespace, "evicted", "reinstalled"), namespace, PATIENCE_SECONDS)
        cluster.patch("taintevictionpolicies", "reinstalled", {"spec": {"paused": True}})
        is_paused = lambda: conditions(cluster, "reinstalled").get("Enforcing", {}).get("reason") == "Paused"  # noqa: E731
        wait_until(is_paused, PATIENCE_SECONDS, "a change to be watched again")
    assert (operator.process.pid, operator.is_live()) == (pid, True)


@pytest.fixture
def lenient_crd(own_control_plane: ControlPlane, operator: Operator) -> Iterator[None]:
    """A cluster that stores any policy, as one with an older or newer definition would.

    The operator restarts with it: the server may leave an earlier watch open, silent, for a minute.
    """
    [crd] = yaml.safe_load_all(CRD.read_text())
    lenient = copy.deepcopy(crd)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = lenient["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] |= {"spec": anything, "status": anything}
    redefine(own_control_plane, lenient, lambda refusal: not refusal)
    operator.process.stop()
    operator.start()
    yield
    redefine(own_control_plane, crd, lambda refusal: "spec.mode" in refusal)


def redefine(control_plane: ControlPlane, crd: Json, is_in_force: Callable[[str], bool]) -> None:
    """Apply a definition and wait until it is in force, judged by the answer to a policy with a wrong mode."""
    path, wrong = resource_path("taintevictionpolicies"), policy("probe", mode="Sometimes")

    def answers_by_it() -> bool:
        return is_in_force(control_plane.client.refusal("POST", path, wrong)) and control_plane.answers(path)

    control_plane.client.apply(crd)
    wait_until(answers_by_it, PATIENCE_SECONDS, "the definition to be in force")


def victim(cluster: Cluster, namespace: str, name: str, policy: str) -> str:
    """A pod without a toleration on a tainted node that a policy selects."""
    node = f"{namespace}-{name}"
    cluster.create_node(node, {POLICY_LABEL: policy}, [taint("940")])
    cluster.create_pod(name, namespace, node)
    return name


def accepted(cluster: Cluster, name: str, status: str) -> Json:
    """The condition Accepted once it is this."""

    def found() -> Json | None:
        condition = conditions(cluster, name).get("Accepted", {})
        return condition if condition.get("status") == status else None

    return wait_until(found, PATIENCE_SECONDS, f"Accepted to be {status}")


def test_an_earlier_definition_drops_a_field_of_the_guard_and_freezes_nothing(
    own_control_plane: ControlPlane, operator: Operator, namespace: str
) -> None:
    [crd] = yaml.safe_load_all(CRD.read_text())
    before, cluster, number = copy.deepcopy(crd), own_control_plane.client, itertools.count()
    status = before["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    del status["properties"]["guard"]["properties"]["population"]

    def names_it() -> bool:
        """Evict a pod, since the record is written before that."""
        cluster.wait_evicted(victim(cluster, namespace, f"p{next(number)}", "pruned"), namespace, PATIENCE_SECONDS)
        sleep_until(time.monotonic() + 4)  # the status is written every 3 s
        return "drops status.guard.population" in conditions(cluster, "pruned")["GuardTripped"].get("message", "")

    with policies(cluster, {"pruned": {"limits": {}}}):
        try:
            cluster.apply(before)
            wait_until(names_it, PATIENCE_SECONDS, "the status to name what is dropped")
        finally:
            cluster.apply(crd)
        wait_until(lambda: not names_it(), PATIENCE_SECONDS, "all of the record to be stored")


def test_the_last_valid_version_of_a_policy_stays_in_force(cluster: Cluster, lenient_crd: None, namespace: str) -> None:
    name, wrong = "unreadable", {"mode": "Sometimes", "taints": [{"key": "sla", "effects": ["Explode"]}]}
    with policies(cluster, {name: {}}):
        accepted(cluster, name, "True")
        stored = cluster.patch("taintevictionpolicies", name, {"spec": wrong})
        refused = accepted(cluster, name, "False")
        assert (refused["reason"], refused["observedGeneration"]) == ("Invalid", stored["metadata"]["generation"])
        assert 'spec.mode: Unsupported value: "Sometimes": supported values: "Enforce", "DryRun"' in refused["message"]
        assert "spec.taints[0].effects[0]" in refused["message"]
        assert "spec.mode" in wait_event(cluster, "default", name, "InvalidPolicy")["note"]
        assert conditions(cluster, name)["Enforcing"]["status"] == "True"
        cluster.wait_evicted(victim(cluster, namespace, "still-evicted", name), namespace, PATIENCE_SECONDS)
