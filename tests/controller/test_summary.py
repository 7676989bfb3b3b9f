"""Conditions of the status: their messages answer why no pod is evicted."""

from typing import Any

import msgspec
import pytest

from controller import NOW, policy
from taintwarden.controller.status.summary import conditions
from taintwarden.controller.words.wording import not_ended, without_advice
from taintwarden.engine.commands import BadNode, BadNodes, GuardReport
from taintwarden.engine.limit_settings import GuardAction, GuardSettings, Limits
from taintwarden.engine.machine import PolicyReport, SourceReport
from taintwarden.engine.model import Taint
from taintwarden.engine.policy import Mode
from taintwarden.engine.records import GuardRecord, Pace
from taintwarden.engine.reported_status import BlockedBudget, LimitStatus, ReportedStatus, StuckPod, ZoneStatus

DUE = "2023-11-14T22:13:20Z"
LATER = "2023-11-14T22:13:25Z"
RATE = LimitStatus("policy-rate", 97, DUE, LATER)
BUDGET = LimitStatus("budget", 9, DUE)


def entry(**more: Any) -> PolicyReport:
    beyond = {name: more.pop(name) for name in PolicyReport.__struct_fields__ if name in more}
    return PolicyReport(more.pop("in_policy", policy()), ReportedStatus(**more), **beyond)


def condition(kind: str, **more: Any) -> tuple[str, str, str]:
    """Status, reason and message of one condition."""
    [said] = [one[1:] for one in conditions(entry(**more), "") if one[0] == kind]
    return said


def progress(**more: Any) -> tuple[str, str]:
    status, reason, message = condition("Progressing", **more)
    assert status == "True"
    return reason, message


# -- Progressing: why no pod is evicted -------------------------------------------------------------------------------


def test_without_pods_to_evict_the_policy_is_idle():
    assert condition("Progressing") == ("False", "Idle", "no pod has to leave")


def test_before_the_first_deadline_the_policy_is_pending():
    assert progress(pending=2, next_deadline=DUE) == ("Pending", f"2 pods have to leave, the first at {DUE}")


def test_streams_that_are_cut_off_are_named():
    status, reason, message = condition("Progressing", pending=2, blind=("nodes", "pods"))
    assert (status, reason) == ("False", "Blind")
    assert "nodes" in message


def test_in_a_dry_run_pods_would_have_to_leave():
    dry = policy(mode=Mode.DRY_RUN)
    assert progress(in_policy=dry, pending=2, next_deadline=DUE)[1] == f"2 pods would have to leave, the first at {DUE}"
    assert progress(in_policy=dry, pending=1, limits=(RATE,))[1].startswith(
        "1 pod would have to leave; policy-rate delays"
    )


STUCK = StuckPod("shop", "web-0", "n1", DUE)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"leaving": 2}, ("Leaving", "no other pod has to leave; 2 pods terminate")),
        (
            {"leaving": 1, "stuck": (STUCK,)},
            (
                "Stuck",
                f"no other pod has to leave; 1 pod terminates; {not_ended((STUCK,))}",
            ),
        ),
        ({"leaving": 1, "pending": 3}, ("Pending", "3 pods have to leave; 1 pod terminates")),
    ],
)
def test_terminating_pods_are_counted(counts, said):
    assert progress(**counts) == said


def test_a_limit_is_named_with_its_pods_reason_and_times():
    assert progress(pending=120, limits=(RATE,)) == (
        "Limited",
        (
            f"120 pods have to leave; policy-rate delays 97 since {DUE}: the rate of the policy; "
            f"the next may be evicted at {LATER}"
        ),
    )


def test_the_reason_why_no_call_is_made_is_reported_alone():
    refused = LimitStatus("calls", 2, DUE, message="the API server fails")
    assert (
        progress(pending=2, limits=(refused,))[1]
        == f"2 pods have to leave; calls delays 2 since {DUE}: the API server fails"
    )


def test_failing_calls_are_reported_besides_the_limit_that_holds_most():
    failing = LimitStatus("failing", 1, DUE, LATER)
    said = progress(pending=4, limits=(LimitStatus("workload", 3, DUE), failing))
    assert said == (
        "Limited",
        (
            f"4 pods have to leave; workload delays 3 since {DUE}: the workload cannot lose another Ready pod "
            f"now; failing delays 1 since {DUE}: eviction calls fail or hang; "
            f"the next call is made at {LATER}"
        ),
    )


def test_budgets_that_block_are_counted_and_one_is_named():
    budgets = (BlockedBudget("shop", "web", 8), BlockedBudget("shop", "db", 1))
    assert progress(pending=9, blocked=9, limits=(BUDGET,), blocked_budgets=budgets) == (
        "Blocked",
        f"9 pods have to leave; PodDisruptionBudgets block 9 pods since {DUE}, such as shop/web",
    )


def test_a_budget_that_blocks_alone_is_named_alone():
    said = progress(pending=1, blocked=1, blocked_budgets=(BlockedBudget("shop", "web", 1),))
    assert said[1] == "1 pod has to leave; PodDisruptionBudget shop/web blocks 1 pod"


def test_refusals_of_the_api_server_for_a_budget_count_too():
    said = progress(pending=9, blocked=9, blocked_by={"blocked": 9})
    assert said == ("Blocked", "9 pods have to leave; PodDisruptionBudgets block 9 pods")


def test_a_limit_that_holds_more_than_budgets_is_the_reason():
    assert progress(pending=120, blocked=3, limits=(RATE,))[0] == "Limited"


def test_budgets_that_hold_more_than_a_limit_are_the_reason():
    assert progress(pending=220, blocked=100, limits=(RATE,)) == (
        "Blocked",
        "220 pods have to leave; PodDisruptionBudgets block 100 pods",
    )


def test_eviction_calls_that_fail_are_the_reason():
    refused = LimitStatus("failing", 2, DUE)
    assert progress(pending=3, limits=(refused,)) == (
        "Failing",
        "3 pods have to leave; failing delays 2 since 2023-11-14T22:13:20Z: eviction calls fail or hang",
    )


# -- guards -----------------------------------------------------------------------------------------------------------


def guard(record: GuardRecord, action: GuardAction = GuardAction.HALT) -> GuardReport:
    halts = record.tripped_at is not None and action is GuardAction.HALT
    return GuardReport(record, halts, due=120, evicted=0, allowance=50, window_seconds=600)


TRIPPED = GuardRecord(NOW, "taint sla on 9 nodes", (("shop", 120),))
ADVICE = (
    "Pause the policy (taintwarden pause sla), correct the cause, and check with taintwarden plan --enforce sla what "
    "would be evicted; the guard is armed again when none of these pods has to leave. Only if you want all of them "
    "evicted: taintwarden guard reset sla"
)


def test_a_guard_that_holds_one_namespace_names_it():
    held = msgspec.structs.replace(guard(TRIPPED), scope="shop")
    assert f"since {DUE} it holds namespace shop only: 120 pods due" in condition("GuardTripped", guard=held)[2]


def test_a_tripped_guard_has_its_time_reason_and_remedy():
    bad = BadNodes(1, (BadNode("c1", Taint("sla", "0"), "980"),))
    status, reason, message = condition("GuardTripped", guard=msgspec.structs.replace(guard(TRIPPED), bad=bad))
    assert (status, reason) == ("True", "MassEviction")
    assert message == (
        f"since {DUE} no pod is evicted: 120 pods due in the next 10m, 50 are allowed. Still bad: node c1 sla=0 "
        f"(980 before). {ADVICE}"
    )


def test_a_tripped_guard_counts_evicted_pods_and_bad_nodes():
    named = tuple(BadNode(f"c{number}", Taint("sla", "0"), before) for number, before in enumerate(("980", "", None)))
    held = msgspec.structs.replace(guard(TRIPPED), due=12, evicted=60, bad=BadNodes(10, named))
    assert (
        "60 evicted in the last 10m + 12 due in the next 10m = 72, 50 are allowed. "
        "Still bad: nodes c0 sla=0 (980 before), c1 sla=0 (no value before), c2 sla=0 and 7 more. Pause the policy"
    ) in condition("GuardTripped", guard=held)[2]


def test_a_tripped_guard_within_its_allowance_says_how_long_it_holds():
    held = msgspec.structs.replace(guard(TRIPPED), due=1)
    message = condition("GuardTripped", guard=held)[2]
    assert "1 pod due in the next 10m, 50 are allowed; it holds them until none of the wave has to leave" in message


def test_a_guard_that_only_reports_holds_nothing():
    message = condition("GuardTripped", guard=guard(TRIPPED, GuardAction.REPORT))[2]
    assert ("it holds nothing (action Report): 120 pods" in message, "guard reset" in message) == (True, False)


PACED = msgspec.structs.replace(guard(TRIPPED, GuardAction.PACE), pace=Pace(120, NOW + 1_200))


@pytest.mark.parametrize(
    ("pace", "says"),
    [
        (PACED.pace, "120 left, until about 22:33 UTC"),
        (Pace(120, NOW + 86_400), "120 left, until about 2023-11-15 22:13 UTC"),
        (Pace(3, None), "3 left, of which none may be evicted"),
    ],
)
def test_a_guard_that_paces_names_the_pods_left_and_its_end(pace, says):
    message = condition("GuardTripped", guard=msgspec.structs.replace(PACED, pace=pace))[2]
    continues = "evictions continue at a pace of 50 in 10m"
    assert f"since {DUE} {continues}, {says}: 120 pods due in the next 10m, 50 are allowed" in message


def test_the_guard_of_a_paused_policy_does_not_pace():
    message = condition("GuardTripped", in_policy=policy(mode=Mode.PAUSED), guard=PACED)[2]
    assert f"since {DUE} no pod is evicted: 120 pods due" in message


def test_the_guard_of_a_dry_run_says_that_it_holds_nothing():
    message = condition("GuardTripped", in_policy=policy(mode=Mode.DRY_RUN), guard=guard(TRIPPED))[2]
    assert " it holds nothing: 120 pods due" in message
    assert message.endswith("and check with taintwarden plan --enforce sla what would be evicted, before it enforces")


def test_the_guard_of_a_paused_policy_counts_on_and_advises_no_pause():
    of_one_namespace = msgspec.structs.replace(guard(TRIPPED), scope="shop")
    message = condition("GuardTripped", in_policy=policy(mode=Mode.PAUSED), guard=of_one_namespace)[2]
    holds = f"since {DUE} no pod is evicted: 120 pods due in the next 10m, 50 are allowed"
    assert message == (
        f"{holds}. Correct the cause, and check with taintwarden plan --enforce sla what would be evicted, before you "
        "resume it (taintwarden resume sla)"
    )
    assert without_advice(message, "sla") == holds


@pytest.mark.parametrize(("record", "starts"), [(GuardRecord(), "The installed"), (TRIPPED, "since")])
def test_fields_that_an_older_definition_drops_are_named_with_the_remedy(record, starts):
    message = condition("GuardTripped", guard=msgspec.structs.replace(guard(record), pruned=("population",)))[2]
    assert message.startswith(starts)
    said = "The installed CustomResourceDefinition drops status.guard.population: kubectl apply -f crds/"
    assert message.endswith(said)


def test_an_armed_guard_has_no_message():
    assert condition("GuardTripped", guard=guard(GuardRecord())) == ("False", "Armed", "")


def test_a_guard_that_was_reset_counts_the_released_pods():
    said = condition("GuardTripped", released=120, guard=guard(GuardRecord()))
    assert said[2] == "not gone yet: 120 pods that a reset released"


def test_a_policy_without_a_guard_has_the_reason_no_guard():
    assert condition("GuardTripped") == ("False", "NoGuard", "the policy has no guard")


FULL = (ZoneStatus("eu/a", "Full", 3, 3), ZoneStatus("eu/b", "Full", 9, 9))


def test_while_all_nodes_are_unhealthy_the_guard_counts_as_tripped():
    guarded = policy(limits=Limits(guard=GuardSettings()))
    full = {"in_policy": guarded, "all_nodes_unhealthy": True, "selected_nodes": 12, "guard": guard(GuardRecord())}
    message = (
        "All 12 nodes are unhealthy, which looks like a fault of the monitoring: 7 pods wait. Check the "
        "monitoring, and check with taintwarden plan what would be evicted. Only if you want all these pods evicted, "
        "release them: taintwarden guard reset sla"
    )
    assert condition("GuardTripped", pending=9, due=7, **full) == ("True", "AllNodesUnhealthy", message)
    one = condition("GuardTripped", pending=1, due=1, **full)[2]
    assert one.startswith("All 12 nodes are unhealthy, which looks like a fault of the monitoring: 1 pod waits.")
    rehearsing = full | {"in_policy": msgspec.structs.replace(guarded, mode=Mode.DRY_RUN)}
    assert condition("GuardTripped", pending=9, due=7, **rehearsing)[2].endswith("what would be evicted")


def test_pods_that_a_reset_released_do_not_wait_for_full_zones():
    full = {"all_nodes_unhealthy": True, "zones": FULL, "guard": guard(GuardRecord())}
    assert condition("GuardTripped", pending=9, due=5, released=5, **full) == (
        "False",
        "Armed",
        "not gone yet: 5 pods that a reset released",
    )
    assert ": 2 pods wait." in condition("GuardTripped", pending=9, due=7, released=5, **full)[2]


def test_a_tripped_guard_is_reported_before_zones():
    said = condition("GuardTripped", pending=9, due=7, all_nodes_unhealthy=True, zones=FULL, guard=guard(TRIPPED))
    assert said[1] == "MassEviction"


def test_without_a_guard_there_is_nothing_to_reset():
    unguarded = policy(limits=Limits(guard=GuardSettings(100)))
    said = condition("GuardTripped", in_policy=unguarded, pending=9, due=7, all_nodes_unhealthy=True, zones=FULL)
    assert said[:2] == ("True", "AllNodesUnhealthy")
    assert "guard reset" not in said[2]


@pytest.mark.parametrize(
    "more",
    [
        {"pending": 9},
        {"due": 7, "in_policy": policy(mode=Mode.PAUSED)},
    ],
)
def test_full_zones_that_hold_no_pod_do_not_trip_the_guard(more):
    assert condition("GuardTripped", all_nodes_unhealthy=True, zones=FULL, **more)[0] == "False"


# -- conditions -------------------------------------------------------------------------------------------------------


def test_a_policy_that_was_never_valid_has_only_that_reason():
    kinds = {one[0]: one[2] for one in conditions(None, "spec.mode: wrong")}
    assert kinds == {"Accepted": "Invalid", "Ready": "Invalid", "Stalled": "Invalid", "Enforcing": "NotAccepted"}


@pytest.mark.parametrize(
    ("generation", "problem", "ready"),
    [(1, "", {"Ready": "True"}), (2, "", {"Ready": "False"}), (1, "wrong", {"Ready": "False", "Stalled": "True"})],
)
@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.PAUSED, Mode.DRY_RUN])
def test_a_policy_is_ready_when_its_newest_version_is_in_force_and_stalled_when_it_is_refused(
    generation, problem, ready, mode
):
    found = conditions(entry(in_policy=policy(mode=mode)), problem, generation)
    assert {one[0]: one[1] for one in found if one[0] in ("Ready", "Stalled")} == ready


# -- values that are read from nodes ----------------------------------------------------------------------------------


def test_a_policy_that_reads_only_taints_has_no_condition_about_sources() -> None:
    assert "SourcesFound" not in [one[0] for one in conditions(entry(), "")]


def test_a_source_that_no_node_has_is_named() -> None:
    sources = (SourceReport("kubelet", "nodeInfo kubeletVersion", 3), SourceReport("gpu", "condition GPUHealthy", 0))
    assert condition("SourcesFound", sources=sources, selected_nodes=3) == (
        "False",
        "NoNode",
        "none of 3 nodes has condition GPUHealthy, so none has the taint gpu and no pod is evicted by it",
    )


def test_sources_are_not_known_while_no_node_is_selected() -> None:
    unknown = "Unknown", "NoNode", "the policy selects no node"
    assert condition("SourcesFound", sources=(SourceReport("gpu", "condition GPUHealthy", 0),)) == unknown


def test_sources_that_nodes_have_are_counted() -> None:
    sources = (SourceReport("kubelet", "nodeInfo kubeletVersion", 3), SourceReport("gpu", "condition GPUHealthy", 1))
    assert condition("SourcesFound", sources=sources, selected_nodes=3) == (
        "True",
        "Found",
        "nodeInfo kubeletVersion on 3 nodes, condition GPUHealthy on 1 node",
    )
