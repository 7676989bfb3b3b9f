"""A quarantine, and everything with which a tenant may answer it, with the tenant's own token on a real API server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.policy_cases import policy
from controlplane import ControlPlane, Json, Operator, wait_until
from e2e.tenants import Tenant
from taintwarden.kube.wire.kinds import MAX_POD_ENTRIES

NAMESPACE, NODE, POLICY = "answering", "quarantined", "quarantine"
TAINT = {"key": "example.com/quarantine", "effect": "NoExecute"}
EXISTS = {"key": "example.com/quarantine", "operator": "Exists"}
LONGEST = 2_147_483_647
BUDGET_SECONDS = 10
LEAVES_SECONDS = 30

ANSWERS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a native toleration": {"spec": {"tolerations": [{"operator": "Exists"}]}},
    "an annotation": {"metadata": {"annotations": {"taintwarden.io/tolerations": json.dumps([EXISTS])}}},
    "a toleration of 68 years": {
        "spec": {"tolerations": [EXISTS | {"tolerationSeconds": LONGEST, "effect": "NoExecute"}]}
    },
    "do not evict": {"metadata": {"annotations": {"taintwarden.io/do-not-evict": "true"}}},
    "do not disrupt": {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}},
    "not safe to evict": {
        "metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
    },
    "too large a pod": {"metadata": {"labels": {f"key-{number}": "" for number in range(MAX_POD_ENTRIES + 1)}}},
    "a priority": {"spec": {"priorityClassName": "system-cluster-critical"}},
    "a DaemonSet": {"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]}},
    "a foreign DaemonSet": {"metadata": {"ownerReferences": [{"apiVersion": "example.com/v1", "kind": "DaemonSet"}]}},
}
BUDGETED = "a budget"
GRACEFUL = "days to stop"


def named(answer: str) -> str:
    return answer.replace(" ", "-").lower()


@pytest.fixture(scope="module")
def tenant(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    """Its pods are on a node that is put into quarantine."""
    cluster = own_control_plane.client
    tenant = Tenant(own_control_plane, NAMESPACE)
    cluster.create_node(NODE)
    spec: Json = {
        "quarantine": True,
        "taints": [{"key": TAINT["key"]}],
        "eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": BUDGET_SECONDS},
        "limits": {"guard": {"minPods": 1_000}},
    }
    cluster.create("taintevictionpolicies", policy(spec, POLICY))
    tenant.profile("all", EXISTS)
    for number, (answer, given) in enumerate(ANSWERS.items()):
        metadata = dict(given.get("metadata", {}))
        if owners := metadata.get("ownerReferences"):
            of = {"name": "mine", "uid": f"00000000-0000-0000-0000-{number:012}", "controller": True}
            metadata["ownerReferences"] = [owner | of for owner in owners]
        tenant.pod(named(answer), NODE, metadata=metadata, spec=given.get("spec"))
    tenant.pod(named(BUDGETED), NODE, metadata={"labels": {"app": "held"}})
    tenant.pod(named(GRACEFUL), NODE, spec={"terminationGracePeriodSeconds": 10_000_000})
    budget = {"metadata": {"name": "held"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}}}
    tenant.client.create("poddisruptionbudgets", budget, NAMESPACE)
    if not cluster.find("serviceaccounts", "default", "kube-system"):  # no controller creates it here
        cluster.create("serviceaccounts", {"metadata": {"name": "default"}}, "kube-system")
    cluster.create_pod("excluded", "kube-system", NODE, grace_seconds=0)
    try:
        with Operator(own_control_plane.operator_kubeconfig(), tmp_path_factory.mktemp("quarantine")) as operator:
            operator.wait_leading()
            cluster.set_taints(NODE, [TAINT])
            yield tenant
    finally:
        cluster.delete("taintevictionpolicies", POLICY)
        cluster.delete("pods", "excluded", "kube-system", grace_seconds=0)
        cluster.delete("poddisruptionbudgets", "held", NAMESPACE)
        tenant.close()
        cluster.delete("nodes", NODE)


def has_to_leave(tenant: Tenant, answer: str) -> bool:
    """Return True if the pod is terminating. It stays so for the policy's grace, since there is no kubelet."""
    return "deletionTimestamp" in tenant.admin.get("pods", named(answer), NAMESPACE)["metadata"]


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_answer_keeps_a_pod(tenant: Tenant, answer: str) -> None:
    wait_until(lambda: has_to_leave(tenant, answer), LEAVES_SECONDS, f"the pod with {answer} to be evicted")


def test_a_pod_that_is_too_large_is_named_with_its_field(tenant: Tenant) -> None:
    def notes() -> list[str]:
        found = tenant.admin.items("events", NAMESPACE)
        return [one["note"] for one in found if one["reason"] == "IgnoredValue" and "metadata.labels" in one["note"]]

    [note] = wait_until(notes, LEAVES_SECONDS, "an Event")
    assert "the pod counts as one that has none of these and tolerates every taint" in note
    assert "shorten this field" in note


def test_a_budget_keeps_a_pod_as_long_as_the_policy_says(tenant: Tenant) -> None:
    seconds = BUDGET_SECONDS + LEAVES_SECONDS
    wait_until(lambda: has_to_leave(tenant, BUDGETED), seconds, "the pod with a budget to be deleted")


def test_a_pod_has_as_long_to_stop_as_the_policy_says(tenant: Tenant) -> None:
    def given() -> int | None:
        pod = tenant.admin.get("pods", named(GRACEFUL), NAMESPACE)
        return pod["metadata"].get("deletionGracePeriodSeconds")

    assert wait_until(given, LEAVES_SECONDS, "the pod that takes days to be terminating") == 30


def test_what_an_administrator_excludes_stays(tenant: Tenant) -> None:
    seconds = BUDGET_SECONDS + LEAVES_SECONDS
    wait_until(lambda: has_to_leave(tenant, BUDGETED), seconds, "the pod that leaves last to be deleted")
    pod = tenant.admin.get("pods", "excluded", "kube-system")
    assert "deletionTimestamp" not in pod["metadata"]
