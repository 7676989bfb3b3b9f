"""`explain node` says which of its pods have to leave."""

import json

import pytest

from cli.policies import POLICIES, Run, empty_cluster
from cli.test_plan import add_node, add_pod
from cli.world import namespace, node, pod, policy, profile, snapshot, taint
from localcluster import LocalCluster
from taintwarden.engine.model import Gates
from taintwarden_cli.explain.explaining_pods import explain_pods, parts
from taintwarden_cli.rendering import render


def gt(value: int) -> dict[str, str]:
    one = {"key": "sla", "operator": "Gt", "value": str(value), "effect": "NoExecute"}
    return {"taintwarden.io/tolerations": json.dumps([one])}


@pytest.fixture
def cluster() -> LocalCluster:
    """Two pods are on a bad node, one on a good one."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    for name, value in (("a1", "900"), ("b1", "980")):
        add_node(cluster, name, value)
    add_pod(cluster, "web-0", "a1")
    add_pod(cluster, "web-1", "b1")
    add_pod(cluster, "other", "a1", canary="true")
    cluster.create(POLICIES, policy(timing={"violationGraceSeconds": 60}))
    return cluster


async def test_pods_of_a_node(run):
    result = await run("explain", "node", "a1")
    shown = " ".join(result.stdout.split())
    assert (result.exit_code, shown[:37]) == (10, "Drained no: 2 pods have to leave Node")
    assert ("Taints sla=900:NoExecute" in shown, "Waiting" in shown) == (True, False)  # none is due
    assert "taint sla=900:NoExecute is not tolerated (sla Gt '950':NoExecute does not hold), 60 s of grace" in shown


async def test_what_pods_wait_for_is_said_once(cluster, run):
    cluster.delete(POLICIES, "sla")
    cluster.create(POLICIES, policy(mode="DryRun"))
    shown = " ".join((await run("explain", "node", "a1")).stdout.split())
    assert shown.count("policy sla is in mode DryRun") == 1
    assert "Waiting 2 pods: for nothing: policy sla is in mode DryRun" in shown


async def test_what_is_not_known_of_pods_is_said(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(taints=[]))
    cluster.faults.answer(403, path="/apis/policy/v1/poddisruptionbudgets", times=1_000)
    shown = " ".join((await run("explain", "node", "a1")).stdout.split())
    assert "Budget not known: you may not read poddisruptionbudgets: 403" in shown
    assert "Note 2 pods: policy sla is not valid as stored; a running operator may still follow" in shown


async def test_policies_of_other_nodes_are_no_reason_to_stay_beside_one_of_this_node(cluster, run):
    cluster.create(POLICIES, policy("elsewhere", nodeSelector={"matchLabels": {"pool": "b"}}))
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(exclude={"namespaces": ["shop"]}))
    told = (await staying(run, "node", "a1"))[1]
    assert ("policy sla does not act: exclude.namespaces lists shop" in told, "elsewhere" in told) == (True, False)
    cluster.delete(POLICIES, "sla")
    assert (
        "2 pods: taint sla=900:NoExecute: no policy for its key selects the node"
        in (await staying(run, "node", "a1"))[1]
    )


async def test_node_without_pods_is_drained_and_has_its_taints(cluster, run):
    add_node(cluster, "c1", "900")
    told = json.loads((await run("explain", "node", "c1", "-o", "json")).stdout)
    assert (told["taints"], told["pods"]) == (["sla=900:NoExecute"], [])
    result = await run("explain", "node", "c1")
    assert (result.exit_code, result.stdout.splitlines()[0], "Stays" in result.stdout) == (0, "Drained     yes", False)


async def staying(run: Run, *subject: str) -> tuple[int, str]:
    result = await run("explain", *subject)
    return result.exit_code, " ".join(result.stdout.partition("POD ")[0].split())


async def test_pods_that_stay(run):
    code, told = await staying(run, "node", "b1")
    assert (code, told.partition("Staying ")[2]) == (
        0,
        "1 pod: taint sla=980:NoExecute is tolerated by sla Gt '950':NoExecute",
    )


@pytest.mark.parametrize(
    ("spec", "annotations", "why"),
    [
        ({"exclude": {"namespaces": ["shop"]}}, None, "policy sla does not act: exclude.namespaces lists shop"),
        (
            {},
            {"taintwarden.io/do-not-evict": "true"},
            "policy sla does not act: the pod opts out with taintwarden.io/do-not-evict",
        ),
        ({"taints": [{"key": "other"}]}, None, "1 pod: no policy acts on its taints"),
    ],
)
async def test_pods_that_a_policy_does_not_select_stay_for_that_reason(cluster, run, spec, annotations, why):
    cluster.delete(POLICIES, "sla")
    cluster.create(POLICIES, policy(**spec))
    for name in ("web-0", "other"):
        cluster.store.delete("pods", name, "shop")
    add_pod(cluster, "stays", "a1", annotations=annotations)
    code, told = await staying(run, "node", "a1")
    assert (code, told.partition("Staying ")[2].removeprefix("1 pod: taint sla=900:NoExecute: ")) == (0, why)


async def test_pods_of_a_node_without_taints_stay(cluster, run):
    cluster.store.modify("nodes", "b1", "", lambda one: one["spec"].update(taints=[]))
    assert "Staying 1 pod: its node has no taints" in (await staying(run, "node", "b1"))[1]


async def test_most_frequent_of_many_reasons_to_stay_are_shown(cluster, run):
    for number in range(9):
        add_pod(cluster, f"own-{number}", "b1", annotations=gt(900 + number))
    add_pod(cluster, "own-9", "b1", annotations=gt(901))
    told = (await staying(run, "node", "b1"))[1]
    assert told.count("Staying") == 6
    assert "Staying 2 pods: taint sla=980:NoExecute is tolerated by sla Gt '901'" in told
    assert told.endswith("Staying 5 pods: 5 other reasons; explain pod shows them")


async def test_a_node_that_is_not_there_is_one_line(run):
    result = await run("explain", "node", "absent")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("taintwarden: there is no node absent in the cluster at http")


async def test_of_the_pods_that_ended_those_that_something_keeps_are_named(cluster, run):
    for name in ("web-0", "other"):
        cluster.store.modify("pods", name, "shop", lambda one: one.update(status={"phase": "Succeeded"}))
    cluster.store.modify("pods", "web-0", "shop", lambda one: one["metadata"].update(finalizers=["example.com/backup"]))
    cluster.store.mark_deleted("pods", cluster.store.entry("pods", "web-0", "shop"), grace_seconds=60)
    result = await run("explain", "node", "a1")
    shown, ended = result.stdout, await run("explain", "pod", "shop/web-0")
    assert (result.exit_code, ended.exit_code) == (10, 10)
    assert shown.startswith("Drained     no: 1 pod terminates (finalizer example.com/backup)\n")
    assert "; finalizer example.com/backup" in ended.stdout
    assert ("shop/web-0" in shown, "shop/other" in shown) == (True, False)


def test_a_pod_that_terminates_is_not_said_to_stay():
    ending = pod(metadata={"deletionTimestamp": "2026-01-31T11:00:00Z"})
    told = render(*parts(explain_pods(snapshot(ending, node(taint()), policy()), "n1", Gates())))
    assert ("Ending      1 pod: it is terminating" in told, "Staying" in told) == (True, False)


def test_a_profile_by_which_pods_of_a_node_stay_is_named():
    everything = profile("loose", {"operator": "Exists"}, app="web")
    found = explain_pods(snapshot(pod(), node(taint()), policy(), everything), "n1", Gates())
    assert "taint sla=940:NoExecute is tolerated by * Exists of profile loose" in " ".join(
        render(*parts(found)).split()
    )


async def test_a_node_whose_pods_all_stay_is_drained(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(exclude={"namespaces": ["shop"]}))
    result = await run("explain", "node", "a1")
    head = "Drained     yes\nStays       2 (excluded namespace 2)\n"
    assert (result.exit_code, result.stdout.startswith(head)) == (0, True)
    told = json.loads((await run("explain", "node", "a1", "-o", "json")).stdout)
    assert (told["drained"], told["staying"][0]["names"]) == (True, ["shop/other", "shop/web-0"])


async def test_pods_of_a_policy_that_does_not_enforce_stay(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(paused=True))
    shown = (await run("explain", "node", "a1")).stdout
    assert "Stays       2 (policy sla does not enforce 2)" in shown
