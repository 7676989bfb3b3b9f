"""Taints that stayed on nodes that are Ready again, and those that come and go."""

import pytest

from cli.doctor.scene import asking, named
from cli.world import NOON, Json, taint
from taintwarden.engine.rfc3339 import at
from taintwarden_cli.status.event_timeline import Happening

left, restarted = asking("taint-left"), asking("grace-restarted")
UNREACHABLE = "node.kubernetes.io/unreachable"


def node(ready: str = "True", key: str = UNREACHABLE, seconds: float = 7_200, **more: str) -> Json:
    made = named("a1", taint("", key, **({"timeAdded": at(NOON - seconds)} | more)))
    return made | {"status": {"conditions": [{"type": "Ready", "status": ready}]}}


def test_ready_node_with_an_unreachable_taint_is_found():
    (found,) = left(node())
    assert found.message == f"is Ready, and has the taint {UNREACHABLE}:NoExecute for 2h"
    assert found.remedy == f"kubectl taint node a1 {UNREACHABLE}:NoExecute-"


def test_a_taint_without_a_time_may_be_of_any_age():
    assert len(left(node(timeAdded=""))) == 1


@pytest.mark.parametrize("one", [node("False"), node("Unknown"), node(seconds=60), node(key="sla"), named("a1")])
def test_consistent_nodes_are_no_finding(one):
    assert left(one) == []


def cancelled(name: str, count: int = 1, note: str = "Stays on n1: taint sla=980:NoExecute no longer evicts it"):
    told = {"at": at(NOON), "reason": "EvictionCancelled", "type": "Normal", "kind": "Pod", "namespace": "shop"}
    return Happening(**told, name=name, note=note, count=count)


def test_repeatedly_cancelled_evictions_are_found():
    events = [cancelled("a", 2), cancelled("a", 3), cancelled("b", 4), cancelled("c", 2)]
    (found,) = restarted(named("n1"), cancelled=events)
    assert restarted(named("n2"), cancelled=events) == [], "that node is there no longer"
    assert (str(found.subject), found.pods) == ("Node n1", 2)
    assert "evictions of 2 pods because of sla were cancelled up to 5 times in an hour" in found.message


@pytest.mark.parametrize(
    "events", [[cancelled("a", 2)], [cancelled(name) for name in "abc"], [cancelled("a", 9, "Node n1 is gone, so")]]
)
def test_rarely_cancelled_evictions_and_those_of_a_removed_node_are_no_finding(events):
    assert restarted(named("n1"), cancelled=events) == []
