"""TaintPublishers that cannot publish, as their specs and statuses say."""

from typing import Any

import pytest

from cli.doctor.scene import asking
from cli.world import NOON, Json
from taintwarden.engine.times import at

stuck = asking("publisher-stuck")


def condition(kind: str, status: str = "True", reason: str = "Test") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": f"told by {reason}"}


def publisher(
    name: str = "sla", *conditions: Json, key: str = "sla", age: float = 3600, answered: float = 30, **more: Any
) -> Json:
    """One that publishes, if no conditions are given."""
    held = conditions or tuple(condition(kind) for kind in ("Accepted", "Answered", "Publishing"))
    status = {"observedGeneration": 1, "conditions": list(held), "lastAnswerTime": at(NOON - answered)}
    return {
        "kind": "TaintPublisher",
        "metadata": {"name": name, "creationTimestamp": at(NOON - age), "generation": 1} | more.pop("metadata", {}),
        "spec": {"key": key, "intervalSeconds": 30} | more.pop("spec", {}),
        "status": more.pop("status", status),
    }


def test_publisher_that_publishes_is_left_in_peace():
    assert stuck(publisher()) == []


def test_condition_that_does_not_hold_is_told():
    found = stuck(publisher("sla", condition("Accepted"), condition("Publishing", "False", "WriteRefused")))
    assert [one.message for one in found] == ["Publishing is False: told by WriteRefused"]


def test_a_dry_run_is_intended():
    assert stuck(publisher("sla", condition("Publishing", "False", "DryRun"))) == []


def test_a_key_that_another_publisher_has():
    (found,) = stuck(publisher("sla", condition("Accepted", "False", "KeyTaken")))
    assert found.message == "Accepted is False: told by KeyTaken"


@pytest.mark.parametrize(("answered", "count"), [(239, 0), (242, 1)])
def test_status_that_nobody_renews(answered, count):
    found = stuck(publisher(answered=answered))
    assert [one.message for one in found] == ["has a status that is 4m2s old: no publisher renews it"] * count


def test_dry_run_that_nobody_renews():
    conditions = condition("Answered"), condition("Publishing", "False", "DryRun")
    assert len(stuck(publisher("sla", *conditions, answered=1_000))) == 1


def test_slow_queries_have_more_time():
    assert stuck(publisher(answered=242, spec={"intervalSeconds": 60})) == []


@pytest.mark.parametrize(("age", "count"), [(10, 0), (1_000, 1)])
def test_status_that_is_absent(age, count):
    found = stuck(publisher(age=age, status={}))
    assert [one.message for one in found] == ["has no status: no publisher has looked at it"] * count


def test_status_of_an_earlier_version():
    (found,) = stuck(publisher(metadata={"generation": 2}))
    assert found.message == "has a status of an earlier version of its spec"


@pytest.mark.parametrize(("age", "count"), [(239, 0), (242, 1)])
def test_deletion_that_does_not_end(age, count):
    """It counts as a new generation, and its publisher writes no status any more."""
    found = stuck(publisher(answered=1_000, metadata={"generation": 2, "deletionTimestamp": at(NOON - age)}))
    told = "was deleted 4m2s ago, and its taints are not removed: its Events say why, if a publisher runs"
    assert [one.message for one in found] == [told] * count


def test_time_that_is_none_is_not_old():
    status = {"observedGeneration": 1, "conditions": [condition("Answered")], "lastAnswerTime": "soon"}
    assert stuck(publisher(status=status)) == []
