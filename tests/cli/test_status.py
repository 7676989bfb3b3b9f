"""`status` tells how policies stand: in a table of 100 columns, in detail for those asked for, and by its exit code."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from cli.policies import POLICIES, Run, condition, empty_cluster, running, set_status
from cli.world import policy
from localcluster import LocalCluster
from taintwarden.controller.wording import at, exactly

SINCE = "2026-01-31T12:00:00Z"
FINE = [condition("Accepted", "True"), condition("GuardTripped", "False", reason="Armed")]
OPEN = {"open": True, "since": "2026-01-31T12:00:00.000000Z", "cause": "taint sla=900", "wouldEvict": 120, "spent": []}
BUSY = {
    "conditions": [*FINE, condition("Progressing", "True", "12 pods have to leave")],
    "selectedNodes": 120,
    "degradedNodes": 4,
    "pending": 12,
    "blocked": 3,
    "evicted": 1234,
    "limitedBy": "max-unavailable",
    "limits": [{"limit": "max-unavailable", "pods": 9, "since": SINCE, "until": "2026-01-31T12:05:00Z"}],
    "blockedBudgets": [{"namespace": "shop", "name": "web", "pods": 3}],
    "zones": [{"zone": "region/zone-a", "state": "Degraded", "nodes": 8, "degradedNodes": 4}],
    "nextPods": [
        {
            "namespace": "shop",
            "name": "web-0",
            "node": "a1",
            "taint": "sla=900:NoExecute",
            "deadline": SINCE,
            "state": "Waiting",
        }
    ],
}


@pytest.fixture
def cluster() -> LocalCluster:
    """Two policies: sla is busy, spot is idle."""
    cluster = empty_cluster()
    for name in ("sla", "spot"):
        cluster.create(POLICIES, policy(name))
        set_status(cluster, name, conditions=FINE)
    set_status(cluster, "sla", **BUSY)
    return cluster


@pytest.fixture
async def run(cluster: LocalCluster, cli, tmp_path: Path) -> AsyncIterator[Run]:
    async with running(cluster, cli, tmp_path) as run:
        yield run


async def test_one_line_for_each_policy(run):
    result = await run("status")
    header, sla, spot = result.stdout.splitlines()
    assert header.split() == [
        "POLICY", "MODE", "ACCEPTED", "NODES", "DEGRADED", "PENDING", "BLOCKED", "EVICTED", "GUARD", "LIMIT",
    ]  # fmt: skip
    assert sla.split() == ["sla", "Enforce", "True", "120", "4", "12", "3", "1234", "armed", "max-unavailable"]
    assert spot.split() == ["spot", "Enforce", "True", "0", "0", "0", "0", "0", "armed", "-"]
    assert result.exit_code == 0


async def test_it_fits_into_100_columns_whatever_names_are(cluster, run):
    name = "a-policy-with-a-name-that-is-so-long-that-nobody-would-type-it-twice-without-a-mistake"
    cluster.create(POLICIES, policy(name))
    set_status(cluster, name, **BUSY)
    for arguments in ([], [name], ["sla", name]):
        shown = (await run("status", *arguments)).stdout
        assert max(map(len, shown.splitlines())) <= 100
        assert "max-unavailable" in shown.splitlines()[1]


async def test_named_policy_in_detail(run):
    shown = " ".join((await run("status", "sla")).stdout.split())
    for told in (
        "12 pods have to leave",
        f"9 pods waiting since {SINCE}: limit max-unavailable of policy sla: ",
        "their workload cannot lose another Ready pod now",
        "; the next may be evicted at 2026-01-31T12:05:00Z",
        "3 pods waiting for shop/web",
        "region/zone-a: Degraded, 4 of 8 nodes are drained",
        "shop/web-0 on a1: Waiting",
    ):
        assert told in shown


async def test_invalid_taints_are_named_with_their_nodes(cluster, run):
    taints = [{"node": f"a{number}", "taint": "sla=98O:NoExecute", "pods": 2} for number in range(10)]
    set_status(cluster, "sla", heldInvalid=23, invalidTaints=taints)
    shown = " ".join((await run("status", "sla")).stdout.split())
    assert "sla=98O:NoExecute on a0 cannot be compared: 2 pods judged by the last valid value" in shown
    assert "3 pods with other invalid taints: kubectl get events" in shown


async def test_only_policy_in_detail(cluster, run):
    cluster.delete(POLICIES, "spot")
    assert "shop/web-0 on a1: Waiting" in (await run("status")).stdout


async def test_open_guard_calls_for_a_person(cluster, run):
    opened = [condition("Accepted", "True"), condition("GuardTripped", "True", "120 pods would leave")]
    set_status(cluster, "spot", conditions=opened, guard=OPEN)
    result = await run("status", "spot")
    assert result.exit_code == 10
    assert "120 pods would be evicted within one window" in result.stdout
    assert "taint sla=900" in result.stdout
    assert "its guard has tripped" in (await run("status")).stdout


async def test_zones_that_are_all_full_call_for_a_person(cluster, run):
    full = condition("GuardTripped", "True", "All its 3 zones are Full: 7 pods are held", "AllZonesFull")
    set_status(cluster, "spot", conditions=[condition("Accepted", "True"), full], guard={"open": False})
    result = await run("status", "spot")
    assert result.exit_code == 10
    assert "All its 3 zones are Full: 7 pods are held" in result.stdout
    assert "every zone is Full, so nothing is evicted" in (await run("status")).stdout


async def test_policy_that_is_not_accepted_calls_for_a_person(cluster, run):
    set_status(cluster, "spot", conditions=[condition("Accepted", "False", "spec.taints: is empty")])
    result = await run("status")
    assert (result.exit_code, "it is not accepted: spec.taints: is empty" in result.stdout) == (10, True)


async def test_policy_that_nobody_looked_at_calls_for_a_person(cluster, run):
    cluster.create(POLICIES, policy("new"))
    result = await run("status")
    assert (result.exit_code, "no operator has looked at it yet" in result.stdout) == (10, True)


async def test_newest_version_that_nobody_looked_at_calls_for_a_person(cluster, run):
    cluster.store.modify(POLICIES, "spot", "", lambda one: one["spec"].update(mode="DryRun"))
    result = await run("status", "spot", "-o", "json")
    (told,) = json.loads(result.stdout)["policies"]
    assert (result.exit_code, told["accepted"], told["mode"]) == (10, "Unknown", "DryRun")
    assert "has not looked at its newest version" in told["problem"]


def renewed(cluster: LocalCluster, ago: float) -> None:
    """The operator's Lease was renewed so many seconds ago."""
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": exactly(time.time() - ago)}
    cluster.store.create(
        "leases", {"metadata": {"name": "taintwarden", "namespace": "taintwarden-system"}, "spec": spec}
    )


async def test_operator_that_does_not_report_is_told_first(cluster, run):
    renewed(cluster, ago=78)
    result = await run("status")
    first = result.stdout.splitlines()[0]
    assert result.exit_code == 10
    assert first.startswith("The operator has not reported for 1m1")
    told = json.loads((await run("status", "-o", "json")).stdout)
    assert told["problem"].startswith("the operator has not reported for 1m1")


async def test_reports_tell_where_the_lease_may_not_be_read(cluster, run):
    cluster.faults.answer(403, path="/leases/")
    for name, ago in (("sla", 78), ("spot", 90)):
        set_status(cluster, name, conditions=FINE, observedAt=at(time.time() - ago))
    result = await run("status")
    assert (result.exit_code, result.stdout.startswith("The operator has not reported for 1m1")) == (10, True)


async def test_operator_that_reports_is_fine(cluster, run):
    renewed(cluster, ago=3)
    set_status(cluster, "sla", conditions=FINE, observedAt=at(time.time() - 15))
    told = json.loads((await run("status", "-o", "json")).stdout)
    assert (told["problem"], told["reportedAt"] is None) == ("", False)


async def test_paused_policy_says_how_many_pods_would_be_due(cluster, run):
    resting = condition("Progressing", "False", "paused, 12 pods would be due", "Paused")
    cluster.store.modify(POLICIES, "spot", "", lambda one: one["spec"].update(mode="Paused"))
    set_status(cluster, "spot", conditions=[*FINE, resting], pending=12)
    assert "paused, 12 pods would be due" in (await run("status")).stdout


async def test_json_and_yaml_have_the_same(run):
    in_json = json.loads((await run("status", "sla", "-o", "json")).stdout)
    in_yaml = yaml.safe_load((await run("status", "sla", "-o", "yaml")).stdout)
    assert in_json["policies"] == in_yaml["policies"]
    (told,) = in_json["policies"]
    assert (told["pending"], told["limits"][0]["pods"], told["guard"]["open"]) == (12, 9, False)


async def test_unknown_policy_is_one_line(run):
    result = await run("status", "absent")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "taintwarden: there is no TaintEvictionPolicy absent; there is sla, spot\n"


async def test_missing_right_is_one_line(cluster, run):
    cluster.faults.answer(403, path=POLICIES)
    result = await run("status")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("taintwarden: you may not read taintevictionpolicies: 403 ")


async def test_no_colour_where_no_terminal_is(run):
    assert "\x1b" not in (await run("status", "sla")).stdout


async def test_watch_is_for_tables(run):
    result = await run("status", "--watch", "-o", "json")
    assert (result.exit_code, "--watch shows a table" in result.stderr) == (2, True)


async def test_watch_shows_what_changes_and_survives_a_cut(cluster, tmp_path):
    async with cluster.serve() as server:
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        command = [sys.executable, "-m", "taintwarden", "status", "--watch", "--interval", "0.2"]
        environment = os.environ | {"TAINTWARDEN_KUBECONFIG": str(kubeconfig)}
        pipe = asyncio.subprocess.PIPE
        # A shell that starts us in the background ignores SIGINT for us and our children.
        heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        watch = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=pipe, stderr=pipe, preexec_fn=heed
        )
        assert watch.stdout is not None
        assert watch.stderr is not None
        try:
            assert (await watch.stdout.readline()).startswith(b"As of ")
            cluster.faults.cut(path=POLICIES, times=3)  # the client itself tries again once
            assert b"cannot reach the cluster" in await watch.stderr.readline()
            set_status(cluster, "spot", conditions=[condition("Accepted", "False", "mend me")])
            while b"mend me" not in await watch.stdout.readline():
                assert watch.returncode is None
            watch.send_signal(signal.SIGINT)
            assert await watch.wait() == 10
        finally:  # the server waits for those who ask it
            if watch.returncode is None:
                watch.kill()
                await watch.wait()
