"""`status` looks at the cluster itself: nodes that are removed before their pods have left, pods that stay, and why."""

import json
import re
import time
from typing import Any

import pytest

from cli.policies import POLICIES, Run, condition, empty_cluster, set_status
from cli.world import Json, budget, namespace, pod, policy, profile, taint, toleration
from definitions import define
from localcluster import LocalCluster
from taintwarden.controller.words import wording
from taintwarden.engine.machine.staying import in_short
from taintwarden.engine.model import several_budgets
from taintwarden.engine.rfc3339 import at, exactly
from taintwarden_cli.status import inspection
from taintwarden_cli.status.findings import Removal, describe_removals

FINE = [condition("Accepted", "True")]


def add_pod(cluster: LocalCluster, name: str, *tolerations: Json, node: str = "a1", **more: Any) -> None:
    metadata = {"name": name, "uid": name} | more.pop("metadata", {})
    cluster.store.create("pods", pod(*tolerations, metadata=metadata, spec={"nodeName": node}, **more))


def add_node(cluster: LocalCluster, name: str, *taints: Json, **metadata: Any) -> None:
    cluster.store.create("nodes", {"metadata": {"name": name} | metadata, "spec": {"taints": list(taints)}})


@pytest.fixture
def cluster() -> LocalCluster:
    """Node a1 has sla=900, and policy sla acts on it."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    add_node(cluster, "a1", taint("900"))
    add_policy(cluster, policy())
    return cluster


def add_policy(cluster: LocalCluster, made: Json) -> None:
    cluster.store.create(POLICIES, made)  # with its own time of creation
    set_status(cluster, made["metadata"]["name"], conditions=FINE)


async def policy_status(run: Run, name: str = "sla") -> Json:
    result = await run("status", name, "-o", "json")
    found: Json = json.loads(result.stdout)["policies"][0]
    return found


async def stays(run: Run) -> dict[str, int]:
    return {one["reason"]: one["pods"] for one in (await policy_status(run))["staying"]}


# -- pods that stay ---------------------------------------------------------------------------------------------------

DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "x", "controller": True}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tolerations": [toleration("Exists")]}, "tolerates"),
        ({"metadata": {"namespace": "kube-system"}}, "excluded namespace"),
        ({"annotations": {"taintwarden.io/do-not-evict": "true"}}, "opted out"),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "do not disrupt"),
        ({"metadata": {"ownerReferences": [DAEMON_SET]}}, "DaemonSet"),
    ],
)
async def test_a_pod_that_stays_on_a_tainted_node_is_counted_with_its_reason(cluster, run, more, why):
    add_pod(cluster, "web", *more.pop("tolerations", []), **more)
    add_pod(cluster, "leaves")
    assert await stays(run) == {why: 1}


async def test_a_profile_by_which_pods_stay_is_named(cluster, run):
    cluster.create("tolerationprofiles", profile("all", toleration("Exists", key="sla"), app="web"))
    add_pod(cluster, "web")
    assert await stays(run) == {"profile all": 1}


async def test_an_invalid_entry_or_profile_is_named_with_the_pods_that_stay(cluster, run):
    entries = {"taintwarden.io/tolerations": '[{"key": "sla", "operator": "Gt", "value": "0950"}]'}
    add_pod(cluster, "web", toleration("Exists"), annotations=entries)
    assert await stays(run) == {"tolerates, entries of its annotation are invalid": 1}
    cluster.store.create("tolerationprofiles", profile("bad", toleration("Around"), app="web"))
    assert await stays(run) == {"tolerates, entries of its annotation are invalid, profile bad is invalid": 1}


OUT = {"annotations": {"taintwarden.io/do-not-evict": "true"}}


@pytest.mark.parametrize(
    ("part", "given", "exclude", "told"),
    [
        ("spec", {"taints": [taint(effect="NoSchedule")]}, {}, {"other effect": 1}),
        ("metadata", OUT, {}, {"node opted out": 1}),
        ("metadata", OUT, {"respectDoNotEvict": False}, {}),
    ],
)
async def test_another_effect_or_a_node_that_opts_out_is_a_reason_to_stay(cluster, run, part, given, exclude, told):
    cluster.store.modify("nodes", "a1", "", lambda one: one[part].update(given))
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(exclude=exclude))
    add_pod(cluster, "web")
    assert await stays(run) == told


async def test_of_several_taints_the_one_that_the_policy_names_counts(cluster, run):
    taints = [taint("x", "other"), taint("900"), taint("y", "third")]
    cluster.store.modify("nodes", "a1", "", lambda one: one["spec"].update(taints=taints))
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(taints=[{"key": "sla"}, {"key": "none"}]))
    cluster.create("tolerationprofiles", profile("all", toleration("Exists", key="sla"), app="web"))
    add_pod(cluster, "own", toleration("Exists"), metadata={"labels": {}})
    add_pod(cluster, "web")
    assert await stays(run) == {"profile all": 1, "tolerates": 1}


async def test_a_policy_that_shadows_is_named(cluster, run):
    add_policy(cluster, policy("first", created="2025-01-01T00:00:00Z", mode="DryRun"))
    add_pod(cluster, "web")
    assert await stays(run) == {"shadowed by policy first": 1}


async def test_the_first_pods_that_stay_are_named_and_with_all_every_one(cluster, run):
    for number in range(5):
        add_pod(cluster, f"web-{number}", toleration("Exists"))
    shown = (await run("status", "sla")).stdout
    assert "5 pods on tainted nodes: tolerates (shop/web-0, shop/web-1, shop/web-2 and 2 more)" in shown
    assert "shop/web-4)" in (await run("status", "sla", "--all")).stdout


async def test_the_overview_counts_the_reasons_in_one_line(cluster, run):
    add_policy(cluster, policy("other", key="other"))
    add_pod(cluster, "web", toleration("Exists"))
    add_pod(cluster, "dns", metadata={"namespace": "kube-system"})
    shown = (await run("status")).stdout
    assert "Staying     2 pods on tainted nodes: excluded namespace 1, tolerates 1" in shown


async def test_pods_of_too_many_nodes_are_counted_only_with_all(cluster, run):
    for number in range(inspection.MAX_NODES):
        add_node(cluster, f"b{number}", taint("980"))
    add_pod(cluster, "web", toleration("Exists"))
    assert (await policy_status(run))["staying"] is None
    reclaimed(cluster, time.time())
    lost = "when 101 nodes of policy sla are removed, and which pods end with them: taintwarden status --all"
    assert json.loads((await run("status", "-o", "json")).stdout)["unread"] == [lost]
    found = json.loads((await run("status", "--all", "-o", "json")).stdout)["policies"][0]
    assert found["staying"] == [{"reason": "tolerates", "pods": 1, "names": ["shop/web"]}]


@pytest.mark.parametrize("path", ["/nodes", "/pods", "/tolerationprofiles"])
async def test_objects_that_may_not_be_read_are_named_on_the_screen(cluster, run, path):
    cluster.faults.answer(403, path=path, times=100)
    result = await run("top")
    assert re.search(f"Not checked: you may not read {path[1:]}: 403", result.stdout)
    assert (await policy_status(run))["staying"] is None


async def test_pods_that_may_not_be_read_are_counted_as_the_operator_reported_them(cluster, run):
    cluster.faults.answer(403, path="/nodes", times=100)
    set_status(
        cluster, conditions=FINE, staying=[{"reason": "opted out", "pods": 3}, {"reason": "tolerates", "pods": 2}]
    )
    overview = (await run("status")).stdout
    assert "3 pods on tainted nodes: opted out\n" in (await run("status", "sla", "-o", "wide")).stdout
    assert re.search(r"sla +Enforce +0 +0 +0 +0 +5 ", overview)


def test_reason_of_the_engine_for_an_excluded_pod_has_a_short_form():
    assert in_short("exclude.namespaces lists kube-system") == "excluded namespace"
    assert in_short("a new reason") == "a new reason"


# -- nodes that are removed -------------------------------------------------------------------------------------------


def test_of_what_holds_pods_of_a_removed_node_a_budget_is_the_remedy():
    held = Removal("a1", "2026-01-31T12:00:00Z", 2, missed=2, held_by=["calls", "shop/web"])
    assert "kubectl -n shop edit poddisruptionbudget web;" in describe_removals("sla", [held], "2026")[2]


def reclaimed(cluster: LocalCluster, added: float, seconds: int = 120, **spec: Any) -> None:
    cluster.store.modify(
        POLICIES, "sla", "", lambda one: one["spec"].update(reclaim={"deadlineSeconds": seconds}, **spec)
    )
    set_status(cluster, "sla", conditions=FINE)
    spot = taint("900") | {"timeAdded": at(added)}
    cluster.store.modify("nodes", "a1", "", lambda one: one["spec"].update(taints=[spot]))


@pytest.mark.parametrize(
    ("ago", "code", "told"),
    [(0, 0, r"Removed +a1 in (2m|1m5\ds|2m1s): 1 pod still to leave"), (200, 10, "a1 counts as removed for 1m")],
)
async def test_a_node_that_is_removed_calls_for_a_person_if_pods_are_there_afterwards(cluster, run, ago, code, told):
    reclaimed(cluster, time.time() - ago)
    add_pod(cluster, "web")
    result = await run("status", "sla")
    assert (result.exit_code, bool(re.search(told, result.stdout))) == (code, True)
    assert ("Do this     taintwarden explain node a1; docs/runbooks/" in result.stdout) is bool(code)


@pytest.mark.parametrize("spec", [{"paused": True}, {"mode": "DryRun"}])
async def test_pods_of_a_removed_node_are_counted_for_a_policy_that_does_not_enforce(cluster, run, spec):
    reclaimed(cluster, time.time(), **spec)
    add_pod(cluster, "web")
    assert ": 1 pod that would have to leave\n" in (await run("status", "sla")).stdout


async def test_pods_that_a_budget_keeps_until_their_node_is_removed_call_for_a_person_before(cluster, run):
    reclaimed(cluster, time.time())
    add_pod(cluster, "web")
    cluster.store.create("poddisruptionbudgets", budget())
    result = await run("status", "sla", "-o", "json")
    (found,) = json.loads(result.stdout)["policies"]
    assert [(one["pods"], one["missed"], one["heldBy"]) for one in found["removals"]] == [(1, 1, ["shop/web"])]
    (problem,) = found["problems"]
    assert (result.exit_code, problem["kind"]) == (10, "Reclaim")
    assert problem["effect"] == "1 pod not evicted by then, held by shop/web"
    assert problem["remedy"].startswith("let it allow more: kubectl -n shop edit poddisruptionbudget web; or set")


async def test_pods_with_less_time_to_stop_than_they_ask_for_call_for_a_person(cluster, run):
    reclaimed(cluster, time.time(), seconds=20)
    add_pod(cluster, "web")
    result = await run("status")
    assert ("Effect      the grace of 1 pod is cut" in result.stdout, result.exit_code) == (True, 10)
    (problem,) = (await policy_status(run))["problems"]
    assert problem["remedy"] == "set terminationGracePeriodSeconds of these pods below reclaim.deadlineSeconds"


async def test_nodes_that_are_removed_are_listed_in_order_of_removal(cluster, run):
    now = time.time()
    reclaimed(cluster, now)
    add_node(cluster, "b1", taint("900") | {"timeAdded": at(now - 60)}, taint("900", effect="NoSchedule"))
    add_pod(cluster, "web-0")
    add_pod(cluster, "web-1", node="b1")
    add_pod(cluster, "ends", node="b1")
    cluster.store.mark_deleted("pods", cluster.store.entry("pods", "ends", "shop"), grace_seconds=600)
    cluster.store.create("poddisruptionbudgets", budget())
    found = await policy_status(run)
    assert [(one["node"], one["pods"], one["missed"]) for one in found["removals"]] == [("b1", 2, 1), ("a1", 1, 1)]
    first, last = (one["at"] for one in found["removals"])
    (problem,) = found["problems"]
    assert problem["cause"] == f"node b1 is removed at {first} (and 1 more node until {last})"
    assert problem["effect"] == "2 pods not evicted by then, held by shop/web"
    shown = (await run("status", "sla")).stdout
    assert "1 not evicted by then, the grace of 0 cut" in shown
    assert re.search(r"\(and 1 more node until \S+Z, in ", shown)


async def test_of_many_nodes_that_are_removed_the_first_are_listed(cluster, run):
    reclaimed(cluster, time.time())
    for number in range(11):
        add_node(cluster, f"b{number}", taint("900") | {"timeAdded": at(time.time() - number)})
    shown = (await run("status", "sla")).stdout
    assert (shown.count("0 pods still to leave"), "Removed     2 more nodes: -o json has them" in shown) == (10, True)


def missed(cluster: LocalCluster, ago: float, reason: str = "not-evicted") -> None:
    note = f"{wording.MISSED[reason]}: a9 counts as gone since then (policy sla)"
    moment = exactly(time.time() - ago)
    event = {
        "metadata": {"name": f"e{ago}", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web"},
        "reason": "DeadlineMissed",
        "message": note,
        "type": "Warning",
        "eventTime": moment,
        "reportingComponent": "taintwarden.io/taintwarden",
    }
    cluster.store.create("events", event)


@pytest.mark.parametrize(("ago", "code"), [(60, 10), (1_800, 0)])
async def test_pods_that_missed_the_end_of_their_node_are_reported_for_an_hour(cluster, run, ago, code):
    reclaimed(cluster, time.time())
    missed(cluster, ago)
    missed(cluster, ago + 1, "grace-cut")
    missed(cluster, 4_000)  # where the API server keeps Events for longer
    result = await run("status", "sla")
    said = "1 pod not evicted before the node was removed, 1 pod with a grace that was cut, in the last hour"
    assert (result.exit_code, said in result.stdout) == (code, True)
    assert ("such as shop/web" in result.stdout) is bool(code)


# -- policies without effect, budgets that wait -----------------------------------------------------------------------


def paused(cluster: LocalCluster, **spec: Any) -> None:
    """A younger policy for the same taint, which is paused."""
    add_policy(cluster, policy("web", created="2026-02-01T00:00:00Z", paused=True, **spec))


async def test_a_paused_policy_without_effect_calls_for_a_person(cluster, run):
    paused(cluster)
    result = await run("status", "web")
    assert "policy sla, which is older, acts first on taint sla" in result.stdout
    assert ("Do this     taintwarden pause sla" in result.stdout, result.exit_code) == (True, 10)


@pytest.mark.parametrize(("pool", "is_said"), [("spot", False), ("fixed", True)])
async def test_policies_for_other_nodes_are_no_reason(cluster, run, pool, is_said):
    cluster.store.modify(
        POLICIES, "sla", "", lambda one: one["spec"].update(nodeSelector={"matchLabels": {"pool": "fixed"}})
    )
    paused(cluster, nodeSelector={"matchLabels": {"pool": pool}})
    assert [one["kind"] for one in (await policy_status(run, "web"))["problems"]] == ["Shadowed"] * is_said


async def test_two_budgets_for_one_pod_call_for_a_person_at_once(cluster, run):
    why = several_budgets(["shop/db", "shop/web"])
    held = [{"limit": "budget", "pods": 1, "since": at(time.time()), "message": why}]
    blocked = [{"namespace": "shop", "name": name, "pods": 1} for name in ("db", "web")]
    set_status(cluster, "sla", conditions=FINE, limits=held, blockedBudgets=blocked)
    result = await run("status", "sla")
    assert result.exit_code == 10
    assert "kubectl -n shop edit poddisruptionbudget db" in result.stdout
    assert "\n  Budget " not in result.stdout


async def test_a_pod_that_is_pending_and_keeps_a_budget_from_allowing_is_named(cluster, run):
    cluster.store.create("poddisruptionbudgets", budget())
    blocked = [{"namespace": "shop", "name": "web", "pods": 3}]
    set_status(cluster, "sla", conditions=FINE, blockedBudgets=blocked)
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    cluster.store.create(
        "pods",
        pod(
            metadata={"name": "new", "uid": "new"},
            spec={"nodeName": ""},
            status={"phase": "Pending", "conditions": [why]},
        ),
    )
    (problem,) = (await policy_status(run))["problems"]
    assert problem["cause"].startswith("shop/new, for which PodDisruptionBudget shop/web waits, is Pending")
    assert (problem["effect"], problem["remedy"]) == ("3 pods wait for it", "taintwarden explain pod shop/new")


MISSED = "1 of 4 pods of ReplicaSet web-1 is missing or being evicted, and at most 1 (25%) may be"


@pytest.mark.parametrize(
    ("message", "reason", "age", "code"),
    [
        (MISSED, "Unschedulable", 310, 10),
        (MISSED, "Unschedulable", 60, 0),
        (MISSED, "", 310, 0),
        ("1 of 2 pods with label app=web is missing", "Unschedulable", 310, 10),
        ("asked Deployment web for a replacement at 2026-01-31T12:00:00Z", "Unschedulable", 310, 10),
        ("1 of 4 pods of ReplicaSet other is missing", "Unschedulable", 310, 0),
    ],
)
async def test_a_pending_replacement_for_which_its_workload_waits_is_named(cluster, run, message, reason, age, code):
    """Meanwhile an autoscaler may add a node for it."""
    held = {"namespace": "shop", "name": "web", "node": "a1", "taint": "sla=900", "deadline": "", "state": "Waiting"}
    set_status(cluster, "sla", conditions=FINE, nextPods=[held | {"limit": "workload", "message": message}])
    why = {"type": "PodScheduled", "status": "False", "reason": reason, "message": reason}
    owner = DAEMON_SET | {"kind": "ReplicaSet", "name": "web-1"}
    metadata = {"name": "new", "uid": "new", "ownerReferences": [owner], "creationTimestamp": at(time.time() - age)}
    status = {"phase": "Pending", "conditions": [why]}
    cluster.store.create("pods", pod(metadata=metadata, spec={"nodeName": ""}, status=status))
    result = await run("status", "sla")
    assert result.exit_code == code
    assert ("shop/new, for which limit workload waits, is Pending: Unschedulable" in result.stdout) is bool(code)


@pytest.mark.parametrize(("ready", "age", "code"), [("False", 310, 10), ("False", 60, 0), ("True", 310, 0)])
async def test_a_pod_that_has_not_been_ready_for_long_and_keeps_its_workload_is_named(cluster, run, ready, age, code):
    held = {"namespace": "shop", "name": "web", "node": "a1", "taint": "sla=900", "deadline": "", "state": "Waiting"}
    message = "1 of 4 pods of ReplicaSet web-1 is missing or being evicted (such as bad on b1: not Ready)"
    set_status(cluster, "sla", conditions=FINE, nextPods=[held | {"limit": "workload", "message": message}])
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": at(time.time() - age)}
    add_pod(cluster, "bad", node="b1", status={"phase": "Running", "conditions": [condition]})
    result = await run("status", "sla")
    told = "shop/bad, for which limit workload waits, is not Ready" in result.stdout
    assert (result.exit_code, told) == (code, bool(code))


async def test_the_service_of_a_webhook_that_fails_is_named(cluster, run):
    said = 'failed calling webhook "deny.example.com": Post "https://hook.shop.svc:443/x?timeout=10s": refused'
    limits = [{"limit": "failing", "pods": 3, "since": "2026-01-31T12:00:00Z", "message": said}]
    set_status(cluster, "sla", conditions=FINE, limits=limits)
    (problem,) = (await policy_status(run))["problems"]
    assert problem["remedy"].endswith("kubectl -n shop get endpointslices -l kubernetes.io/service-name=hook")


async def test_a_version_that_was_made_a_moment_ago_is_no_problem(cluster, run):
    def edit(one: Json) -> None:
        one["spec"]["paused"] = True
        one["metadata"]["managedFields"] = [{"time": at(time.time()), "fieldsV1": {"f:spec": {}}}]

    cluster.store.modify(POLICIES, "sla", "", edit)
    result = await run("status", "sla")
    assert (result.exit_code, "has not observed its newest version yet" in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("mode", "key", "age", "code"),
    [("Publish", "sla", 310, 10), ("Publish", "sla", 60, 0), ("DryRun", "sla", 310, 0), ("Publish", "other", 310, 0)],
)
async def test_a_publisher_that_does_not_publish_the_key_of_a_policy_is_named(cluster, run, mode, key, age, code):
    define(cluster, "taintpublishers")
    answered = {"type": "Answered", "status": "False", "lastTransitionTime": at(time.time() - age)}
    made = {"metadata": {"name": "p"}, "spec": {"mode": mode, "key": key}}
    cluster.store.create("taintpublishers", made | {"status": {"summary": "no answer", "conditions": [answered]}})
    result = await run("status", "sla")
    assert (result.exit_code, "Problem     TaintPublisher p: no answer" in result.stdout) == (code, bool(code))


@pytest.mark.parametrize(("age", "code"), [(400, 10), (320, 0)])
async def test_a_publisher_that_reports_no_more_is_named(cluster, run, age, code):
    define(cluster, "taintpublishers")
    made = {"metadata": {"name": "p"}, "spec": {"mode": "Publish", "key": "sla", "intervalSeconds": 60}}
    cluster.store.create("taintpublishers", made | {"status": {"lastAnswerTime": at(time.time() - age)}})
    result = await run("status", "sla")
    assert (result.exit_code, "p: no publisher has reported for 6m" in result.stdout) == (code, bool(code))
