"""`history` puts the operator's Events into one timeline."""

import json
import time

import pytest

from cli.policies import POLICIES, empty_cluster
from cli.terminals import terminal
from cli.world import policy
from localcluster import LocalCluster
from taintwarden.engine.rfc3339 import at, exactly
from taintwarden_cli.rendering import render
from taintwarden_cli.status.event_timeline import Happening, Timeline, parts

NOW = time.time()
# In one minute, whenever the test runs.
MINUTE = NOW // 60 * 60 - 600


def record(cluster: LocalCluster, name: str, ago: float, reason: str = "Evicted", **more: object) -> None:
    """An Event of the operator about a pod, `ago` seconds before MINUTE + 30, as it is stored (core/v1)."""
    about = {"kind": "Pod", "name": name, "namespace": "shop"}
    event = {
        "metadata": {"name": f"{name}-{reason.lower()}", "namespace": "shop"},
        "eventTime": exactly(MINUTE + 30 - ago),
        "reportingComponent": "taintwarden.io/taintwarden",
        "reason": reason,
        "message": f"{reason} from n1: taint sla=0:NoExecute is not tolerated (policy sla)",
        "type": "Normal",
        "involvedObject": about,
    }
    cluster.store.create("events", event | more)


@pytest.fixture
def cluster() -> LocalCluster:
    cluster = empty_cluster()
    cluster.create(POLICIES, policy())
    for number in range(5):
        record(cluster, f"web-{number}", 5 - number)
    record(cluster, "web-0", 20, "EvictionScheduled")
    record(cluster, "old", 7200)
    record(cluster, "foreign", 1, reportingComponent="kubelet")
    return cluster


async def test_what_happened_comes_in_order_and_pods_of_a_minute_are_one_line(run):
    result = await run("history")
    lines = [line.split()[1:4] for line in result.stdout.splitlines() if line.startswith("20")]
    assert lines == [
        ["EvictionScheduled", "Pod", "shop/web-0"],
        ["Evicted", "5", "pods"],
    ]
    assert "shop/web-0, shop/web-1, shop/web-2 and 2 more" in " ".join(result.stdout.split())


async def test_nodes_of_a_minute_are_one_line(cluster, run):
    for name in "abcde":
        record(cluster, name, 1, "InvalidTaintValue", involvedObject={"kind": "Node", "name": name})
    shown = " ".join((await run("history")).stdout.split())
    assert "InvalidTaintValue 5 nodes a, b, c and 2 more; the first: " in shown


async def test_pods_of_two_policies_are_two_lines(cluster, run):
    record(cluster, "web-9", 1, message="Evicted from n1: no toleration for it (policy spot)")
    reasons = [line.split()[1:2] for line in (await run("history")).stdout.splitlines()]
    assert reasons.count(["Evicted"]) == 2


async def test_a_pod_counts_once_in_a_line(cluster, run):
    for number in range(3):
        record(cluster, "web-0", number, "EvictionCancelled", metadata={"name": f"flap-{number}", "namespace": "shop"})
    record(cluster, "web-1", 0, "EvictionCancelled")
    lines = [line.split()[1:4] for line in (await run("history")).stdout.splitlines()]
    assert ["EvictionCancelled", "2", "pods,"] in lines


async def test_events_of_one_pod_are_counted(cluster, run):
    for number in range(3):
        record(cluster, "web-0", number, "EvictionCancelled", metadata={"name": f"flap-{number}", "namespace": "shop"})
    assert "EvictionCancelled  Pod shop/web-0, 3 times" in (await run("history")).stdout


@pytest.mark.parametrize("kind", ["TaintEvictionPolicy", "Node"])
async def test_a_tenants_event_says_nothing_of_what_belongs_to_no_namespace(cluster, run, kind):
    """The API server lets a tenant write an Event about any kind, with the namespace of the Event."""
    about = {"kind": kind, "name": "sla", "namespace": "shop"}
    record(cluster, "sly", 1, "GuardArmed", involvedObject=about)
    told = json.loads((await run("history", "-o", "json")).stdout)
    assert "GuardArmed" not in [one["reason"] for one in told["happenings"]]


async def test_history_warns_that_events_can_be_forged(run):
    assert "any account that may create Events can have written one" in " ".join((await run("history")).stdout.split())


async def test_a_narrow_terminal_loses_nothing(run):
    with terminal(60):
        shown = (await run("history")).stdout
    assert max(map(len, shown.splitlines())) <= 60
    assert next(line[:20] for line in shown.splitlines() if line.startswith("20")).endswith("Z")


def test_what_went_wrong_and_what_people_did_is_coloured(monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "100"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    told = [
        Happening(at=at(NOW), reason=reason, type=type_, kind="Pod", namespace="shop", name="web", note="")
        for reason, type_ in (("DeadlineMissed", "Warning"), ("PolicyPaused", "Normal"))
    ]
    shown = render(*parts(Timeline(at(NOW), at(NOW), "", told)))
    assert "\x1b[33mDeadlineMissed" in shown
    assert "\x1b[36mPolicyPaused" in shown


async def test_only_pods_of_a_namespace(run):
    told = json.loads((await run("history", "-n", "other", "-o", "json")).stdout)
    assert told["happenings"] == []


async def test_far_back_only_as_far_as_asked(run):
    told = json.loads((await run("history", "--since", "6h", "-o", "json")).stdout)
    assert told["happenings"][0]["name"] == "old"


async def test_empty_history_is_stated(run):
    assert (await run("history", "--since", "1s")).stdout.startswith("Nothing happened since ")
