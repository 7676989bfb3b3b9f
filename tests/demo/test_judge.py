"""The judge reports each way in which a run can go wrong, and only that."""

import msgspec
import pytest

from taintwarden_demo.facts import Departure, Facts, SeenEvent
from taintwarden_demo.judge import Check, judge
from taintwarden_demo.scenario import Scenario


def wrong(scenario: Scenario, facts: Facts) -> list[Check]:
    return [check for check in judge(scenario, facts) if not check.ok]


def only_wrong(scenario: Scenario, facts: Facts) -> Check:
    (check,) = wrong(scenario, facts)
    return check


def change(facts: Facts, index: int, **fields: object) -> Departure:
    departure = facts.departures[index]
    facts.departures[index] = msgspec.structs.replace(departure, **fields)
    return departure


def forget(facts: Facts, reason: str, count: int = 1) -> None:
    for said in facts.events_of(reason)[:count]:
        facts.events.remove(said)


def leaves_as_well(facts: Facts, workload: str, node: str) -> None:
    departure = Departure(f"{workload}-x", f"{workload}-x", workload, node, 9.0)
    facts.departures.append(departure)
    facts.events.append(SeenEvent("Evicted", departure.pod, departure.uid, node, 9.0))
    facts.policy_status["evicted"] += 1


def test_an_expected_run_is_accepted(scenario: Scenario, facts: Facts) -> None:
    assert wrong(scenario, facts) == []


def test_a_run_without_facts_is_no_success(scenario: Scenario) -> None:
    checks = judge(scenario, Facts())
    assert [check.expected[:10] for check in checks if check.ok] == ["all 35 oth"]


def test_an_eviction_that_is_missing(scenario: Scenario, facts: Facts) -> None:
    del facts.departures[0]
    faults = wrong(scenario, facts)
    assert "1 instead of 2 left" in faults[0].happened
    assert len(faults) == 2  # and an Event names a pod that is still there


def test_a_workload_of_which_no_pod_left_is_reported(scenario: Scenario, facts: Facts) -> None:
    facts.departures = [one for one in facts.departures if one.workload != "search"]
    assert wrong(scenario, facts)[0].happened == "no pod left; 0 instead of 2 left"


def test_an_eviction_that_is_early(scenario: Scenario, facts: Facts) -> None:
    departure = change(facts, 0, at=facts.departures[0].at - 0.3)
    fault = only_wrong(scenario, facts)
    assert fault.happened == f"2 left after 4.8 to 5.1 s; early: {departure.pod}"


def test_clocks_may_differ_by_a_little(scenario: Scenario, facts: Facts) -> None:
    change(facts, 0, at=facts.departures[0].at - 0.15)
    assert wrong(scenario, facts) == []


def test_an_eviction_that_is_late(scenario: Scenario, facts: Facts) -> None:
    change(facts, 1, at=facts.departures[1].at + 4.0)
    assert "late: payments-1" in only_wrong(scenario, facts).happened


def test_a_pod_that_was_deleted_past_its_budget(scenario: Scenario, facts: Facts) -> None:
    change(facts, 0, evicted=False)
    assert "deleted instead of evicted: payments-0" in only_wrong(scenario, facts).happened


@pytest.mark.parametrize(
    ("workload", "node", "happened"),
    [
        pytest.param("payments", "a1", "3 instead of 2 left", id="one too many"),
        pytest.param("payments", "c2", "payments-x left c2", id="of a good node"),
        pytest.param("catalog", "b1", "2 announced, 2 cancelled, catalog-x left", id="of the node that recovered"),
        pytest.param("search", "c1", "warned, search-x left", id="of the node with the mistake"),
    ],
)
def test_a_pod_that_had_to_stay(scenario: Scenario, facts: Facts, workload: str, node: str, happened: str) -> None:
    leaves_as_well(facts, workload, node)
    assert happened in wrong(scenario, facts)[0].happened


def test_a_pod_that_tolerates_the_value(scenario: Scenario, facts: Facts) -> None:
    leaves_as_well(facts, "reports", "a1")
    faults = wrong(scenario, facts)
    assert faults[0].happened == "reports-x left a1 at +9.0 s"
    assert len(faults) == 2  # the policy's count does not fit either


@pytest.mark.parametrize(
    ("forgotten", "happened"),
    [
        pytest.param({"InvalidTaintValue": 1}, "no Event, no pod left", id="a mistake of which nobody was warned"),
        pytest.param({"EvictionCancelled": 1}, "2 announced, 1 cancelled, no pod left", id="not taken back"),
        pytest.param(
            {"EvictionScheduled": 2, "EvictionCancelled": 2},
            "0 announced, 0 cancelled, no pod left",
            id="not said",
        ),
        pytest.param({"EvictionBlocked": 1}, "at least 5 Ready, 0 blocked for a while", id="a budget never blocked"),
        pytest.param({"Evicted": 1}, "9 evicted, 0 pending, 8 Events", id="an eviction"),
    ],
)
def test_missing_event_is_reported(scenario: Scenario, facts: Facts, forgotten: dict[str, int], happened: str) -> None:
    for reason, count in forgotten.items():
        forget(facts, reason, count)
    assert only_wrong(scenario, facts).happened == happened


def test_a_budget_that_was_violated(scenario: Scenario, facts: Facts) -> None:
    facts.fewest_ready["checkout"] = 4
    assert only_wrong(scenario, facts).happened == "at least 4 Ready, 1 blocked for a while"


def test_a_policy_that_still_waits(scenario: Scenario, facts: Facts) -> None:
    facts.policy_status["pending"] = 1
    assert only_wrong(scenario, facts).happened == "9 evicted, 1 pending, 9 Events"


def test_a_policy_that_is_not_enforced(scenario: Scenario, facts: Facts) -> None:
    facts.policy_status["conditions"] = [{"type": "Enforcing", "status": "False"}]
    assert len(wrong(scenario, facts)) == 1


def test_a_value_that_never_changed(scenario: Scenario, facts: Facts) -> None:
    del facts.changed_at["a1", "940"]
    assert only_wrong(scenario, facts).happened == "a1 never got the value 940"
