"""`status` shows policies in a table of 100 columns, in detail if they are named, and problems by its exit code."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace

import msgspec
import pytest
from rich.console import Console

from cli.policies import POLICIES, condition, empty_cluster, set_status
from cli.world import Json, namespace, node, policy, taint
from localcluster import LocalCluster
from taintwarden.controller.words.wording import guard_advice, held, leaving
from taintwarden.engine.model import Gates
from taintwarden.engine.reported_status import LimitStatus, StuckPod
from taintwarden.engine.rfc3339 import at, exactly
from taintwarden_cli.rehearsal import liveness
from taintwarden_cli.rehearsal.session import ClusterError
from taintwarden_cli.status import showing
from taintwarden_cli.status.policy_status import StatusSummary

SINCE = "2026-01-31T12:00:00Z"
FINE = [condition("Accepted", "True"), condition("GuardTripped", "False", reason="Armed")]
TRIPPED = {"trippedAt": "2026-01-31T12:00:00.000000Z", "cause": "taint sla=900"}
BUSY = {
    "conditions": [*FINE, condition("Progressing", "True", "12 pods have to leave")],
    "selectedNodes": 120,
    "evictingNodes": 4,
    "pending": 12,
    "blocked": 3,
    "evicted": 1234,
    "limitedBy": "workload",
    "limits": [{"limit": "workload", "pods": 9, "since": SINCE, "until": "2026-01-31T12:05:00Z"}],
    "blockedBudgets": [{"namespace": "shop", "name": "web", "pods": 3}],
    "zones": [{"zone": "region/zone-a", "state": "Degraded", "nodes": 8, "unhealthyNodes": 4}],
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
def now(monkeypatch) -> float:
    """When the command looks, however busy the machine is."""
    moment = time.time()
    monkeypatch.setattr(showing, "time", SimpleNamespace(time=lambda: moment))
    return moment


async def test_one_line_for_each_policy(run):
    result = await run("status")
    header, sla, spot = result.stdout.splitlines()
    assert header.split() == ["POLICY", "MODE", "PENDING", "BLOCKED", "EVICTED", "LEAVING", "STAYING", "GUARD", "LIMIT"]
    assert sla.split() == ["sla", "Enforce", "12", "3", "1234", "0", "-", "armed", "workload"]
    assert spot.split() == ["spot", "Enforce", "0", "0", "0", "0", "-", "armed", "-"]
    assert result.exit_code == 0


async def test_pods_that_terminate_and_deletions_in_spite_of_budgets_are_seen_at_once(cluster, run):
    set_status(cluster, "sla", **BUSY | {"pastBudgets": 2})
    set_status(cluster, "spot", leaving=7)
    _, sla, spot = (await run("status")).stdout.splitlines()
    assert ("1234 (2 past budgets)" in sla, spot.split()[-4]) == (True, "7")


async def test_structure_is_as_documented(run):
    told = (await run("status", "--help")).stdout
    documented = set(re.findall(r"\w+", told[told.index("JSON has:") :]))
    answer = json.loads((await run("status", "-o", "json")).stdout)
    assert set(answer) | set(answer["policies"][0]) <= documented


@pytest.mark.usefixtures("terminal")
async def test_it_fits_into_100_columns_whatever_names_are(cluster, run):
    name = "a-policy-with-a-name-that-is-so-long-that-nobody-would-type-it-twice-without-a-mistake"
    cluster.create(POLICIES, policy(name))
    set_status(cluster, name, **BUSY)
    for arguments in ([], [name], ["sla", name]):
        shown = (await run("status", *arguments)).stdout
        assert max(map(len, shown.splitlines())) <= 100
        assert "workload" in shown.splitlines()[1]


async def test_named_policy_in_detail(run):
    shown = " ".join((await run("status", "sla")).stdout.split())
    for told in (
        "Nodes 120 nodes selected, pods have to leave 4 of them",
        "12 pods have to leave",
        "limit workload of policy sla: the workload cannot lose another Ready pod now",
        ", sla=900:NoExecute",
        "3 pods waiting for shop/web",
        "region/zone-a: Degraded, 4 of 8 nodes are unhealthy",
    ):
        assert told in shown


@pytest.mark.parametrize(("field", "most"), [("zones", 50), ("blockedBudgets", 20)])
async def test_a_list_that_is_full_says_that_there_may_be_others(cluster, run, field, most):
    for number in (most - 1, most):
        set_status(cluster, "sla", **BUSY | {field: BUSY[field] * number})
        shown = (await run("status", "sla")).stdout
        assert (f"there may be others: a status lists {most}" in shown) is (number == most)


async def test_nodes_with_a_place_are_listed_and_those_that_wait_are_no_problem(cluster, run, now):
    long_ago = at(now - 7_200)
    message = "node z9 waits for a place: a1 loses pods now; 14 nodes wait"
    limits = [{"limit": "place", "pods": 30, "since": long_ago, "message": message}]
    set_status(cluster, limits=limits, limitedBy="place", places={"nodes": [{"node": "a1", "since": long_ago}]})
    shown = await run("status", "sla")
    assert "Place       a1 for 2h" in shown.stdout
    assert message in " ".join(shown.stdout.split())
    assert shown.exit_code == 0


async def test_times_are_ages_and_countdowns(cluster, run, now):
    pods = [{**BUSY["nextPods"][0], "deadline": at(now - 61)}]
    held = [{"limit": "policy-rate", "pods": 9, "since": at(now - 150), "until": at(now + 90)}]
    resting = condition("Progressing", "True", f"12 pods have to leave; held since {at(now - 150)}")
    report = {"nextPods": pods, "limits": held, "conditions": [*FINE, resting]}
    set_status(cluster, "sla", **BUSY | report, observedAt=at(now - 17))
    shown = " ".join((await run("status", "sla")).stdout.split())
    for told in (
        r"^The operator reported 1[789]s ago\. ",
        r"overdue for 1m[123]s",
        r"waiting for 2m3[012]s: limit policy-rate",
        r"the next may be evicted in 1m(30|2[89])s",
        r"12 pods have to leave; held for 2m3[012]s \(as of 1[789]s ago\)",
    ):
        assert re.search(told, shown), shown


async def test_what_the_api_server_says_is_shown_once(cluster, run):
    pods = [{**BUSY["nextPods"][0], "name": name, "limit": "failing", "message": "no"} for name in ("web-1", "web-2")]
    limits = [{"limit": "failing", "pods": 2, "since": at(time.time()), "message": "forbidden: no"}]
    set_status(cluster, "sla", **BUSY | {"limits": limits, "nextPods": pods})
    assert (await run("status", "sla")).stdout.count("forbidden: no") == 1


@pytest.mark.parametrize(
    ("limit", "seconds", "told"),
    [("node", 90, " in 1m(?:30|2[89])s at the latest"), ("policy-rate", 90, " in 1m(?:30|2[89])s"), ("window", -9, "")],
)
async def test_the_end_of_a_wait_that_may_end_earlier_is_a_bound_and_one_that_is_past_is_not_shown(
    cluster, run, now, limit, seconds, told
):
    limits = [{"limit": limit, "pods": 9, "since": at(now - 150), "until": at(now + seconds)}]
    resting = condition("Progressing", "True", held(LimitStatus(limit, 9, at(now - 150), at(now + seconds))))
    set_status(cluster, "sla", **BUSY | {"limits": limits, "conditions": [*FINE, resting]})
    shown = " ".join((await run("status", "sla")).stdout.split())
    assert len(re.findall(f"the next may be evicted{told}(?! at)", shown)) == bool(told)


async def test_old_numbers_are_shown_as_old(cluster, run, between_reads, now):
    renewed(cluster, now - 78)
    limits = [{"limit": "window", "pods": 9, "since": at(now - 150), "until": at(now + 900)}]
    set_status(cluster, "sla", **BUSY | {"limits": limits}, observedAt=at(now - 78))
    shown = (await run("status", "sla")).stdout
    assert re.match(r"Problem +the operator has not reported for 1m18s\n", shown)
    assert re.search(r"\nThe operator reported 1m1[89]s ago: what follows is", shown)
    assert "the next may be evicted" not in shown


NEVER = {"maxUnavailable": 0}


BLOCKED_LONG = "PodDisruptionBudget shop/web allows no disruption now"


def worst(told: str) -> str:
    """The cause of the worst problem of the first policy in JSON."""
    problems = json.loads(told)["policies"][0]["problems"]
    return problems[0]["cause"] if problems else ""


@pytest.mark.parametrize(
    ("spec", "seconds", "problem"),
    [
        (NEVER, 0, "never allows an eviction: maxUnavailable is 0"),
        (NEVER, 1900, "never allows an eviction: maxUnavailable is 0"),
        ({}, 1900, BLOCKED_LONG),
        ({}, 0, ""),
    ],
)
async def test_a_budget_that_can_never_allow_calls_for_a_person_at_once(cluster, run, now, spec, seconds, problem):
    cluster.create("namespaces", namespace())
    message = "PodDisruptionBudget shop/web allows no disruption now"
    limits = [{"limit": "budget", "pods": 2, "since": at(now - seconds), "message": message}]
    set_status(cluster, "sla", **BUSY | {"limits": limits})
    cluster.create("poddisruptionbudgets", {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
    result = await run("status", "sla", "-o", "json")
    told = worst(result.stdout)
    assert (result.exit_code, told.endswith(problem), bool(told)) == (10 if problem else 0, True, bool(problem))


@pytest.mark.parametrize(("seconds", "code"), [(290, 0), (310, 10)])
async def test_a_pod_that_should_have_ended_for_as_long_as_its_alert_waits_calls_for_a_person(
    cluster, run, now, seconds, code
):
    stuck = {"namespace": "shop", "name": "web-0", "node": "a1", "since": at(now - seconds)}
    says = leaving(1, [msgspec.convert(stuck, StuckPod)])
    set_status(cluster, "spot", conditions=[*FINE, condition("Progressing", "True", says)], leaving=1, stuck=[stuck])
    result = await run("status", "spot")
    assert (result.exit_code, "Problem" in result.stdout) == (code, code == 10)
    assert result.stdout.count("shop/web-0 on a1 should have ended") == 1


async def test_every_problem_is_three_lines_the_worst_first(cluster, run, now):
    stuck = {"namespace": "shop", "name": "web-0", "node": "a1", "since": at(now - 400)}
    tripped = condition("GuardTripped", "True", "no pod is evicted", "MassEviction")
    guard = {"trippedAt": at(now - 60), "cause": "taint sla=900"}
    set_status(cluster, "spot", conditions=[FINE[0], tripped], guard=guard, leaving=1, stuck=[stuck])
    told = json.loads((await run("status", "spot", "-o", "json")).stdout)["policies"][0]["problems"]
    assert [one["kind"] for one in told] == ["GuardTripped", "Stuck"]
    shown = (await run("status")).stdout
    assert re.findall("(Problem|Effect|Do this) ", shown) == ["Problem", "Effect", "Do this"] * 2


async def test_budget_that_can_never_allow_is_no_problem_where_nothing_is_evicted(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(mode="DryRun"))
    set_status(cluster, "sla", **BUSY)
    cluster.create("namespaces", namespace())
    cluster.create("poddisruptionbudgets", {"metadata": {"name": "web", "namespace": "shop"}, "spec": NEVER})
    assert (await run("status", "sla")).exit_code == 0


async def test_operator_with_dry_run_is_stated_and_is_no_problem(cluster, run):
    why = "the operator runs with --dry-run: nothing is evicted"
    kept = condition("Enforcing", "False", why, "DryRun") | {"observedGeneration": 1}
    set_status(cluster, "sla", **BUSY | {"conditions": [*BUSY["conditions"], kept]})
    cluster.create("namespaces", namespace())
    cluster.create("poddisruptionbudgets", {"metadata": {"name": "web", "namespace": "shop"}, "spec": NEVER})
    result = await run("status", "sla")
    assert (result.exit_code, f"Mode {why}" in " ".join(result.stdout.split())) == (0, True)


@pytest.mark.parametrize(("key", "code"), [("slo", 10), ("sla", 0)])
async def test_a_key_that_no_node_has_any_more_calls_for_a_person(cluster, run, key, code):
    cluster.create("nodes", node(taint(key="sla")))
    cluster.store.modify(
        POLICIES, "spot", "", lambda one: one["spec"].update(taints=[{"key": key, "valueType": "Integer"}])
    )
    set_status(cluster, "spot", conditions=FINE)
    result = await run("status", "spot", "-o", "json")
    told = worst(result.stdout)
    assert (result.exit_code, told.startswith(f"no node has a taint {key}")) == (code, code == 10)


@pytest.mark.parametrize(("pool", "code"), [("a", 10), ("b", 0), ("without-nodes", 0)])
async def test_a_key_that_only_nodes_of_others_have_calls_for_a_person(cluster, run, pool, code):
    for name, made in {"a": node(), "b": node(taint(key="sla"))}.items():
        made["metadata"] |= {"name": name, "labels": {"pool": name}}
        cluster.create("nodes", made)
    chosen = {"nodeSelector": {"matchLabels": {"pool": pool}}, "taints": [{"key": "sla", "valueType": "Integer"}]}
    cluster.store.modify(POLICIES, "spot", "", lambda one: one["spec"].update(chosen))
    set_status(cluster, "spot", conditions=FINE)
    result = await run("status", "spot", "-o", "json")
    text = "none of the nodes that it selects has a taint sla, which others have"
    assert (result.exit_code, worst(result.stdout)) == (code, text if code else "")


async def test_a_source_that_no_node_has_calls_for_a_person(cluster, run):
    missing = condition("SourcesFound", "False", "none of 3 nodes has condition X")
    set_status(cluster, "spot", conditions=[*FINE, missing])
    assert ((await run("status", "spot")).exit_code, (await run("status", "sla")).exit_code) == (10, 0)


@pytest.mark.parametrize("path", ["/nodes", "/poddisruptionbudgets"])
async def test_what_may_not_be_read_is_no_problem(cluster, run, path):
    cluster.faults.answer(403, path=path)
    assert (await run("status")).exit_code == 0


async def test_top_in_a_pipe_is_the_status_in_detail(run):
    told = (await run("top")).stdout
    assert told == (await run("status", "-o", "wide")).stdout


async def test_top_shows_a_read_that_fails_above_the_last_answer(monkeypatch):
    summary = StatusSummary("2026-01-31T12:00:00Z", [])
    looks: list[StatusSummary | Exception] = [summary, ClusterError("no"), asyncio.CancelledError()]

    async def read_status(*_: object) -> StatusSummary:
        found = looks.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr(showing, "read_status", read_status)
    shown = StringIO()
    console = Console(file=shown, force_terminal=True, width=80)
    with pytest.raises(asyncio.CancelledError):
        await showing.show_live(None, "", (), 0.0, console, showing.LastInspection(Gates()))
    assert "As of 2026-01-31T12:00:00Z: no" in shown.getvalue()


async def test_invalid_taints_are_named_with_their_nodes_and_call_for_a_person(cluster, run):
    taints = [{"node": f"a{number}", "taint": "sla=98O:NoExecute", "pods": 2} for number in range(10)]
    set_status(cluster, "sla", retained=23, invalidTaints=taints)
    result = await run("status", "sla")
    shown = " ".join(result.stdout.split())
    judged = "2 pods are judged by its last valid value, or stay"
    problem = "Problem sla=98O:NoExecute on a0 cannot be compared (and at least 9 more taints)"
    remedy = "Do this set a valid value; taintwarden doctor --only taint-value-invalid says which"
    assert (result.exit_code, shown.count(f"{problem} Effect {judged}"), remedy in shown) == (10, 1, True)
    for number in range(1, 10):
        assert shown.count(f"sla=98O:NoExecute on a{number} cannot be compared: {judged}") == 1
    assert "3 pods with other invalid taints: kubectl get events" in shown


@pytest.mark.parametrize(
    ("reaction", "pods", "effect"),
    [
        ("Evict", 0, "pods that compare it have to leave, since"),
        ("Hold", 0, "pods that compare it are judged by its last valid value"),
        ("Evict", 1, "1 pod has to leave, since onInvalidValue is Evict"),
    ],
)
async def test_a_value_that_cannot_be_compared_calls_for_a_person_also_while_no_pod_is_there(
    cluster, run, reaction, pods, effect
):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(timing={"onInvalidValue": reaction}))
    set_status(cluster, "sla", invalidTaints=[{"node": "a0", "taint": "sla=98O:NoExecute", "pods": pods}])
    result = await run("status", "sla")
    assert (result.exit_code, f"Effect {effect}" in " ".join(result.stdout.split())) == (10, True)
    told = json.loads((await run("status", "sla", "-o", "json")).stdout)
    assert told["policies"][0]["onInvalidValue"] == reaction


async def test_all_policies_or_an_only_one_in_detail(cluster, run):
    shown = (await run("status", "-o", "wide")).stdout
    assert "shop/web-0 on a1: Waiting" in shown
    assert "\nspot\n" in shown
    cluster.delete(POLICIES, "spot")
    assert "shop/web-0 on a1: Waiting" in (await run("status")).stdout


async def test_tripped_guard_calls_for_a_person(cluster, run):
    opened = [condition("Accepted", "True"), condition("GuardTripped", "True", "120 pods would leave")]
    set_status(cluster, "spot", conditions=opened, guard=TRIPPED)
    result = await run("status", "spot")
    assert result.exit_code == 10
    assert result.stdout.count("120 pods would leave") == 1
    overview = " ".join((await run("status")).stdout.split())
    assert "Problem its guard has tripped: taint sla=900 Effect 120 pods would leave Do this" in overview


async def test_a_guard_that_trips_since_pods_came_back_points_to_placement(cluster, run):
    cause = "evicted pods came back to their nodes; taint sla on 1 node"
    set_status(cluster, "spot", conditions=[condition("GuardTripped", "True")], guard=TRIPPED | {"cause": cause})
    assert "keep pods off such nodes: docs/placement.md; taintwarden plan" in (await run("status", "spot")).stdout


async def test_tripped_guard_of_a_dry_run_is_no_problem(cluster, run):
    """The guard of a policy in DryRun holds nothing."""
    cluster.store.modify(POLICIES, "spot", "", lambda one: one["spec"].update(mode="DryRun"))
    opened = [condition("Accepted", "True"), condition("GuardTripped", "True", "120 pods would leave")]
    set_status(cluster, "spot", conditions=opened, guard=TRIPPED)
    assert (await run("status", "spot")).exit_code == 0


async def test_the_problem_is_what_the_guard_counts_without_its_advice(cluster, run):
    says = f"since {SINCE} no pod is evicted: 12 pods due in the next 10m, 3 are allowed. Still bad: node c1 sla=0"
    opened = [condition("Accepted", "True"), condition("GuardTripped", "True", f"{says}. {guard_advice('spot')}")]
    set_status(cluster, "spot", conditions=opened, guard=TRIPPED)
    told = json.loads((await run("status", "spot", "-o", "json")).stdout)["policies"][0]
    (problem,) = told["problems"]
    counted = says.removeprefix(f"since {SINCE} ")
    assert (problem["cause"], problem["effect"]) == (f"its guard tripped at {SINCE}: taint sla=900", counted)
    shown = (await run("status", "spot")).stdout
    assert (shown.count("12 pods due"), shown.count("taintwarden pause spot")) == (1, 1)


async def test_a_guard_that_paces_calls_for_a_person(cluster, run):
    says = "evictions continue at a pace of 50 in 10m, 120 left, until about 12:40 UTC: 120 pods due in the next 10m"
    message = f"since {SINCE} {says}. {guard_advice('spot')}"
    opened = [condition("Accepted", "True"), condition("GuardTripped", "True", message, "MassEviction")]
    set_status(cluster, "spot", conditions=opened, guard=TRIPPED)
    result = await run("status", "spot")
    assert (result.exit_code, says in " ".join(result.stdout.split())) == (10, True)


async def test_what_it_does_now_is_said_once(cluster, run):
    blind = "nothing is evicted: the operator receives no changes of pods"
    set_status(cluster, "spot", conditions=[condition("Progressing", "False", blind, "Blind")])
    shown = (await run("status", "spot")).stdout
    assert (shown.count("nothing is evicted"), shown.count("receives no changes of pods")) == (1, 1), blind


async def test_zones_that_are_all_full_call_for_a_person(cluster, run):
    full = condition("GuardTripped", "True", "All 3 nodes are unhealthy: 7 pods are held", "AllNodesUnhealthy")
    set_status(cluster, "spot", conditions=[condition("Accepted", "True"), full], guard={})
    result = await run("status", "spot")
    assert result.exit_code == 10
    assert "All 3 nodes are unhealthy: 7 pods are held" in result.stdout
    assert "all nodes are unhealthy, so no pod is evicted\n" in (await run("status")).stdout


async def test_policy_that_is_not_accepted_or_not_observed_calls_for_a_person(cluster, run):
    set_status(cluster, "spot", conditions=[condition("Accepted", "False", "spec.taints: is empty")])
    result = await run("status", "spot")
    assert (result.exit_code, "it is not accepted: spec.taints: is empty" in result.stdout) == (10, True)
    cluster.create(POLICIES, policy("new"))
    result = await run("status", "new")
    assert (result.exit_code, "no operator has observed it yet" in result.stdout) == (10, True)
    assert "Nodes" not in result.stdout  # how many they are is not known


async def test_a_status_that_is_older_than_the_others_says_so(cluster, run, now):
    set_status(cluster, "sla", observedAt=at(now))
    set_status(cluster, "spot", observedAt=at(now - 300))
    shown = (await run("status")).stdout
    assert shown.count("As of       5m ago: the operator has not written this status since\n") == 1


@pytest.mark.parametrize(("manager", "is_named"), [("taintwarden-pause", True), ("kubectl-edit", False)])
async def test_only_who_pauses_a_policy_now_is_named(cluster, run, manager, is_named):
    named = {"f:metadata": {"f:annotations": {"f:taintwarden.io/paused-by": {}}}}
    managed = [{"manager": "taintwarden-pause", "fieldsV1": named}]
    managed.append({"manager": manager, "fieldsV1": {"f:spec": {"f:paused": {}}}})

    def pause(one: Json) -> None:
        one["spec"]["paused"] = True
        one["metadata"] |= {"annotations": {"taintwarden.io/paused-by": "ann"}, "managedFields": managed}

    cluster.store.modify(POLICIES, "sla", "", pause)
    assert ("Paused      by ann" in (await run("status", "sla")).stdout) is is_named


async def test_newest_version_that_no_operator_observed_calls_for_a_person(cluster, run):
    cluster.store.modify(POLICIES, "spot", "", lambda one: one["spec"].update(mode="DryRun"))
    result = await run("status", "spot", "-o", "json")
    (told,) = json.loads(result.stdout)["policies"]
    assert (result.exit_code, told["accepted"], told["mode"]) == (10, "Unknown", "DryRun")
    assert "has not observed its newest version" in told["problems"][0]["cause"]


async def test_no_version_is_said_to_be_in_force_while_no_operator_runs(cluster, run, now):
    cluster.store.modify(POLICIES, "spot", "", lambda one: one["spec"].update(mode="DryRun"))
    set_status(cluster, "sla", observedAt=at(now - 400))
    shown = " ".join((await run("status", "spot")).stdout.split())
    assert ("stays in force" in shown, "Now the operator has not observed its newest version yet" in shown) == (
        False,
        True,
    )


def renewed(cluster: LocalCluster, moment: float) -> None:
    """The operator's Lease was renewed then."""
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": exactly(moment)}
    cluster.store.create(
        "leases", {"metadata": {"name": "taintwarden", "namespace": "taintwarden-system"}, "spec": spec}
    )


def renew(cluster: LocalCluster, moment: float) -> None:
    spec = {"renewTime": exactly(moment)}
    cluster.store.modify("leases", "taintwarden", "taintwarden-system", lambda one: one["spec"].update(spec))


@pytest.mark.parametrize("what", ["leases", "deployments of taintwarden-system"])
async def test_a_right_that_is_missing_is_named(cluster, run, what):
    cluster.faults.answer(403, path=what.partition(" ")[0], times=10)
    assert f"Not checked: you may not read {what}: 403" in (await run("status")).stdout


@pytest.fixture
def between_reads(cluster, monkeypatch) -> list[Callable[[], None]]:
    """Actions between two reads of a Lease that seems late; after each, time passes."""
    happens: list[Callable[[], None]] = []
    clock = [1000.0]

    async def sleep(seconds: float) -> None:
        clock[0] += seconds
        if happens:
            happens.pop(0)()

    monkeypatch.setattr(liveness, "pause", sleep)
    monkeypatch.setattr(liveness, "monotonic", lambda: clock[0])
    return happens


async def test_lease_that_is_not_renewed_is_reported_at_once(cluster, run, between_reads, now):
    renewed(cluster, now - 9)
    result = await run("status")
    told = "Problem the operator has not renewed its Lease for 14s Effect nothing is evicted until it does"
    assert (result.exit_code, " ".join(result.stdout.split()).startswith(told)) == (10, True)


async def test_operator_with_a_clock_that_runs_ahead_is_not_late(cluster, run, between_reads, now):
    renewed(cluster, now - 20)
    between_reads += [lambda: None, lambda: renew(cluster, now - 18)]
    assert "Lease" not in (await run("status")).stdout
    assert between_reads == []


async def test_lease_that_was_just_renewed_is_read_once(cluster, run, between_reads, now):
    renewed(cluster, now - 4)
    between_reads += [lambda: None]
    assert "Lease" not in (await run("status")).stdout
    assert len(between_reads) == 1


async def test_operator_that_does_not_report_is_reported_first(cluster, run, between_reads, now):
    renewed(cluster, now - 78)
    result = await run("status")
    first = result.stdout.splitlines()[0]
    assert result.exit_code == 10
    assert first.endswith("the operator has not reported for 1m18s")
    told = json.loads((await run("status", "-o", "json")).stdout)
    assert told["problems"][0]["cause"] == "the operator has not reported for 1m18s"


async def test_reports_decide_where_the_lease_may_not_be_read(cluster, run, between_reads, now):
    cluster.faults.answer(403, path="/leases/")
    for name, ago in (("sla", 78), ("spot", 90)):
        set_status(cluster, name, conditions=FINE, observedAt=exactly(now - ago))
    result = await run("status")
    assert (result.exit_code, "the operator has not reported for 1m18s" in result.stdout) == (10, True)


def deploy_webhook(cluster: LocalCluster, ready: int) -> None:
    """The Deployment of the webhook, with so many replicas that are ready."""
    meta = {"name": "hooks", "namespace": "taintwarden-system", "labels": {"app.kubernetes.io/name": "taintwarden"}}
    containers = [{"name": "webhook", "image": "none", "args": ["webhook"]}]
    template = {"metadata": {"labels": {"app": "hooks"}}, "spec": {"containers": containers}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "hooks"}}, "template": template}
    cluster.store.create("deployments", {"metadata": meta, "spec": spec})
    cluster.store.modify(
        "deployments", "hooks", meta["namespace"], lambda one: one.update(status={"readyReplicas": ready})
    )


@pytest.mark.parametrize(
    ("command", "ready", "answer", "code"),
    [("status", 0, 200, 10), ("top", 0, 200, 0), ("status", 1, 200, 0), ("status", 0, 403, 0)],
)
async def test_webhook_without_a_ready_replica_is_reported_if_readable(cluster, run, command, ready, answer, code):
    deploy_webhook(cluster, ready)
    if answer == 403:
        cluster.faults.answer(answer, path="/deployments")
    result = await run(command)
    told = "no replica of Deployment taintwarden-system/hooks, the webhook, is ready"
    assert (result.exit_code, told in result.stdout) == (code, ready == 0 and answer == 200)


async def test_operator_that_reports_is_fine(cluster, run, now):
    renewed(cluster, now - 3)
    set_status(cluster, "sla", conditions=FINE, observedAt=at(now - 15))
    told = json.loads((await run("status", "-o", "json")).stdout)
    assert (told["problems"], told["reportedAt"] is None) == ([], False)


async def test_paused_policy_says_how_many_pods_would_be_due(cluster, run):
    resting = condition("Progressing", "False", "paused, 12 pods would be due", "Paused")
    cluster.store.modify(POLICIES, "spot", "", lambda one: one["spec"].update(paused=True))
    set_status(cluster, "spot", conditions=[*FINE, resting], pending=12)
    assert "paused, 12 pods would be due" in (await run("status")).stdout


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
