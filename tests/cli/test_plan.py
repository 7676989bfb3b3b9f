"""`plan` says what follows from changed taints: pods that leave and when, what holds them, and which fit no node."""

import json
from datetime import UTC, datetime
from itertools import groupby

import pytest

from cli.policies import POLICIES, Run, add_deployment, condition, empty_cluster, set_status
from cli.world import Json, budget, kept_from_enforcing, namespace, pod, policy, profile, taint, toleration
from limits_off import LIMITS_OFF
from localcluster import LocalCluster
from taintwarden.controller.words import wording
from taintwarden_cli.plan.tables import parts, sweep_parts
from taintwarden_cli.rehearsal.ideal import Assumptions
from taintwarden_cli.rehearsal.plan import Plan, PlannedFate, PlannedPod
from taintwarden_cli.rehearsal.sweep import Step, Sweep
from taintwarden_cli.rendering import render

STRICT = toleration("Gt", "950")
NO_LIMITS = LIMITS_OFF
DROP = ("--taint", "sla=900:NoExecute")


def add_node(cluster: LocalCluster, name: str, value: str = "980", **labels: str) -> None:
    metadata = {"name": name, "labels": labels}
    # Past admission, which would call it not ready.
    cluster.store.create("nodes", {"metadata": metadata, "spec": {"taints": [taint(value)]}})


def add_pod(
    cluster: LocalCluster,
    name: str,
    node: str = "a1",
    *,
    owner: str = "web",
    annotations: Json | None = None,
    spec: Json | None = None,
    **labels: str,
) -> None:
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"rs-{owner}", "controller": True}]
    metadata = {
        "name": name,
        "uid": name,
        "labels": {"app": "web"} | labels,
        "ownerReferences": owners if owner else [],
    }
    given = {"nodeName": node, **(spec or {})}
    cluster.store.create("pods", pod(STRICT, metadata=metadata, annotations=annotations, spec=given))


@pytest.fixture
def cluster() -> LocalCluster:
    """Nodes a1 and b1 are good; three pods on a1 ask for more than 950."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    add_node(cluster, "a1", **{"topology.kubernetes.io/zone": "zone-a", "pool": "spot"})
    add_node(cluster, "b1", **{"topology.kubernetes.io/zone": "zone-b"})
    for number in range(3):
        add_pod(cluster, f"web-{number}")
    cluster.create(POLICIES, policy(limits={**NO_LIMITS, "evictionsPerSecond": 0.1, "burst": 1}))
    return cluster


async def planned(run: Run, *args: str) -> Json:
    result = await run("plan", *args, "-o", "json")
    assert result.exit_code in (0, 10), result.output
    found: Json = json.loads(result.stdout)
    return found


def replace_policy(cluster: LocalCluster, **spec: object) -> None:
    cluster.delete(POLICIES, "sla")
    cluster.create(POLICIES, policy(**spec))


async def test_plan_lists_pods_with_their_times_and_limits(run):
    plan = await planned(run, "--node", "a1", *DROP)
    assert [one["name"] for one in plan["pods"]] == ["web-0", "web-1", "web-2"]
    assert [round(one["afterSeconds"]) for one in plan["pods"]] == [0, 10, 20]
    assert [one["limit"] for one in plan["pods"]] == ["", "policy-rate", "policy-rate"]
    assert {one["replacedOn"] for one in plan["pods"]} == {"b1"}


@pytest.fixture
def database(cluster: LocalCluster) -> LocalCluster:
    """Each of the three pods has a ReplicaSet of its own, with the label in its template."""
    for number in range(3):
        cluster.store.delete("pods", f"web-{number}", "shop")
        add_pod(cluster, f"db-{number}", owner=f"db-{number}")
        template = {"metadata": {"labels": {"app": "web"}}}
        metadata = {"name": f"db-{number}", "namespace": "shop", "uid": f"rs-db-{number}"}
        cluster.store.create("replicasets", {"metadata": metadata, "spec": {"replicas": 1, "template": template}})
    replace_policy(cluster, limits={**NO_LIMITS, "perWorkload": {"label": "app"}})
    return cluster


async def test_pods_with_one_value_of_the_label_leave_one_after_the_other(database, run):
    plan = await planned(run, "--node", "a1", *DROP)
    assert [round(one["afterSeconds"]) for one in plan["pods"]] == [0, 30, 60]
    assert [one["limit"] for one in plan["pods"]] == ["", "workload", "workload"]


async def test_reason_of_a_pod_that_waits_for_another_with_its_label_names_the_label(database, run):
    plan = await planned(run, "--node", "a1", "--node", "b1", *DROP)
    reason = (
        "the workload cannot lose another Ready pod now: "
        "1 of 3 pods with label app=web is missing or being evicted, and at most 1 may be"
    )
    assert [one["reason"] for one in plan["pods"][1:]] == [reason, reason]


async def test_nothing_is_written(cluster, run):
    before = [cluster.store.list(resource) for resource in ("nodes", "pods", POLICIES)]
    await planned(run, "--node", "a1", *DROP)
    assert [cluster.store.list(resource) for resource in ("nodes", "pods", POLICIES)] == before
    assert cluster.faults.count() == cluster.faults.count("GET")


@pytest.mark.parametrize("where", [("--node", "a1"), ("--zone", "zone-a"), ("--selector", "pool=spot")])
async def test_nodes_by_name_zone_and_labels(run, where):
    plan = await planned(run, *where, *DROP)
    assert (plan["changedNodes"], plan["leaving"]) == (1, 3)


async def test_taint_on_which_no_policy_acts_is_noted(run):
    plan = await planned(run, "--node", "a1", "--taint", "slo=900:NoExecute", "--taint", "sla=980:NoExecute")
    assert plan["notes"] == ["no policy acts on slo=900:NoExecute on these nodes: it is left to Kubernetes"]


async def test_policy_may_be_planned_as_if_it_enforced(cluster, run):
    add_node(cluster, "c1", "900")
    add_pod(cluster, "old", "c1")
    replace_policy(cluster, paused=True, limits=NO_LIMITS)
    paused = await planned(run)
    assert (paused["pods"], paused["notes"]) == (
        [],
        ["policy sla is paused, 1 pod would be due: --enforce sla plans with it"],
    )
    enforced = await planned(run, "--enforce", "sla")
    assert (enforced["changes"], enforced["leaving"]) == (["policy sla in mode Enforce"], 1)


async def test_a_policy_planned_as_if_it_enforced_is_not_said_to_be_of_an_operator_with_dry_run(cluster, run):
    cluster.delete(POLICIES, "sla")
    cluster.store.create(POLICIES, kept_from_enforcing(policy(mode="DryRun", limits=NO_LIMITS)))
    assert (await planned(run, "--enforce", "sla"))["notes"] == []


async def test_dry_run_has_times(cluster, run):
    replace_policy(cluster, mode="DryRun", timing={"violationGraceSeconds": 60}, limits=NO_LIMITS)
    shown = (await run("plan", "--node", "a1", *DROP)).stdout
    assert "1m (dry run)" in shown


async def test_forecast_is_said_to_be_one(run):
    assert "none (forecast of the current state)" in (await run("plan")).stdout


@pytest.mark.parametrize(
    ("arguments", "told", "code"),
    [
        (("--node", "a1", "--remove", "maintenance"), "no taint maintenance to remove on a1", 1),
        (("--node", "a1", "--remove", "sla:NoSchedule"), "no taint sla:NoSchedule to remove on a1", 1),
        (("-l", "", *DROP), "the label selector is empty", 2),
        (("-l", "a==b==c", *DROP), "cannot read nodes", 1),
        (("--enforce", "absent"), "there is no TaintEvictionPolicy absent; there is sla", 1),
    ],
)
async def test_change_that_changes_nothing_or_everything_is_refused(run, arguments, told, code):
    result = await run("plan", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(f"taintwarden: {told}")


async def test_pod_that_already_has_to_leave_is_marked_and_spared_without_the_taint(cluster, run):
    add_node(cluster, "c1", "900")
    add_pod(cluster, "old", "c1")
    assert [(one["name"], one["already"]) for one in (await planned(run))["pods"]] == [("old", True)]
    plan = await planned(run, "--node", "c1", "--remove", "sla")
    assert (plan["pods"], plan["cancelled"]) == ([], ["shop/old"])


async def test_pods_that_fit_no_node_are_reported(run):
    plan = await planned(run, "--node", "a1", "--node", "b1", *DROP)
    assert {one["replacement"] for one in plan["pods"]} == {"Nowhere"}
    result = await run("plan", "--node", "a1", "--node", "b1", *DROP)
    assert (result.exit_code, "3 pods with nowhere to go" in result.stdout) == (10, True)


async def replaced_on(run: Run, name: str) -> str | None:
    """The node of the pod's replacement when it has to leave a1."""
    plan = await planned(run, "--node", "a1", *DROP)
    return {one["name"]: one["replacedOn"] for one in plan["pods"]}[name]


async def test_replacement_goes_where_its_node_selector_allows(cluster, run):
    add_node(cluster, "c1", disk="ssd")
    add_pod(cluster, "fast", owner="fast", spec={"nodeSelector": {"disk": "ssd"}})
    add_pod(cluster, "none", owner="none", spec={"nodeSelector": {"disk": "none"}})
    assert (await replaced_on(run, "fast"), await replaced_on(run, "none")) == ("c1", None)


async def test_replacement_goes_where_versions_of_labels_allow(cluster, run):
    add_node(cluster, "b0", **{"example.com/driver": "v3.9.0"})
    add_node(cluster, "c1", **{"example.com/driver": "v3.27.2"})
    newer = {"key": "example.com/driver", "operator": "SemverGt", "values": ["3.10.0"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [newer]}]}
    affinity = json.dumps({"requiredDuringSchedulingIgnoredDuringExecution": terms})
    add_pod(cluster, "newer", owner="newer", annotations={"taintwarden.io/node-affinity": affinity})
    assert await replaced_on(run, "newer") == "c1"


def shelf(value: str, effect: str) -> Json:
    return {"key": "shelf", "value": value, "effect": effect}


def on_shelf(effect: str) -> Json:
    """Tolerates only values above 5, and for the scheduler all."""
    extended = {"key": "shelf", "operator": "Gt", "value": "5", "effect": effect}
    native = {"key": "shelf", "operator": "Exists", "effect": effect}
    return {
        "annotations": {"taintwarden.io/tolerations": json.dumps([extended])},
        "spec": {"tolerations": [STRICT, native]},
    }


async def test_replacement_keeps_off_nodes_with_no_schedule_that_it_does_not_tolerate(cluster, run):
    for name, value in (("b0", "4"), ("c1", "6")):
        add_node(cluster, name)
        spec = {"taints": [taint("980"), shelf(value, "NoSchedule")]}
        cluster.store.modify("nodes", name, "", lambda one, spec=spec: one.update(spec=spec))
    cluster.store.delete("nodes", "b1")
    add_pod(cluster, "shelved", owner="shelved", **on_shelf("NoSchedule"))
    assert await replaced_on(run, "shelved") == "c1"


async def test_replacement_prefers_nodes_that_it_tolerates(cluster, run):
    spec = {"taints": [taint("980"), shelf("4", "PreferNoSchedule")]}
    cluster.store.modify("nodes", "b1", "", lambda one: one.update(spec=spec))
    add_node(cluster, "c1")
    add_pod(cluster, "other", "c1", owner="other")  # c1 has more pods
    add_pod(cluster, "shelved", owner="shelved", **on_shelf("PreferNoSchedule"))
    assert await replaced_on(run, "shelved") == "c1"


async def test_pod_without_a_controller_is_not_replaced(cluster, run):
    add_node(cluster, "c1")
    add_pod(cluster, "lone", "c1", owner="")
    (told,) = (await planned(run, "--node", "c1", *DROP))["pods"]
    assert (told["replacement"], told["replacedOn"]) == ("None", None)


async def test_budget_that_allows_nothing_holds_them(cluster, run):
    cluster.store.create("poddisruptionbudgets", budget())
    replace_policy(cluster, limits=NO_LIMITS)
    plan = await planned(run, "--node", "a1", *DROP)
    assert (plan["leaving"], plan["held"]) == (0, 3)
    assert {tuple(one["budgets"]) for one in plan["pods"]} == {("shop/web",)}


async def test_pods_that_are_deleted_in_spite_of_a_budget_need_a_person(cluster, run):
    cluster.store.create("poddisruptionbudgets", budget())
    replace_policy(cluster, limits=NO_LIMITS, eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": 60})
    told = await run("plan", "--node", "a1", *DROP)
    assert (told.exit_code, "in spite of PodDisruptionBudget shop/web" in told.stdout) == (10, True)
    assert "3 pods deleted in spite of PodDisruptionBudget shop/web" in told.stdout


async def test_budget_lets_as_many_go_as_are_replaced(cluster, run):
    cluster.store.create("poddisruptionbudgets", budget(allowed=1))
    replace_policy(cluster, limits=NO_LIMITS)
    plan = await planned(run, "--node", "a1", *DROP, "--replacement-seconds", "60")
    assert [round(one["afterSeconds"]) for one in plan["pods"]] == [0, 60, 120]


async def test_guard_that_trips_is_reported_with_its_cause(cluster, run):
    replace_policy(cluster, limits={**NO_LIMITS, "guard": {"minPods": 2, "maxPercent": 20}})
    result = await run("plan", "--node", "a1", *DROP, "-o", "json")
    plan = json.loads(result.stdout)
    (guard,) = plan["guards"]
    assert (guard["policy"], guard["pods"], guard["limit"], guard["halts"]) == ("sla", 3, 2, True)
    assert guard["cause"]
    assert (plan["held"], result.exit_code) == (3, 10)
    assert plan["endedAfterSeconds"] <= 60  # until the guard would hold less: an hour without events is not simulated


async def test_a_guard_that_paces_lets_pods_leave_in_each_window(cluster, run):
    guard = {"minPods": 2, "maxPercent": 20, "windowSeconds": 60, "action": "Pace"}
    replace_policy(cluster, limits={**NO_LIMITS, "guard": guard})
    plan = await planned(run, "--node", "a1", *DROP)
    (guard,) = plan["guards"]
    assert guard["pace"].startswith("evictions continue at a pace of 2 in 1m, 3 left, until about ")
    assert [round(one["afterSeconds"]) // 60 for one in plan["pods"]] == [0, 0, 1]
    assert f"3 pods would leave, 2 may; {guard['pace'][:40]}" in " ".join(
        (await run("plan", "--node", "a1", *DROP)).stdout.split()
    )


async def test_a_guard_that_has_counted_evictions_allows_its_share_of_the_pods_that_are_there(cluster, run):
    for number in range(17):
        add_pod(cluster, f"fine-{number}", "b1")
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    replace_policy(cluster, limits={**NO_LIMITS, "guard": {}})
    past = {"until": now, "namespaces": [{"namespace": "shop", "pods": 4}]}
    set_status(cluster, guard={"evicted": [past]})
    plan = await planned(run, "--node", "a1", *DROP)
    assert plan["guards"] == []  # 4 + 3 of 20 pods, of which half may be evicted
    assert plan["leaving"] == 3


async def test_calls_that_fail_now_are_taken_to_succeed_and_that_is_said(cluster, run):
    since = "2026-01-31T12:00:00Z"
    limits = [{"limit": "policy-rate", "pods": 3, "since": since}, {"limit": "failing", "pods": 1, "since": since}]
    set_status(cluster, limits=limits)
    plan = await planned(run, "--node", "a1", *DROP)
    assert plan["notes"] == ["calls for evictions of policy sla fail now; here they succeed"]


async def test_what_the_operator_remembers_and_a_plan_does_not_know_is_said(cluster, run):
    until = "2126-01-31T12:00:00Z"
    bounce = {"limit": "bounce", "pods": 1, "since": "2026-01-31T12:00:00Z", "until": until}
    released = condition("GuardTripped", "False", "not gone yet: 9 pods that a reset released", "Armed")
    set_status(cluster, limits=[bounce], conditions=[released])
    assert (await planned(run, "--node", "a1", *DROP))["notes"] == [
        f"limit bounce of policy sla delays 1 pod until {until}; here it does not",
        "the guard of policy sla counts here the 9 pods that a reset released",
    ]


async def test_operator_that_sees_no_changes_is_noted_once(cluster, run):
    cluster.create(POLICIES, policy("other", taints=[{"key": "other"}]))
    says = wording.blind(["poddisruptionbudgets"])
    for name in ("sla", "other"):
        set_status(cluster, name, conditions=[condition("Progressing", "False", says, "Blind")])
    assert (await planned(run, "--node", "a1", *DROP))["notes"] == [says]


async def test_the_guard_of_a_dry_run_holds_nothing(cluster, run):
    replace_policy(cluster, mode="DryRun", limits={**NO_LIMITS, "guard": {"minPods": 2, "maxPercent": 20}})
    plan = await planned(run, "--node", "a1", *DROP)
    assert [(one["limit"], one["halts"]) for one in plan["guards"]] == [(2, False)]
    assert [one["fate"] for one in plan["pods"]] == ["WouldLeave"] * 3


@pytest.mark.parametrize("more", [{}, {"places": "unreadable"}])
async def test_evictions_that_a_guard_has_counted_already_are_shown(cluster, run, more):
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    replace_policy(cluster, limits={**NO_LIMITS, "guard": {"minPods": 5}})
    past = {"until": now, "namespaces": [{"namespace": "shop", "pods": 4}]}
    set_status(cluster, guard={"evicted": [past]}, **more)
    shown = " ".join((await run("plan", "--node", "a1", *DROP)).stdout.split())
    assert (
        "of policy sla trips after 2s: 4 evicted in the last 10m + 3 pods would leave = 7, 5 may; it holds the policy"
        in shown
    )


@pytest.mark.parametrize(
    ("taint", "told"),
    [
        ("sla=98O:NoExecute", "pods with a comparison toleration are judged by its last valid value, 980"),
        ("sla=980:NoExecute", ""),
    ],
)
async def test_mistyped_value_is_reported(cluster, run, taint, told):
    replace_policy(cluster, taints=[{"key": "sla", "valueType": "Integer"}], limits=NO_LIMITS)
    result = await run("plan", "--node", "a1", "--taint", taint)
    shown = " ".join(result.stdout.split())
    assert result.exit_code == (10 if told else 0)
    assert ("Invalid " in shown, told in shown) == (bool(told), True)
    found = await planned(run, "--node", "a1", "--taint", taint)
    why = "'O' at position 3 is not a digit"
    assert found["invalid"] == ([f"{taint} on 1 node cannot be compared ({why}): {told} (policy sla)"] if told else [])


async def test_what_was_mistyped_before_the_change_is_not_of_it(cluster, run):
    cluster.store.modify("nodes", "b1", "", lambda one: one["spec"]["taints"][0].update(value="x"))
    add_pod(cluster, "fine", "b1")
    assert (await planned(run, "--node", "a1", *DROP))["invalid"] == []


async def test_profile_that_tolerates_the_taint_keeps_them(cluster, run):
    cluster.create("tolerationprofiles", profile("loose", toleration("Gt", "850"), app="web"))
    plan = await planned(run, "--node", "a1", *DROP)
    assert (plan["pods"], plan["notes"]) == ([], [])


async def test_dry_run_lists_pods_that_would_leave(cluster, run):
    replace_policy(cluster, mode="DryRun", limits=NO_LIMITS)
    plan = await planned(run, "--node", "a1", *DROP)
    assert (plan["leaving"], plan["wouldLeave"]) == (0, 3)


async def test_a_pod_that_gets_less_time_to_stop_than_it_asks_for_says_so(cluster, run):
    replace_policy(cluster, reclaim={"deadlineSeconds": 20})
    add_pod(cluster, "slow", spec={"terminationGracePeriodSeconds": 60})
    shown = " ".join((await run("plan", "--node", "a1", *DROP)).stdout.split())
    assert shown.count("less time to stop") == 4, "the others ask for 30 s"


@pytest.fixture
def removed(cluster) -> LocalCluster:
    """The node ends 60 s after the taint, and a budget never allows an eviction."""
    replace_policy(cluster, reclaim={"deadlineSeconds": 60})
    cluster.store.create("poddisruptionbudgets", budget())
    return cluster


@pytest.mark.usefixtures("removed")
async def test_pods_that_end_with_their_node_are_counted_and_call_for_a_person(run):
    result = await run("plan", "--node", "a1", *DROP, "-o", "json")
    plan = json.loads(result.stdout)
    assert (plan["missed"], plan["leaving"], plan["held"], result.exit_code) == (3, 0, 0, 10)
    assert {one["fate"] for one in plan["pods"]} == {"EndsWithNode"}
    assert {tuple(one["budgets"]) for one in plan["pods"]} == {("shop/web",)}


@pytest.mark.usefixtures("removed")
async def test_the_headline_names_the_budget_that_keeps_pods_on_a_node_that_ends(run):
    shown = " ".join((await run("plan", "--node", "a1", *DROP)).stdout.split())
    assert "Missed 3 pods not evicted before 1 node is removed, held by shop/web" in shown


async def test_no_time_of_a_plan_is_after_the_end_of_the_node(removed, run):
    """The budget allows one disruption for each replacement that is Ready, so two pods come too late."""
    removed.store.modify("poddisruptionbudgets", "web", "shop", lambda one: one["status"].update(disruptionsAllowed=1))
    plan = await planned(run, "--node", "a1", *DROP, "--replacement-seconds", "70")
    assert [one["fate"] for one in plan["pods"]] == ["Leaves", "EndsWithNode", "EndsWithNode"]
    assert max(one["afterSeconds"] for one in plan["pods"]) <= 60.001  # histories are kept in milliseconds
    assert {one["replacement"] for one in plan["pods"]} == {"Placed"}


async def test_pods_on_a_node_whose_end_is_past_have_been_missed_unless_the_change_removes_the_taint(removed, run):
    past = taint("900") | {"timeAdded": "2026-01-31T12:00:00Z"}
    removed.store.modify("nodes", "a1", "", lambda one: one["spec"].update(taints=[past]))
    plan = await planned(run)
    assert (plan["missed"], {one["at"] for one in plan["pods"]}) == (3, {"2026-01-31T12:01:01Z"})
    assert (await planned(run, "--node", "a1", "--remove", "sla"))["missed"] == 0


async def test_pods_with_less_time_to_stop_are_counted_and_call_for_a_person(cluster, run):
    replace_policy(cluster, reclaim={"deadlineSeconds": 20})
    result = await run("plan", "--node", "a1", *DROP)
    assert (result.exit_code, "Cut the grace of 3 pods, by the end of the node" in " ".join(result.stdout.split())) == (
        10,
        True,
    )


async def test_deadline_beyond_the_horizon_is_later(cluster, run):
    replace_policy(cluster, limits=NO_LIMITS, timing={"violationGraceSeconds": 3600})
    plan = await planned(run, "--node", "a1", *DROP, "--horizon", "10m")
    assert (plan["leaving"], plan["later"]) == (0, 3)


@pytest.mark.usefixtures("terminal")
async def test_table_fits_into_100_columns(cluster, run):
    add_pod(cluster, "a-pod-with-a-name-" + "x" * 60)
    shown = (await run("plan", "--node", "a1", *DROP)).stdout
    assert max(map(len, shown.splitlines())) <= 100
    assert "4 pods, the last after" in shown


async def test_a_long_table_is_cut_unless_asked(cluster, run):
    replace_policy(cluster, limits=NO_LIMITS)
    for number in range(50):
        add_pod(cluster, f"more-{number}")
    assert "... and 13 more: --all shows them" in (await run("plan", "--node", "a1", *DROP)).stdout
    assert "more: --all" not in (await run("plan", "--node", "a1", *DROP, "--all")).stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--node", "absent", *DROP), 1, "there is no node absent"),
        (("--zone", "absent", *DROP), 1, "there is no node in zone absent"),
        (("--selector", "pool=x", *DROP), 1, "no node has the labels pool=x"),
        (("--node", "a1", "--taint", "sla=900"), 2, "'sla=900' has no effect"),
        (("--node", "a1", "--taint", "sla=900:Evict"), 2, "has effect 'Evict': write NoSchedule"),
        (("--node", "a1", "--taint", "s l a:NoExecute"), 2, "is not a taint"),
        (DROP, 2, "name nodes by --node, --zone or --selector"),
        (("--node", "a1"), 2, "give --taint or --remove"),
        (("--horizon", "soon"), 2, "is not a time up to 30 days"),
    ],
)
async def test_bad_input_is_one_clear_line(run, args, code, words):
    result = await run("plan", *args)
    assert (result.exit_code, result.stdout, words in result.stderr) == (code, "", True), result.stderr


@pytest.mark.parametrize("what", ["nodes", "pods", "jobs", "taintevictionpolicies", "tolerationprofiles"])
async def test_what_cannot_be_read_is_one_clear_line(cluster, run, what):
    cluster.faults.answer(403, path=f"/{what}$")
    result = await run("plan")
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)
    assert result.stderr.startswith(f"taintwarden: you may not read {what}: 403 ")


async def test_invalid_policy_is_noted(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(taints=[]))
    plan = await planned(run, "--node", "a1", *DROP)
    assert "policy sla is not valid as stored" in plan["notes"][0]


async def test_operator_with_dry_run_is_noted_and_planned_without_it(cluster, run):
    cluster.delete(POLICIES, "sla")
    cluster.store.create(POLICIES, kept_from_enforcing(policy(limits=NO_LIMITS)))
    plan = await planned(run, "--node", "a1", *DROP)
    assert (plan["leaving"], plan["wouldLeave"]) == (3, 0)
    assert plan["notes"] == ["the operator runs with --dry-run: this is what would follow without it"]


# -- pods that come back ----------------------------------------------------------------------------------------------

GT_BY_ANNOTATION = {"taintwarden.io/tolerations": json.dumps([STRICT])}


@pytest.fixture
def recipe(cluster: LocalCluster) -> LocalCluster:
    """A native Exists beside the comparison: the scheduler accepts every value."""
    for number in range(3):
        cluster.store.delete("pods", f"web-{number}", "shop")
        add_pod(cluster, f"web-{number}", annotations=GT_BY_ANNOTATION, spec={"tolerations": [toleration("Exists")]})
    return cluster


async def test_pods_that_may_come_back_are_counted(recipe, run):
    plan = await planned(run, "--node", "a1", *DROP)
    assert (plan["leaving"], plan["returning"]) == (3, 3)
    assert [(one["replacedOn"], one["returnsTo"]) for one in plan["pods"]] == [("b1", "a1")] * 3


@pytest.mark.usefixtures("recipe")
async def test_a_plan_with_pods_that_may_come_back_says_look_first(run):
    result = await run("plan", "--node", "a1", *DROP)
    assert result.exit_code == 10
    assert "Bounce      3 pods may come back to a node that they have to leave" in result.stdout
    assert "b1 or a1 again" in result.stdout
    assert (await run("plan", "--node", "a1", "--node", "b1", *DROP)).stdout.count("nowhere or a1 again") == 3


async def test_where_a_pod_goes_in_a_dry_run_is_only_that_it_may_come_back(recipe, run):
    recipe.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(mode="DryRun"))
    lines = (await run("plan", "--node", "a1", *DROP)).stdout.splitlines()
    assert [line.split()[-3:] for line in lines if "(dry run)" in line] == [["-", "a1", "again"]] * 3


@pytest.mark.parametrize(("label", "returning"), [("true", 0), ("false", 3)])
async def test_placement_keeps_them_off(recipe, run, label, returning):
    labels = {"taintwarden.io/inject": label}
    recipe.store.modify("namespaces", "shop", "", lambda one: one["metadata"].update(labels=labels))
    replace_policy(recipe, taints=[{"key": "sla", "placement": True}], limits=NO_LIMITS)
    assert (await planned(run, "--node", "a1", *DROP))["returning"] == returning


async def test_the_extender_keeps_them_off(recipe, run):
    container = {"name": "extender", "args": ["scheduler-extender"]}
    metadata = {"name": "any", "namespace": "taintwarden-system", "labels": {"app.kubernetes.io/name": "taintwarden"}}
    spec = {"replicas": 2, "template": {"spec": {"containers": [container]}}}
    recipe.store.create("deployments", {"metadata": metadata, "spec": spec})
    assert (await planned(run, "--node", "a1", *DROP))["returning"] == 0


async def test_an_extender_that_is_not_known_is_noted(recipe, run):
    recipe.faults.answer(403, path="/namespaces/taintwarden-system/deployments", times=5)
    plan = await planned(run, "--node", "a1", *DROP)
    assert plan["notes"][-1].startswith("without the scheduler extender, which may run: you may not read deployments")


@pytest.mark.parametrize(("number", "must"), [(1, "1 pod may come back to a node that it has"), (2, "that they have")])
def test_pods_that_come_back_are_counted(number, must):
    fields = dict.fromkeys(("namespace", "name", "node", "policy", "taint", "deadline"), "")
    found = [PlannedPod(**fields, fate=PlannedFate.LATER, already=False, returns_to="a1")] * number
    numbers = {"changed_nodes": 0, "horizon_seconds": 0.0, "ended_after_seconds": 0.0}
    plan = Plan(at="", changes=[], **numbers, assumptions=Assumptions(), pods=found)
    assert f"{must} to leave" in render(*parts(plan, None))


async def test_affinity_for_the_label_that_the_operator_will_write_keeps_them_off(recipe, run):
    """The node still has the label of the value before."""
    label = "value.taintwarden.io/sla"
    for name in ("a1", "b1"):
        recipe.store.modify("nodes", name, "", lambda one: one["metadata"]["labels"].update({label: "980"}))
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": label, "operator": "Gt", "values": ["950"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    for number in range(3):
        recipe.store.modify("pods", f"web-{number}", "shop", lambda one: one["spec"].update(affinity=affinity))
    replace_policy(recipe, taints=[{"key": "sla", "placement": True}], limits=NO_LIMITS)
    plan = await planned(run, "--node", "a1", *DROP)
    assert (plan["leaving"], plan["returning"]) == (3, 0)


# -- a sweep over values ----------------------------------------------------------------------------------------------


async def swept(run: Run, text: str, *args: str, exits: int = 0) -> Json:
    result = await run("plan", "--sweep", text, *args, "-o", "json")
    assert result.exit_code == exits, result.output
    found: Json = json.loads(result.stdout)
    return found


def steps(found: Json) -> list[tuple[str, int, int]]:
    return [(one["value"], one["leaving"], one["more"]) for one in found["steps"]]


async def test_a_sweep_shows_where_pods_leave(cluster, run):
    loose = {"taintwarden.io/tolerations": json.dumps([toleration("Gt", "920")])}
    add_pod(cluster, "db-0", "b1", owner="db", annotations=loose)
    found = await swept(run, "sla=980..900")
    assert steps(found) == [("980", 0, 0), ("950", 3, 3), ("920", 4, 1), ("900", 4, 0)]
    assert found["steps"][2]["workloads"] == {"shop/web": 3, "shop/db": 1}
    assert (found["nodes"], found["pods"], found["policies"]) == (2, 4, ["sla"])


@pytest.mark.parametrize(
    ("text", "where", "told"),
    [
        ("sla=940..960", (), [("940", 3, 3), ("951", 0, -3), ("960", 0, 0)]),
        ("sla=980..900", ("--node", "b1"), [("980", 0, 0), ("900", 0, 0)]),
        ("sla=980,970,940", (), [("980", 0, 0), ("970", 0, 0), ("940", 3, 3)]),
    ],
    ids=["upwards", "nodes-that-are-named", "single-values"],
)
async def test_a_sweep_tries_what_is_named(run, text, where, told):
    assert steps(await swept(run, text, *where)) == told


async def test_a_sweep_tells_where_the_guard_trips(cluster, run):
    replace_policy(cluster, limits={**NO_LIMITS, "guard": {"minPods": 2}})
    found = await swept(run, "sla=960..940", exits=10)
    assert [one["trips"] for one in found["steps"]] == [[], ["sla"], ["sla"]]
    result = await run("plan", "--sweep", "sla=960..940")
    assert "950    3      ██████████████████████████████  3 of shop/web; the guard of sla trips" in result.stdout


@pytest.mark.parametrize(
    ("names", "told"),
    [(["a"], ["a does not enforce", "the guard of a trips"]), (["a", "b"], ["do not enforce", "guards of a, b trip"])],
)
def test_a_sweep_names_one_policy_and_several(names, told):
    found = Sweep("", "sla", "NoExecute", 1, 1, names, names, [Step("1", 1, 1, {}, names)], [], [])
    shown = render(*sweep_parts(found))
    assert all(one in shown for one in told)


async def test_a_sweep_counts_pods_of_policies_that_do_not_enforce(cluster, run):
    replace_policy(cluster, paused=True)
    found = await swept(run, "sla=960..940")
    assert (found["would"], found["steps"][-1]["leaving"]) == (["sla"], 3)


@pytest.mark.parametrize(("action", "leaving"), [("Hold", 0), ("Evict", 3)])
async def test_a_swept_value_that_cannot_be_compared(cluster, run, action, leaving):
    replace_policy(cluster, timing={"onInvalidValue": action}, limits=NO_LIMITS)
    found = await swept(run, "sla=980,high", exits=10)
    assert (steps(found)[-1], found["invalid"]) == (("high", leaving, leaving), ["high"])
    assert "Invalid     cannot be compared: high" in (await run("plan", "--sweep", "sla=980,high")).stdout


@pytest.mark.parametrize(
    ("entry", "spec"), [(toleration("Exists"), {"quarantine": True}), (toleration("Exists", tolerationSeconds=60), {})]
)
async def test_a_sweep_judges_as_the_operator(cluster, run, entry, spec):
    """No toleration counts in a quarantine, and a pod that may stay for a time has to leave."""
    replace_policy(cluster, limits=NO_LIMITS, **spec)
    cluster.store.create("pods", pod(entry, metadata={"name": "any", "uid": "any"}, spec={"nodeName": "b1"}))
    assert steps(await swept(run, "sla=990,980", "--node", "b1")) == [("990", 1, 1), ("980", 1, 0)]


async def test_a_range_shows_a_value_at_which_other_pods_leave(cluster, run):
    below = {"taintwarden.io/tolerations": json.dumps([toleration("Lt", "951")])}
    for number in range(3):
        add_pod(cluster, f"db-{number}", "b1", owner="db", annotations=below)
    assert steps(await swept(run, "sla=960..940")) == [("960", 3, 3), ("950", 3, 0), ("940", 3, 0)]


@pytest.mark.parametrize(
    ("text", "said"),
    [("slo=9..1", "no node carries the taint slo:NoExecute"), ("sla=9..1:NoSchedule", "no node carries")],
)
async def test_a_sweep_of_a_taint_that_no_node_has(run, text, said):
    assert said in (await swept(run, text))["notes"][0]


async def test_a_sweep_names_a_policy_that_is_not_valid(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(taints=[]))
    assert "policy sla is not valid as stored" in (await swept(run, "sla=980..900"))["notes"][-1]


async def test_a_sweep_on_which_no_policy_acts(run):
    found = await swept(run, "slo=980..900", "--node", "a1")
    assert found["notes"] == ["no policy acts on slo:NoExecute on these nodes: it is left to Kubernetes"]


@pytest.mark.parametrize("text", ["sla", "sla=", "sla=,", "=9..1", "sla=9..1:Maybe", "sla=0..99999", "sla=9..1"])
async def test_what_is_no_sweep_or_beside_a_change(run, text):
    assert (await run("plan", "--sweep", text, *(DROP if text == "sla=9..1" else ()))).exit_code == 2


# -- values that policies read from nodes -----------------------------------------------------------------------------

KUBELET = {"key": "kubelet", "from": {"nodeInfo": "kubeletVersion"}}
NEWER = {"key": "kubelet", "operator": "SemverGt", "value": "1.35.0", "effect": "NoExecute"}


@pytest.fixture
def reporting(cluster: LocalCluster) -> LocalCluster:
    """The nodes report new kubelets, and one of the four pods has a toleration for that."""
    replace_policy(cluster, taints=[KUBELET], limits=NO_LIMITS)
    for name in ("a1", "b1"):
        node = cluster.store.get("nodes", name)
        cluster.store.update("nodes", {**node, "status": {"nodeInfo": {"kubeletVersion": "v1.36.1"}}})
    add_pod(cluster, "demanding", annotations={"taintwarden.io/tolerations": json.dumps([NEWER])})
    return cluster


async def test_a_planned_value_is_that_of_its_source(reporting, run):
    plan = await planned(run, "--node", "a1", "--taint", "kubelet=v1.30.0:NoExecute")
    assert [(one["name"], one["replacedOn"]) for one in plan["pods"]] == [("demanding", "b1")]


async def test_a_swept_value_concerns_the_same_pods(reporting, run):
    result = await run("plan", "--sweep", "kubelet=v1.36.0,v1.30.0", "-o", "json")
    assert [step["leaving"] for step in json.loads(result.stdout)["steps"]] == [0, 1]


async def test_one_node_after_the_other_is_planned(cluster, run):
    for node in ("c1", "d1"):
        add_node(cluster, node, pool="spot")
        for number in range(2):
            add_pod(cluster, f"{node}-{number}", node)
    replace_policy(cluster, limits={**NO_LIMITS, "concurrentNodes": 1})
    found = await planned(run, "-l", "pool=spot", *DROP)
    order = [one["node"] for one in found["pods"]]
    assert len([node for node, _ in groupby(order)]) == 3
    assert {one["limit"] for one in found["pods"] if one["node"] != order[0]} == {"place"}
    assert [one["fate"] for one in found["pods"]] == ["Leaves"] * 7
    assert found["endedAfterSeconds"] < 60


@pytest.fixture
def single(cluster: LocalCluster) -> LocalCluster:
    """Deployment web has one replica and a budget that never allows an eviction."""
    for number in range(3):
        cluster.store.delete("pods", f"web-{number}", "shop")
    add_deployment(cluster)
    add_pod(cluster, "web-0", owner="web-1")
    replace_policy(cluster, limits=NO_LIMITS, eviction={"replaceFirst": {"timeoutSeconds": 60}})
    return cluster


async def test_a_pod_that_is_replaced_first_leaves_when_its_replacement_is_ready(single, run):
    plan = await planned(run, "--node", "a1", *DROP)
    [one] = plan["pods"]
    assert (one["fate"], round(one["afterSeconds"]), one["replacedOn"]) == ("Leaves", 30, "b1")


async def test_a_pod_whose_replacement_takes_too_long_waits_for_its_budget_after_the_timeout(single, run):
    plan = await planned(run, "--node", "a1", "--replacement-seconds", "90", *DROP)
    [one] = plan["pods"]
    assert (one["fate"], one["limit"]) == ("Held", "budget")
