"""The scenario, and the facts of a run in which everything went as it had to."""

import pytest

from taintwarden_demo.facts import Departure, Facts, SeenEvent
from taintwarden_demo.scenario import Scenario, make_scenario

ENFORCING = {"type": "Enforcing", "status": "True"}


@pytest.fixture
def scenario() -> Scenario:
    return make_scenario()


@pytest.fixture
def facts(scenario: Scenario) -> Facts:
    facts = Facts(fewest_ready={"checkout": 5})
    for change in scenario.changes:
        facts.changed_at[change.node, change.value] = change.at
        for group in change.expected:
            for number in range(group.pods):
                uid = f"{group.workload}-{number}"
                at = change.at + group.grace_seconds + 0.1
                facts.departures.append(Departure(uid, uid, group.workload, change.node, at))
                facts.events.append(SeenEvent("Evicted", uid, uid, change.node, at))
        for number in range(change.cancels):
            uid = f"payments-stays-{number}"
            facts.events.append(SeenEvent("EvictionScheduled", uid, uid, change.node, change.at - 1))
            facts.events.append(SeenEvent("EvictionCancelled", uid, uid, change.node, change.at))
        if change.invalid:
            facts.events.append(
                SeenEvent("InvalidTaintValue", change.node, "n", change.node, change.at, note="sla=high")
            )
    facts.events.append(SeenEvent("EvictionBlocked", "checkout-1", "checkout-1", "a1", 17.0))
    facts.policy_status = {"evicted": len(facts.departures), "pending": 0, "conditions": [ENFORCING]}
    return facts
