"""The machine on workloads that come back: when it reports, holds and releases them."""

import pytest

from engine.rig import START, Rig, limited, owner
from taintwarden.engine import commands, limit_settings
from taintwarden.engine.limit_settings import BounceSettings, GuardSettings
from taintwarden.engine.machine import Phase

TWICE = limited(bounce=BounceSettings())


@pytest.fixture(autouse=True)
def _after_two_evictions(monkeypatch):
    """A row begins to wait earlier than in the product, so that the tests are short."""
    monkeypatch.setattr(limit_settings, "BOUNCING_EVICTIONS", 2)


WEB = {"owner": owner(), "ready": True}


def bounce(rig: Rig, times: int, node: str = "n1", prefix: str = "p") -> None:
    """`times` pods come to a bad node one after the other, and are evicted."""
    for number in range(times):
        name = f"{prefix}{number}"
        rig.pod(name, node=node, **WEB)
        rig.settle(name)
        rig.gone(name, node)
        rig.advance(1)


def bouncing(given=TWICE, times: int = 2, **options) -> Rig:
    rig = Rig(given, **options)
    rig.node("n1", "sla=900")
    bounce(rig, times)
    rig.out = []
    return rig


def test_a_pod_that_the_watch_shows_before_the_answer_has_come_back():
    """A replacement is bound within milliseconds: before the call returns whose victim it replaces."""
    rig = Rig(TWICE).with_pod("sla=900", **WEB)
    rig.pod("b", **WEB)
    assert rig.evictions() == ["a", "b"]
    for name in "ab":
        rig.settle(name)
        rig.gone(name)
    rig.pod("c", **WEB)
    assert rig.evictions() == []


@pytest.mark.parametrize("is_replaced", [True, False])
def test_the_cause_of_a_wave_says_that_the_evicted_pods_came_back(is_replaced):
    guard = GuardSettings(max_percent=1, min_pods=3, settle_seconds=0)
    rig = Rig(limited(bounce=BounceSettings(), guard=guard))
    rig.node("n1", "sla=900")
    for number in range(3):
        rig.advance(60)
        rig.pod(name := f"p{number}", owner=owner("web" if is_replaced else name), ready=True)
        rig.advance(60)
        rig.store(1)
        rig.settle(name)
        rig.gone(name)
    rig.pod("last", owner=owner("web" if is_replaced else "last"), ready=True)
    [tripped] = [one for one in rig.out if isinstance(one, commands.GuardTripped)]
    cause = "evicted pods came back to their nodes; taint sla:NoExecute on 1 node"
    assert tripped.guard.record.cause.startswith(cause) is is_replaced


def test_a_pod_is_held_by_the_policy_that_delays_even_with_one_that_does_not():
    rig = Rig(TWICE, limited("q", spec={"mode": "DryRun"}))
    rig.node("n1", "sla=900")
    bounce(rig, 2)
    rig.out = []
    rig.pod("next", **WEB)
    assert rig.evictions() == []


# -- reports -----------------------------------------------------------------------------------------------------------


def test_a_held_pod_is_reported_once():
    rig = bouncing()
    rig.pod("next", **WEB)
    [told] = rig.take(commands.Held)
    assert (told.pod.name, told.until) == ("next", START + 1 + 60)
    assert told.reason == ("ReplicaSet web was evicted from node n1 2 times in a row, and came back")
    rig.pod("next", owner=owner(), ready=False)
    rig.node("n1", "sla=901")
    rig.advance(50)
    assert rig.take(commands.Held) == []


# -- releases, and no releases -----------------------------------------------------------------------------------------


def test_pods_that_come_back_to_several_taints_bounce():
    rig = Rig(TWICE)
    rig.node("n1", "sla=900", "cni=1")
    bounce(rig, 2)
    rig.out = []
    rig.pod("next", **WEB)
    assert rig.evictions() == []
    assert rig.phase("next") is Phase.BLOCKED


@pytest.mark.parametrize("seconds", [0.0, -2.0, 86_400.0])
def test_a_pod_that_comes_back_too_often_waits_for_a_minute_however_the_wall_clock_is_set(seconds):
    rig = bouncing()
    rig.wall += seconds
    rig.pod("next", bound_at=rig.wall, **WEB)
    assert rig.phase("next") is Phase.BLOCKED
    rig.advance(58.75)
    assert rig.evictions() == []
    rig.advance(0.25)
    assert rig.evictions() == ["next"]


def test_a_pod_that_changes_has_not_come_back():
    rig = Rig(limited(bounce=BounceSettings(), evictions_per_second=1.0, burst=1))
    rig.pod("a", **WEB)
    rig.pod("b", **WEB)
    rig.node("n1", "sla=900")
    assert rig.evictions() == ["a"]
    rig.pod("b", owner=owner(), ready=False)
    rig.pod("b", **WEB)
    rig.advance(1)
    assert rig.evictions() == ["b"]


def test_a_budget_comes_first():
    """A pod that a budget blocks is not reported as bouncing: it goes nowhere."""
    rig = bouncing()
    rig.budget(allowed=0)
    rig.pod("next", **WEB)
    assert [one.is_bouncing for one in rig.take(commands.Held)] == [False]
    rig.budget(allowed=1)
    assert [(one.pod.name, one.is_bouncing) for one in rig.take(commands.Held)] == [("next", True)]
    rig.advance(60)
    assert rig.evictions() == ["next"]


def test_a_pod_that_bounces_waits_for_no_deletion():
    rig = bouncing(limited(bounce=BounceSettings(2), spec={"eviction": {"method": "EvictThenDelete"}}))
    rig.pod("next", **WEB)
    assert rig.world.queues._requeues.next_at() is None
