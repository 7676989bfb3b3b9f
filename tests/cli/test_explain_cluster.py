"""`explain` against an API server: the same answer as from files, and one clear line for whatever goes wrong."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from click.testing import Result

from cli.policies import Run, add_deployment, condition, empty_cluster, set_status
from cli.world import Json, budget, namespace, node, pod, policy, profile, taint, toleration
from localcluster import LocalCluster
from taintwarden.engine.rfc3339 import at

GRACE = toleration("Gt", "950", tolerationSeconds=300)

Explain = Callable[..., Coroutine[Any, Any, Result]]


@pytest.fixture
def cluster() -> LocalCluster:
    """A cluster in which shop/web has to leave node n1 in five minutes."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace(team="shop"))
    cluster.create("nodes", node(taint("940")))
    cluster.store.create("pods", pod(GRACE))
    return cluster


@pytest.fixture
def explain(run: Run) -> Explain:
    """Run `explain pod` with these arguments on the cluster."""
    return lambda name="shop/web", *args: run("explain", "pod", name, *args)


async def test_pod_of_a_cluster(cluster, explain):
    cluster.create("taintevictionpolicies", policy())
    result = await explain("shop/web", "-o", "json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["fate"], answer["policy"]) == (10, "Leaves", "sla")
    assert answer["notes"] == [] or "its time counts from now" in answer["notes"][0]


async def test_pod_stays_where_no_policy_is(explain):
    result = await explain()
    assert (result.exit_code, "there is no valid TaintEvictionPolicy" in result.stdout) == (0, True)


async def test_absent_pod(explain):
    result = await explain("shop/absent")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("taintwarden: there is no pod shop/absent in the cluster at http://127.0.0.1:")
    assert result.stderr.endswith("; if it is gone: kubectl events -n shop --for pod/absent\n")


async def test_name_is_no_path(cluster, explain):
    assert (await explain("shop/..")).exit_code == 1
    assert (await explain("shop/web?x=1")).exit_code == 1
    assert cluster.faults.count("GET", "/pods/web$") == 0


async def test_pod_without_a_node(cluster, explain):
    unbound = pod(metadata={"name": "new"}, spec={"nodeName": ""})
    cluster.store.create("pods", unbound)
    result = await explain("shop/new")
    assert (result.exit_code, "Pending: not bound to a node yet" in result.stdout) == (12, True)


async def test_node_that_is_gone(cluster, explain):
    cluster.delete("nodes", "n1")
    result = await explain()
    assert (result.exit_code, "node n1 does not exist" in result.stdout) == (0, True)


@pytest.mark.parametrize("what", ["pods/web", "nodes/n1", "taintevictionpolicies", "tolerationprofiles"])
@pytest.mark.parametrize(("code", "words"), [(403, "you may not read"), (500, "cannot read"), (429, "cannot read")])
async def test_refusal_is_one_line(cluster, explain, what, code, words):
    cluster.faults.answer(code, path=f"{what}$", times=5, retry_after_seconds=300)
    result = await explain()
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)
    assert result.stderr.startswith(f"taintwarden: {words} {what.split('/')[0]}: {code} ")


async def test_cut_connection_is_one_line(cluster, explain):
    cluster.faults.cut(path="nodes/n1$", times=5)
    result = await explain()
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("taintwarden: cannot reach the cluster at http://127.0.0.1:")


async def test_operator_that_does_not_run_is_reported_first(cluster, explain):
    cluster.create("taintevictionpolicies", policy())
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-31T12:00:00.000000Z"}
    cluster.store.create(
        "leases", {"metadata": {"name": "taintwarden", "namespace": "taintwarden-system"}, "spec": spec}
    )
    result = await explain()
    assert (result.exit_code, result.stdout.split()[:5]) == (11, ["Problem", "the", "operator", "has", "not"])


async def test_answer_for_another_time_reports_no_silent_operator(cluster, explain):
    cluster.create("taintevictionpolicies", policy())
    cluster.store.modify(
        "taintevictionpolicies", "sla", "", lambda one: one.update(status={"observedAt": at(time.time() - 5)})
    )
    assert (await explain("shop/web", "--at", "2099-01-01T00:00:00Z")).exit_code == 10


async def test_missing_crd_is_said(cluster, explain):
    cluster.delete("customresourcedefinitions", "taintevictionpolicies.taintwarden.io")
    result = await explain()
    assert (result.exit_code, "does not know TaintEvictionPolicies: apply the CRDs first" in result.stderr) == (1, True)


async def test_profile_of_the_namespace_decides(cluster, explain):
    cluster.create("taintevictionpolicies", policy())
    cluster.create("tolerationprofiles", profile("loose", toleration("Gt", "900")))
    result = await explain()
    assert result.exit_code == 0
    assert "sla Gt '900':NoExecute (profile loose): holds" in result.stdout
    assert "since profile loose names this key" in " ".join(result.stdout.split())


async def test_cluster_of_an_operator_without_profiles_is_explained(cluster, explain):
    cluster.delete("customresourcedefinitions", "tolerationprofiles.taintwarden.io")
    cluster.create("taintevictionpolicies", policy())
    assert (await explain()).exit_code == 10


async def test_budget_is_reported(cluster, explain):
    cluster.create("taintevictionpolicies", policy())
    cluster.store.create("poddisruptionbudgets", budget())
    result = await explain()
    assert "PodDisruptionBudget web: it allows no disruption now" in result.stdout


async def test_forbidden_list_of_budgets_is_skipped(cluster, explain):
    cluster.create("taintevictionpolicies", policy())
    cluster.faults.answer(403, path="poddisruptionbudgets", times=5)
    result = await explain()
    assert result.exit_code == 10
    assert "not known: you may not read poddisruptionbudgets" in result.stdout


async def test_namespace_is_needed_only_where_a_policy_asks(cluster, explain):
    cluster.faults.answer(403, path="namespaces/shop$", times=5)
    cluster.create("taintevictionpolicies", policy())
    assert (await explain()).exit_code == 10
    cluster.create("taintevictionpolicies", policy("b", namespaceSelector={"matchLabels": {"team": "shop"}}))
    result = await explain()
    assert (result.exit_code, result.stdout) == (1, "")
    assert "policy b selects namespaces by their labels, and you may not read namespaces" in result.stderr


async def test_namespace_selector_is_asked(cluster, explain):
    cluster.create("taintevictionpolicies", policy(namespaceSelector={"matchLabels": {"team": "shop"}}))
    assert (await explain()).exit_code == 10


async def test_unreachable_cluster_is_one_line(cli, tmp_path):
    cluster = {"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": []}
    context = {"contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}], "current-context": "c"}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(cluster | context))
    result = await asyncio.to_thread(cli, "explain", "pod", "a/b", "--kubeconfig", str(path))
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("taintwarden: cannot reach the cluster at http://127.0.0.1:1: ")


@pytest.mark.parametrize(("flag", "value"), [("--kubeconfig", "absent"), ("--context", "absent")])
async def test_wrong_kubeconfig_or_context(explain, flag, value):
    result = await explain("a/b", flag, value)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert result.stderr.startswith("taintwarden: cannot use ")


@pytest.fixture
def replaced(cluster: LocalCluster) -> LocalCluster:
    """Deployment web of one replica is asked for a replacement first, whatever its budget allows."""
    add_deployment(cluster)
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs-web-1", "controller": True}
    cluster.store.delete("pods", "web", "shop")
    cluster.store.create("pods", pod(GRACE, metadata={"ownerReferences": [controller]}))
    cluster.create("taintevictionpolicies", policy(eviction={"replaceFirst": {}}))
    return cluster


async def test_a_pod_that_is_replaced_first_names_its_deployment_and_no_budget(replaced, explain, run):
    waits = json.loads((await explain("shop/web", "-o", "json")).stdout)["waitsFor"]
    assert waits == "for its deadline, in 5m; then for Deployment web, which starts the replacement first (5m at most)"
    (same,) = json.loads((await run("explain", "node", "n1", "-o", "json")).stdout)["pods"]
    assert same["waitsFor"] == waits


@pytest.mark.parametrize(
    ("spec", "status", "why"),
    [
        ({}, {"replicas": 2}, "has a rollout in progress"),
        ({}, {"availableReplicas": 0}, "has no available pod"),
        ({"paused": True}, {}, "is paused"),
        ({"replicas": 3}, {}, "has 3 replicas"),
        ({"strategy": {"type": "Recreate"}}, {}, "has a strategy that removes its pod first"),
    ],
)
async def test_a_deployment_that_cannot_replace_its_pod_first_is_noted(replaced, explain, spec, status, why):
    def edit(one: Json) -> None:
        one["spec"].update(spec)
        one["status"].update(status)

    replaced.store.modify("deployments", "web", "shop", edit)
    notes = json.loads((await explain("shop/web", "-o", "json")).stdout)["notes"]
    assert f"Deployment web {why}, so no replacement is asked for" in notes


async def test_a_replacement_that_would_come_back_is_noted(replaced, explain):
    def edit(one: Json) -> None:
        one["metadata"]["annotations"] = {"taintwarden.io/tolerations": json.dumps([GRACE])}
        one["spec"]["tolerations"] = [toleration("Exists")]

    replaced.store.modify("pods", "web", "shop", edit)
    notes = json.loads((await explain("shop/web", "-o", "json")).stdout)["notes"]
    assert any("Deployment web would start it on the same node" in note for note in notes)


async def test_a_pod_whose_replacement_is_refused_waits_for_its_budget(replaced, explain):
    set_status(replaced, "sla", conditions=[condition("ReplacesFirst", "False", "pods are evicted: 403")])
    answer = json.loads((await explain("shop/web", "-o", "json")).stdout)
    assert answer["waitsFor"].startswith("for its deadline, in 5m; then for PodDisruptionBudget web: ")
    assert "Deployment web: pods are evicted: 403" in answer["notes"]


async def test_a_pod_whose_deployment_was_asked_waits_for_it_although_another_request_was_refused(replaced, explain):
    def ask(one: Json) -> None:
        asked = {"kubectl.kubernetes.io/restartedAt": at(time.time())}
        one["spec"]["template"] = {"metadata": {"annotations": asked}}

    replaced.store.modify("deployments", "web", "shop", ask)
    set_status(replaced, "sla", conditions=[condition("ReplacesFirst", "False", "pods are evicted: 403")])
    waits = json.loads((await explain("shop/web", "-o", "json")).stdout)["waitsFor"]
    assert waits == "for its deadline, in 5m; then for Deployment web, which starts the replacement first (5m at most)"


@pytest.mark.parametrize("what", ["deployments", "replicasets"])
async def test_deployments_that_may_not_be_read_are_said(replaced, explain, what):
    replaced.faults.answer(403, path=f"{what}$", times=5)
    result = await explain("shop/web")
    assert "not known whether its Deployment replaces it first" in result.stdout
