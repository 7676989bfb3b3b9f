import msgspec
import pytest

from cli.world import budget, pod
from taintwarden.cli.budgets import covering, refusal
from taintwarden.kube.objects import BudgetObject, PodObject

NOT_READY = {"conditions": [{"type": "Ready", "status": "False"}]}


def read_pod(**more) -> PodObject:
    return msgspec.convert(pod(**more), PodObject)


def read_budget(name="web", allowed=0, status=None, **spec) -> BudgetObject:
    obj = budget(name, allowed, **spec)
    obj["status"] |= status or {}
    return msgspec.convert(obj, BudgetObject)


@pytest.mark.parametrize(
    ("selector", "covers"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({}, True),
        (None, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selector_covers_pod(selector, covers):
    assert bool(covering([read_budget(selector=selector)], read_pod())) == covers


def test_budget_of_another_namespace_covers_nothing():
    other = read_budget()
    other.metadata.namespace = "bank"
    assert covering([other], read_pod()) == []


def test_pending_pod_is_asked_of_no_budget():
    assert covering([read_budget()], read_pod(status={"phase": "Pending"})) == []


def test_budgets_come_by_name():
    found = covering([read_budget("b"), read_budget("a")], read_pod())
    assert [one.metadata.name for one in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"allowed": 1}, ""),
        ({"allowed": 0}, "it allows no disruption now: 1 pods are healthy, 1 have to be"),
        ({"allowed": 1, "status": {"observedGeneration": 0}}, "its controller has not looked at it yet"),
        (
            {"status": {"currentHealthy": 0}, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
            "it allows no disruption now: 0",
        ),
    ],
)
def test_refusal_of_a_ready_pod(given, why):
    told = refusal(read_budget(**given), read_pod())
    assert told == why if not why else told.startswith(why)


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"unhealthyPodEvictionPolicy": "AlwaysAllow", "status": {"currentHealthy": 0}}, True),
        ({"status": {"currentHealthy": 1, "desiredHealthy": 1}}, True),
        ({"status": {"currentHealthy": 0, "desiredHealthy": 1}}, False),
        ({"status": {"currentHealthy": 0, "desiredHealthy": 0}}, False),
    ],
)
def test_unready_pod_may_go_where_it_does_not_count(given, allowed):
    assert (refusal(read_budget(**given), read_pod(status=NOT_READY)) == "") == allowed


def test_budget_without_status_was_not_looked_at():
    fresh = read_budget()
    fresh.status = None
    assert "not looked at" in refusal(fresh, read_pod())
