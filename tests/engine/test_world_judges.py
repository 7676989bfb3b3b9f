"""Judges can fail: each finds what an operator does that ignores its rule, in a history in which it is silent else."""

from dataclasses import replace

import pytest

from limits_off import LIMITS_OFF
from simulated.world import adapter, isolation, server
from simulated.world.adapter import Engine
from simulated.world.drawing import SPOT, Draw, above
from simulated.world.judges.base import Breach
from simulated.world.objects import Toleration
from simulated.world.playing import fails_by, shrunk
from simulated.world.wire import Wire
from simulated.world.world import World


def plan_of(happen, **policy):
    d = Draw(1, "judges")
    d.options = {"max_in_flight": 10, "slice_size": 500}
    d.cluster(4)
    d.policy("p", **policy)
    happen(d)
    d.settings |= {"calm_seconds": 200.0, "lifts": False}
    return d.plan()


def all_fall(d: Draw, pods: int = 5) -> None:
    for name in d.nodes:
        d.add("place", uid=d.workload(pods, name, native=(above(),)), placing="good")
    d.operators()
    d.good(*d.nodes)
    d.wait(3.0, 4.0)
    d.bad(*d.nodes)
    d.at += 60.0


def one_falls(d: Draw) -> None:
    d.add("place", uid=d.workload(4, d.nodes[0], native=(above(),)), placing="good")
    d.operators()
    d.bad(d.nodes[0])
    d.at += 60.0


def judges_of(plan) -> set[str]:
    return {breach.judge for breach in World(plan).play().breaches}


def without(monkeypatch, *sections):
    """Operators do not see these limits of policies."""
    plain = adapter._policy

    def blind(policy):
        limits = {name: value for name, value in policy.spec["limits"].items() if name not in sections}
        return plain(replace(policy, spec=policy.spec | {"limits": limits}))

    monkeypatch.setattr(adapter, "_policy", blind)


def seen_as(monkeypatch, **changes):
    """Operators see other policies than those that are stored."""
    plain = adapter._policy
    monkeypatch.setattr(adapter, "_policy", lambda policy: plain(replace(policy, spec=policy.spec | changes)))


def test_who_ignores_nothing_is_not_blamed():
    assert judges_of(plan_of(one_falls)) == set()


def test_a_guard_that_is_not_there(monkeypatch):
    limits = {**LIMITS_OFF, "guard": {"minPods": 4, "maxPercent": 1}}
    plan = plan_of(all_fall, limits=limits)
    assert "guard" not in judges_of(plan)
    without(monkeypatch, "guard")
    assert {"guard", "record"} <= judges_of(plan)


def test_a_rate_that_is_not_kept(monkeypatch):
    plan = plan_of(lambda d: all_fall(d, 10), limits={**LIMITS_OFF, "evictionsPerSecond": 1, "burst": 1})
    assert judges_of(plan) == set()
    without(monkeypatch, "evictionsPerSecond", "burst")
    assert {"rate", "calls"} <= judges_of(plan)


def test_a_workload_that_is_not_spared(monkeypatch):
    plan = plan_of(all_fall, limits={**LIMITS_OFF, "perWorkload": {"maxUnavailable": 1}})
    assert judges_of(plan) == set()
    without(monkeypatch, "perWorkload")
    assert "spared" in judges_of(plan)


def test_a_node_that_is_not_spared(monkeypatch):
    plan = plan_of(all_fall, limits={**LIMITS_OFF, "perNode": {"maxConcurrent": 2}})
    assert judges_of(plan) == set()
    without(monkeypatch, "perNode")
    assert "spared" in judges_of(plan)


def test_a_write_that_is_made_again_and_again(monkeypatch):
    plain = Wire.send

    def send(wire, replica, order):
        for _ in range(40 if order.what == "history" else 1):
            plain(wire, replica, order)

    monkeypatch.setattr(Wire, "send", send)
    monkeypatch.setattr(Engine, "may_send", lambda *_, **__: True)
    assert "writes" in judges_of(plan_of(one_falls))


def test_a_call_that_is_ordered_again_and_again_and_never_sent(monkeypatch):
    monkeypatch.setattr(Engine, "may_send", lambda _, order, **__: order.what not in ("evict", "delete"))
    assert "withheld" in judges_of(plan_of(one_falls))


def test_zones_that_are_not_counted(monkeypatch):
    limits = {**LIMITS_OFF, "zoneHealth": {"minNodes": 0}}
    plan = plan_of(all_fall, limits=limits, timing={"violationGraceSeconds": 15})
    assert "zones" not in judges_of(plan)
    without(monkeypatch, "zoneHealth")
    assert "zones" in judges_of(plan)


def test_a_grace_that_is_ignored(monkeypatch):
    plan = plan_of(one_falls, timing={"violationGraceSeconds": 30})
    seen_as(monkeypatch, timing={"violationGraceSeconds": 5})
    assert "right" in judges_of(plan)


def test_a_grace_that_is_too_long(monkeypatch):
    plan = plan_of(one_falls)
    seen_as(monkeypatch, timing={"violationGraceSeconds": 30})
    assert "late" in judges_of(plan)


def test_requests_that_are_never_checked_again(monkeypatch):
    def happen(d: Draw) -> None:
        d.workload(4, "any", native=(above(),))
        d.operators()
        d.add("weather", behaviour="connect", duration=30.0, seconds=4.0, what=("evict",))
        d.bad(*d.nodes)
        d.at += 1.0
        d.good(*d.nodes)
        d.at += 20.0

    monkeypatch.setattr(Engine, "may_send", lambda *_, **__: True)
    assert "fence" in judges_of(plan_of(happen))


def test_a_lease_that_is_ignored(monkeypatch):
    def happen(d: Draw) -> None:
        d.workload(4, "any", native=(above(),))
        d.operators()
        d.add("weather", behaviour="connect", duration=30.0, seconds=4.0, what=("evict",))
        d.bad(*d.nodes)
        d.at += 1.0
        d.add("release")
        d.at += 20.0

    monkeypatch.setattr(Engine, "may_send", lambda *_, **__: True)
    assert "leader" in judges_of(plan_of(happen))


def test_evictions_that_are_given_up(monkeypatch):
    monkeypatch.setattr(Engine, "may_send", lambda _, order, **__: order.what != "evict")
    found = judges_of(plan_of(one_falls))
    assert {"late", "held"} <= found


def test_a_time_out_that_is_too_short(monkeypatch):
    def happen(d: Draw) -> None:
        uid = d.workload(3, d.nodes[0], native=(above(),))
        d.add("budget", namespace=d.workloads[uid][0], name="b", app=uid, max_unavailable=1)
        d.operators()
        d.at += 60.0
        d.add("budget", namespace=d.workloads[uid][0], name="b", app=uid, max_unavailable=0)
        d.bad(d.nodes[0])
        d.at += 60.0

    plan = plan_of(happen, eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": 50})
    assert "budget-timeout" not in judges_of(plan)
    seen_as(monkeypatch, eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": 5})
    assert "budget-timeout" in judges_of(plan)


def test_a_record_that_is_not_stored(monkeypatch):
    plan = plan_of(all_fall, limits={**LIMITS_OFF, "guard": {"minPods": 30, "maxPercent": 1}})
    assert "record" not in judges_of(plan)
    monkeypatch.setattr(server.Server, "write_guard", lambda *_: server.DONE)
    assert "record" in judges_of(plan)


def test_a_reset_that_nobody_reads(monkeypatch):
    def happen(d: Draw) -> None:
        all_fall(d)
        d.add("reset", name="p")
        d.at += 10.0

    plan = plan_of(happen, limits={**LIMITS_OFF, "guard": {"minPods": 4, "maxPercent": 1}})
    assert "reset" not in judges_of(plan)
    plain = adapter._policy
    monkeypatch.setattr(adapter, "_policy", lambda policy: plain(replace(policy, reset=None)))
    assert "reset" in judges_of(plan)


def test_an_error_ends_a_process(monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("no reason")

    monkeypatch.setattr(Engine, "reached", fails)
    assert "crash" in judges_of(plan_of(one_falls))


def test_a_pod_that_is_left_out_in_silence_is_found_by_its_annotation():
    def happen(d: Draw) -> None:
        d.policy("spot", (SPOT,), reclaim={"deadlineSeconds": 30})
        d.pod(d.nodes[0], native=(Toleration(SPOT),), marks={"taintwarden.io/do-not-evict": "true"})
        d.operators()
        d.add("taint", name=d.nodes[0], key=SPOT, value="x")
        d.at += 60.0

    assert "silence" not in judges_of(plan_of(happen))  # it tolerates the taint: nobody has to speak of it


def test_the_least_plan_keeps_what_it_fails_by(monkeypatch):
    without(monkeypatch, "guard")
    plan = plan_of(all_fall, limits={**LIMITS_OFF, "guard": {"minPods": 4, "maxPercent": 1}})
    least = shrunk(plan, fails_by("guard"))
    assert fails_by("guard")(least)
    assert len(least.happenings) < len(plan.happenings) / 2
    assert {one.what for one in least.happenings} >= {"policy", "workload", "taint"}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, None, ""),
        (10.0, 12.0, ""),
        (10.0, 60.0, "50.0 s later"),
        (60.0, 10.0, "50.0 s earlier"),
        (None, 10.0, "stays without"),
        (10.0, None, "was not evicted"),
    ],
)
def test_how_another_fares_is_compared(before, after, said):
    found = isolation._difference("p1", before, after, narrowed_at=0.0)
    assert said in found if said else found == ""


def test_a_breach_is_stated_once_for_each_subject():
    world = World(plan_of(one_falls))
    judge = world.judges.guard_windows
    judge.breach("p", "first")
    judge.breach("p", "second")
    assert world.breaches == [Breach("guard", 0.0, "first", "p")]
