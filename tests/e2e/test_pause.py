"""A paused policy stays paused whatever is applied, and the runbook for an edited policy is followed word for word."""

from pathlib import Path

import pytest
import yaml

from controlplane import Cluster, Json, Operator, Target, wait_until
from e2e.runbook import Desk, Done, page_of
from e2e.stories import NO_LIMITS, conditions, taint, toleration

WAIT_SECONDS = 40
POLICIES = "taintevictionpolicies"
HEADING = "The policy was edited"


@pytest.fixture
def desk(control_plane: Target, tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk", control_plane.admin_kubeconfig)


def file_of(desk: Desk, namespace: str, name: str = "previous", **spec: object) -> Path:
    """A policy for the nodes of this test, as somebody has it in a file."""
    whole = {"taints": [{"key": "sla"}], "nodeSelector": {"matchLabels": {"test": namespace}}, "mode": "Enforce"} | spec
    policy = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy", "metadata": {"name": namespace}}
    path = desk.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(policy | {"spec": whole}))
    return path


def typed(desk: Desk, command: str) -> Done:
    done = desk.type(command, {})
    assert done.code == 0, done
    return done


def spec_of(cluster: Cluster, name: str) -> Json:
    found: Json = cluster.get(POLICIES, name)["spec"]
    return found


@pytest.fixture(autouse=True)
def _removed(cluster: Cluster, namespace: str):
    yield
    if cluster.find(POLICIES, namespace):
        cluster.delete(POLICIES, namespace)


def test_applying_the_file_does_not_resume(cluster: Cluster, namespace: str, desk: Desk) -> None:
    file_of(desk, namespace)
    typed(desk, "kubectl apply -f previous.yaml")
    typed(desk, f"taintwarden pause {namespace}")
    file_of(desk, namespace, mode="DryRun")
    typed(desk, "kubectl apply -f previous.yaml")
    assert (spec_of(cluster, namespace)["mode"], spec_of(cluster, namespace)["paused"]) == ("DryRun", True)
    assert f"policy {namespace} is in mode DryRun again" in typed(desk, f"taintwarden resume {namespace}").output
    assert "paused" not in spec_of(cluster, namespace)


def test_the_runbook_of_an_edited_policy(cluster: Cluster, namespace: str, operator: Operator, desk: Desk) -> None:
    cluster.create_node(f"{namespace}-n", taints=[taint("980")], labels={"test": namespace})
    names = [f"web-{number}" for number in range(8)]
    for name in names:
        cluster.create_pod(name, namespace, f"{namespace}-n", tolerations=[toleration("Exists")])
        # Without a toleration for `other`, which the edited policy acts on.
    cluster.set_taints(f"{namespace}-n", [taint("980"), taint("1", key="other", effect="NoSchedule")])
    guard = {"limits": {**NO_LIMITS, "guard": {"minPods": 3}}}
    file_of(desk, namespace, **guard)
    typed(desk, "kubectl apply -f previous.yaml")
    edited = file_of(desk, namespace, "edited", taints=[{"key": "*", "effects": ["NoExecute", "NoSchedule"]}], **guard)
    typed(desk, f"kubectl apply -f {edited.name}")
    wait_until(
        lambda: conditions(cluster, namespace).get("GuardTripped", {}).get("reason") == "MassEviction",
        WAIT_SECONDS,
        "the guard to trip",
    )
    done = desk.repair(page_of("guard-tripped").path, HEADING, {"POLICY": namespace, "PREVIOUS": "previous"})
    assert [one.code for one in done] == [0, 0, 0, 0]
    wait_until(
        lambda: conditions(cluster, namespace).get("GuardTripped", {}).get("reason") == "Armed",
        WAIT_SECONDS,
        "the guard to be armed",
    )
    assert spec_of(cluster, namespace)["mode"] == "Enforce"
    assert {one["metadata"]["name"] for one in cluster.items("pods", namespace)} == set(names)
    assert not [one for one in cluster.items("pods", namespace) if "deletionTimestamp" in one["metadata"]]
