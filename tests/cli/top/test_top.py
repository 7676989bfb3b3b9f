"""`top` on a cluster: the verdicts of the engine, with the rights of a reader, and keys on a terminal."""

import asyncio
import json
import os
import pty
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.devices import DRIVER, claim, for_devices, serve, sick, slice_of
from cli.policies import POLICIES, Run, condition, empty_cluster, running, set_status
from cli.test_plan import add_node, add_pod
from cli.world import budget, namespace, policy
from localcluster import LocalCluster
from taintwarden.engine import rfc3339
from taintwarden_cli.top.keyboard import split_keys

SECONDS = 120.0
SINCE = "2026-01-01T00:00:00Z"


@pytest.fixture
def cluster() -> LocalCluster:
    """a1 is bad: one pod is due, one is leaving. b1 is good."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    add_node(cluster, "a1", "900", **{"topology.kubernetes.io/zone": "zone-a"})
    add_node(cluster, "b1", **{"topology.kubernetes.io/zone": "zone-b"})
    for name, node in (("web-0", "a1"), ("web-1", "a1"), ("web-2", "b1")):
        add_pod(cluster, name, node, spec={"terminationGracePeriodSeconds": 30})
    cluster.delete("pods", "web-1", "shop")  # no kubelet ends it
    added = {"timeAdded": "2026-01-01T00:00:00Z"}
    cluster.store.modify("nodes", "a1", "", lambda one: one["spec"]["taints"][0].update(added))
    cluster.create(POLICIES, policy())
    set_status(
        cluster,
        conditions=[condition("Accepted", "True")],
        pending=1,
        limits=[{"limit": "window", "pods": 1, "since": SINCE}],
    )
    return cluster


@pytest.fixture
async def run(cluster: LocalCluster, cli, tmp_path: Path) -> AsyncIterator[Run]:
    async with running(cluster, cli, tmp_path) as run:
        yield run


async def test_once_prints_a_picture(run):
    result = await run("top", "--once")
    assert result.exit_code == 0
    rows = {line.split()[1]: line.split() for line in result.stdout.splitlines() if line.startswith("zone-")}
    assert (rows["a1"][2], rows["a1"][-1], rows["b1"][-1]) == ("sla=900", "▲○", "●")
    assert re.search(r"shop/web-0\s+a1\s+for \d+\w+\s+limit window of policy sla", result.stdout)


async def test_taints_of_devices_are_beside_those_of_the_node(cluster, run):
    serve(cluster)
    uid = next(one["metadata"]["uid"] for one in cluster.store.list("pods") if one["metadata"]["name"] == "web-2")
    cluster.create("resourceslices", slice_of("b1", gpu_0=[sick("79")]))
    cluster.create("resourceclaims", claim(device=f"{DRIVER}/b1/gpu-0", uids=(uid,)))
    cluster.create(POLICIES, for_devices())
    said = (await run("top", "--once")).stdout
    [row] = [line for line in said.splitlines() if line.startswith("zone-b")]
    assert " xid=79@gpu-0 " in row
    assert re.search(r"shop/web-2\s+b1\s+", said)


async def test_a_pod_that_its_budget_blocks(cluster, run):
    cluster.store.create("poddisruptionbudgets", budget("web"))
    assert "■○" in (await run("top", "--once")).stdout


@pytest.mark.parametrize(
    ("eviction", "limit", "mark"),
    [
        ({"method": "Delete"}, "node", "▲○"),
        ({"method": "EvictThenDelete", "pdbTimeoutSeconds": 30}, "budget", "■○"),
        ({"method": "EvictThenDelete", "pdbTimeoutSeconds": 30}, "node", "▲○"),  # its time is over
    ],
)
async def test_a_pod_that_is_deleted_in_spite_of_its_budget_waits_for_something_else(
    cluster, run, eviction, limit, mark
):
    cluster.store.create("poddisruptionbudgets", budget("web"))
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(eviction=eviction))
    set_status(cluster, nextPods=[next_pod(limit)])
    shown = (await run("top", "--once")).stdout
    assert (mark in shown, "limit node of policy sla" in shown) == (True, limit == "node")


async def test_the_guard_counts_the_reserved_evictions_that_were_made_and_none_that_left_the_window(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(limits={"guard": {"minPods": 9}}))
    past = {"until": rfc3339.at(time.time()), "namespaces": [{"namespace": "shop", "pods": 2}]}
    old = past | {"until": SINCE}
    [uid] = [one["metadata"]["uid"] for one in cluster.store.list("pods") if one["metadata"]["name"] == "web-2"]
    reserved = [{"uid": one, "namespace": "shop"} for one in (uid, "gone")]
    guard = {"evicted": [old, past], "reserved": reserved}
    set_status(cluster, conditions=[condition("GuardTripped", "False", "", "Armed")], guard=guard)
    assert "guard armed" in (said := (await run("top", "--once")).stdout)
    assert " 4/9" in said  # 2 in the window, 1 that was reserved, 1 that is due


def next_pod(limit: str) -> dict[str, str]:
    found = {"namespace": "shop", "name": "web-0", "node": "a1", "taint": "sla=900:NoExecute"}
    return found | {"deadline": SINCE, "state": "Waiting", "limit": limit}


@pytest.mark.parametrize("limit", ["node", "budget"])
async def test_a_pod_waits_for_what_explain_says(cluster, run, limit):
    """Another limit holds most pods of the policy."""
    cluster.store.create("poddisruptionbudgets", budget("web", int(limit == "node")))
    set_status(cluster, limits=[{"limit": "window", "pods": 9, "since": SINCE}], nextPods=[next_pod(limit)])
    explained = json.loads((await run("explain", "pod", "shop/web-0", "-o", "json")).stdout)["waitsFor"]
    [row] = [line for line in (await run("top", "--once")).stdout.splitlines() if "shop/web-0" in line]
    assert explained[:25] in row


@pytest.mark.parametrize(("spec", "said"), [({"paused": True}, "is paused"), ({"mode": "DryRun"}, "is in mode DryRun")])
async def test_a_policy_that_does_not_enforce_would_evict(cluster, run, spec, said):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(spec))
    shown = (await run("top", "--once")).stdout
    assert ("◌○" in shown, f"policy sla {said}" in shown) == (True, True)


async def test_a_pod_that_its_policy_leaves_on_a_node_that_will_be_gone_has_no_deadline(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(reclaim={"deadlineSeconds": 60}))
    add_pod(cluster, "stays", "a1", annotations={"taintwarden.io/do-not-evict": "true"})
    shown = (await run("top", "--once")).stdout
    assert re.search(r"sla=900\s+3 ▲○●", shown), shown
    assert "shop/stays" not in shown


@pytest.mark.parametrize("path", ["events", "poddisruptionbudgets"])
async def test_what_may_not_be_read_costs_nothing_else(cluster, run, path):
    cluster.faults.answer(403, path=f"{path}$", times=9)
    result = await run("top", "--once")
    assert (result.exit_code, "sla=900" in result.stdout) == (0, True)
    assert "not read: you may not read" in result.stdout


async def test_without_the_right_to_list_pods_it_is_one_line(cluster, run):
    cluster.faults.answer(403, path="v1/pods$", times=9)
    result = await run("top", "--once")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)


def test_keys_are_split():
    assert split_keys("a\x1b[A\x1b[Bq\x1b") == ["a", "up", "down", "q", "\x1b"]


async def test_keys_on_a_terminal(cluster, tmp_path):
    """Explain a pod, then quit: the terminal is as before."""
    async with cluster.serve() as server:
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        done, drawn = await asyncio.to_thread(_type, kubeconfig, [("web-0", "e"), ("Because", "q")])
    assert done == 0
    assert "\x1b[?1049l" in drawn


def _type(kubeconfig: Path, script: list[tuple[str, str]]) -> tuple[int, str]:
    """Type each key once its text is drawn; the exit code, and all that was drawn."""
    child, terminal = pty.fork()
    if not child:
        size = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        os.environ |= size | {"TAINTWARDEN_KUBECONFIG": str(kubeconfig)}
        os.execv(sys.executable, [sys.executable, "-m", "taintwarden_cli", "top"])
    drawn, since, give_up_at = "", 0, time.monotonic() + SECONDS
    try:
        while time.monotonic() < give_up_at:
            try:
                drawn += os.read(terminal, 65_536).decode(errors="replace")
            except OSError:
                break
            if script and script[0][0] in drawn[since:]:
                since = len(drawn)
                os.write(terminal, script.pop(0)[1].encode())
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), drawn
