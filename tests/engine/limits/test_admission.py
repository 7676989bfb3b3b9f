"""All limits together: in which order they are asked, and that nothing is taken unless all admit."""

from typing import Any

import msgspec
import pytest

from engine.rig import ZONE, budget, limited, owner
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import Limiter, refusal
from taintwarden.engine.limits.guard import GuardRecord
from taintwarden.engine.model import (
    GuardSettings,
    Instant,
    Pod,
    Policy,
    Reclaim,
    Share,
    Taint,
    Tolerations,
    Window,
    ZoneHealth,
)

TAINT = Taint("sla", "900")
LATER = Instant(1_700_000_000.0, 1_000.0)
NEVER = (Window("0 0 29 2 *", 60),)
"""A window that opens on leap days."""


class Bench:
    """A limiter under one policy, with pods of one workload on labelled nodes."""

    def __init__(self, given: Policy, overall_rate: float | None = None, population: int = 1_000) -> None:
        self.released: list[str] = []
        self.reconsidered: list[str] = []
        self.limiter = Limiter(
            overall_rate,
            release=self.released.append,
            reconsider=self.reconsidered.append,
            population=lambda _: population,
        )
        self.policy = given
        self.now = LATER
        self.limiter.configure([given], Instant(LATER.wall - 1_000, 0.0))
        self.interner = Interner()

    def pod(self, name: str = "a", *, of: str = "web", node: str = "n1", namespace: str = "shop") -> Pod:
        shared = self.interner.pod_class(namespace, {}, Tolerations(), owner=owner(of))
        pod = Pod(name, name, node, shared, 0.0, 1, True)
        self.limiter.workloads.seen(pod, None)
        return pod

    def ask(self, pod: Pod, zone: str = "z1", **more: Any) -> str:
        """The limit that refuses, empty if none does."""
        labels = {ZONE: zone}
        given = more.pop("policy", self.policy)
        refused = self.limiter.admit(pod, given, TAINT, labels, self.now, deletes=more.pop("deletes", False))
        return refused.limit if refused else ""

    def leave(self, pod: Pod, *, asks_budgets: bool = True) -> None:
        self.limiter.leave(pod, self.policy, TAINT, self.now, asks_budgets=asks_budgets)

    def zone(self, name: str, good: int, bad: int) -> None:
        for number in range(good + bad):
            self.limiter.zones.count(f"{name}-{number}", {ZONE: name}, {"p": number >= good})


def reserved(bench: Bench) -> Bench:
    """The guard's record allows for evictions."""
    guard = bench.limiter.guards["p"]
    guard.record_wanted(bench.now, waiting=True)
    guard.saved(bench.now, succeeded=True)
    return bench


def test_without_limits_everybody_goes():
    bench = Bench(limited())
    assert [bench.ask(bench.pod(name)) for name in "abc"] == [""] * 3


# -- each limit refuses -----------------------------------------------------------------------------------------------


def test_a_closed_window_refuses_until_it_opens():
    bench = Bench(msgspec.structs.replace(limited(), windows=(Window("0 0 1 1 *", 3_600),)))
    refused = bench.limiter.admit(bench.pod(), bench.policy, TAINT, {}, LATER, deletes=False)
    assert refused is not None
    assert (refused.limit, refused.key) == (refusal.WINDOW, "")
    assert refused.until is not None
    assert LATER.wall + refused.until - LATER.monotonic == 1_704_067_200, "2024-01-01"


def test_all_zones_full_refuses_the_whole_policy():
    bench = Bench(limited(zone_health=ZoneHealth(min_nodes=0)))
    bench.zone("z1", 0, 3)
    assert bench.ask(bench.pod()) == refusal.ALL_ZONES_FULL


def test_an_open_guard_refuses():
    bench = Bench(limited(guard=GuardSettings(min_pods=0)), population=0)
    bench.limiter.guards["p"].expect("a", bench.now.wall, bench.now)
    bench.limiter.guards["p"].look(bench.now)
    assert bench.ask(bench.pod()) == refusal.GUARD


def test_a_guard_without_a_record_refuses():
    bench = Bench(limited(guard=GuardSettings()))
    assert bench.ask(bench.pod()) == refusal.GUARD_RECORD
    assert reserved(bench).ask(bench.pod()) == ""


def test_a_rehearsal_needs_no_record():
    bench = Bench(limited(guard=GuardSettings(), spec={"mode": "DryRun"}))
    assert bench.ask(bench.pod()) == ""


def test_the_policys_rate_refuses_until_a_token_is_there():
    bench = Bench(limited(evictions_per_second=0.5, burst=1))
    assert bench.ask(bench.pod()) == ""
    refused = bench.limiter.admit(bench.pod("b"), bench.policy, TAINT, {}, LATER, deletes=False)
    assert refused == refusal.Refusal(refusal.POLICY_RATE, LATER.monotonic + 2)


def test_the_overall_rate_refuses_the_whole_policy():
    bench = Bench(limited(), overall_rate=1.0)
    assert bench.ask(bench.pod()) == ""
    refused = bench.limiter.admit(bench.pod("b"), bench.policy, TAINT, {}, LATER, deletes=False)
    assert refused == refusal.Refusal(refusal.OVERALL_RATE, LATER.monotonic + 1)


def test_a_budget_refuses_its_pods():
    bench = Bench(limited())
    bench.limiter.budgets.set(budget())
    assert bench.ask(bench.pod()) == refusal.BUDGET
    assert bench.ask(bench.pod("b", namespace="office")) == ""


def test_a_workload_refuses_its_pods():
    bench = Bench(limited(max_unavailable=Share(number=1)))
    assert bench.ask(bench.pod()) == refusal.WORKLOAD_UNKNOWN
    bench.limiter.workloads.want(owner().uid, 2)
    assert bench.ask(bench.pod("b")) == ""


def test_a_node_refuses_its_pods():
    bench = Bench(limited(node_max_concurrent=1))
    bench.leave(bench.pod())
    assert bench.ask(bench.pod("b")) == refusal.PER_NODE
    assert bench.ask(bench.pod("c", node="n2")) == ""


@pytest.mark.parametrize(("good", "limit"), [(1, refusal.ZONE_DEGRADED), (0, refusal.ZONE_FULL)])
def test_a_bad_zone_slows_its_pods_down(good, limit):
    bench = Bench(limited(zone_health=ZoneHealth(min_nodes=0)))
    bench.zone("z1", good, 9)
    bench.zone("z2", 9, 0)
    assert [bench.ask(bench.pod(name)) for name in "ab"] == ["", limit]
    assert bench.ask(bench.pod("c"), "z2") == ""


def test_a_halted_zone_refuses_until_it_is_better():
    bench = Bench(limited(zone_health=ZoneHealth(min_nodes=0, halt_small_zones=True)))
    bench.zone("z1", 1, 9)
    refused = bench.limiter.admit(bench.pod(), bench.policy, TAINT, {ZONE: "z1"}, LATER, deletes=False)
    assert refused is not None
    assert (refused.limit, refused.until, refused.key) == (refusal.ZONE_HALTED, None, "zone/p/z1")


def test_zones_have_rates_of_their_own():
    bench = Bench(limited(zone_evictions_per_second=1.0))
    assert [bench.ask(bench.pod(name)) for name in "ab"] == ["", refusal.PER_ZONE]
    assert bench.ask(bench.pod("c"), "z2") == ""


def test_namespaces_have_rates_of_their_own():
    bench = Bench(limited(namespace_evictions_per_second=1.0))
    assert [bench.ask(bench.pod(name)) for name in "ab"] == ["", refusal.PER_NAMESPACE]
    assert bench.ask(bench.pod("c", namespace="office")) == ""


# -- together ----------------------------------------------------------------------------------------------------------


def test_who_is_refused_takes_from_no_bucket():
    bench = Bench(
        limited(evictions_per_second=1.0, burst=1, zone_evictions_per_second=1.0, namespace_evictions_per_second=1.0),
        overall_rate=1.0,
    )
    bench.limiter.budgets.set(budget())
    assert [bench.ask(bench.pod(name)) for name in "abc"] == [refusal.BUDGET] * 3
    bench.limiter.budgets.drop("shop", "pdb")
    assert bench.ask(bench.pod("d")) == ""


def test_who_is_refused_by_the_last_bucket_takes_from_none_before():
    bench = Bench(limited(evictions_per_second=1.0, burst=2, namespace_evictions_per_second=1.0))
    assert [bench.ask(bench.pod(name)) for name in "abc"] == ["", refusal.PER_NAMESPACE, refusal.PER_NAMESPACE]
    assert bench.ask(bench.pod("d", namespace="office")) == ""


def test_who_goes_takes_from_every_bucket():
    bench = Bench(limited(evictions_per_second=1.0, burst=1), overall_rate=1.0)
    bench.ask(bench.pod())
    for bucket in (bench.limiter.rates.overall, bench.limiter.rates.of_policy("p")):
        assert bucket is not None
        assert bucket.available_at(LATER.monotonic) == LATER.monotonic + 1


def test_what_holds_the_whole_policy_is_told_before_what_holds_some():
    closed = msgspec.structs.replace(limited(evictions_per_second=0.001, burst=1), windows=NEVER)
    bench = Bench(closed)
    bench.limiter.budgets.set(budget())
    assert bench.ask(bench.pod()) == refusal.WINDOW


def test_a_pod_that_is_deleted_asks_no_budget_but_everybody_else():
    bench = Bench(limited(max_unavailable=Share(number=1)))
    bench.limiter.budgets.set(budget())
    assert bench.ask(bench.pod(), deletes=True) == refusal.WORKLOAD_UNKNOWN
    bench.limiter.workloads.want(owner().uid, 1)
    assert bench.ask(bench.pod("b"), deletes=True) == ""


# -- nodes that will be gone ------------------------------------------------------------------------------------------


HARD = msgspec.structs.replace(
    limited(
        evictions_per_second=0.001,
        burst=1,
        node_max_concurrent=1,
        namespace_evictions_per_second=0.001,
        zone_evictions_per_second=0.001,
        max_unavailable=Share(number=1),
        zone_health=ZoneHealth(min_nodes=0),
        guard=GuardSettings(min_pods=0),
    ),
    windows=NEVER,
    reclaim=Reclaim(120),
)


def test_soft_limits_step_aside_for_a_hard_deadline():
    bench = Bench(HARD, population=0)
    bench.zone("z1", 0, 9)
    for name in "abcdef":
        pod = bench.pod(name)
        assert bench.ask(pod) == ""
        bench.leave(pod)


def test_the_overall_rate_does_not():
    bench = Bench(HARD, overall_rate=1.0)
    assert [bench.ask(bench.pod(name)) for name in "ab"] == ["", refusal.OVERALL_RATE]


def test_neither_do_budgets():
    bench = Bench(HARD)
    bench.limiter.budgets.set(budget())
    assert bench.ask(bench.pod()) == refusal.BUDGET


def test_a_hard_deadline_needs_no_guard():
    assert Bench(HARD).limiter.guards == {}


# -- what pods do ------------------------------------------------------------------------------------------------------


def test_a_pod_that_stays_frees_what_it_took():
    bench = Bench(limited(node_max_concurrent=1, max_unavailable=Share(number=1)))
    bench.limiter.workloads.want(owner().uid, 2)
    first, second = bench.pod(), bench.pod("b")
    bench.leave(first)
    bench.released.clear()
    bench.limiter.stay(first)
    assert bench.released == [f"workload/{owner().uid}", "node/n1"]
    assert bench.ask(second) == ""


def test_an_eviction_is_counted_by_the_guard_once_however_often_it_is_tried():
    bench = reserved(Bench(limited(guard=GuardSettings())))
    pod = bench.pod()
    for _ in range(5):
        bench.leave(pod)
        bench.limiter.settle(pod.uid, evicted=False, uncertain=True)
    assert [pods for _, pods in bench.limiter.guards["p"].current_record(bench.now).spent] == [1]


def test_an_eviction_that_did_not_happen_is_given_back_to_the_guard():
    bench = reserved(Bench(limited(guard=GuardSettings())))
    pod = bench.pod()
    bench.leave(pod)
    bench.limiter.settle(pod.uid, evicted=False, uncertain=False)
    assert bench.limiter.guards["p"].current_record(bench.now).spent == ()


def test_an_eviction_that_happened_is_not():
    bench = reserved(Bench(limited(guard=GuardSettings())))
    pod = bench.pod()
    bench.leave(pod)
    bench.limiter.settle(pod.uid, evicted=True, uncertain=False)
    assert len(bench.limiter.guards["p"].current_record(bench.now).spent) == 1


# -- policies change ---------------------------------------------------------------------------------------------------

GUARDED = limited(guard=GuardSettings())
OPEN = GuardRecord(LATER.wall - 60, "a taint", 400)


def test_a_guard_goes_on_through_changes_of_its_policy():
    bench = Bench(GUARDED)
    guard = bench.limiter.guards["p"]
    bench.limiter.configure([limited(guard=GuardSettings(max_percent=1))], LATER)
    assert bench.limiter.guards["p"] is guard
    assert guard.settings.max_percent == 1


def test_a_namesake_inherits_no_guard():
    bench = Bench(GUARDED)
    bench.limiter.restore_guard("p", OPEN, LATER)
    bench.limiter.configure([msgspec.structs.replace(GUARDED, uid="another")], LATER)
    assert not bench.limiter.guards["p"].halts


def test_a_policy_made_again_after_it_was_gone_inherits_no_guard():
    bench = Bench(GUARDED)
    bench.limiter.restore_guard("p", OPEN, LATER)
    bench.limiter.configure([], LATER)
    bench.limiter.configure([msgspec.structs.replace(GUARDED, uid="another")], LATER)
    assert not bench.limiter.guards["p"].halts


def test_a_guard_switched_off_and_on_again_remembers():
    bench = reserved(Bench(GUARDED))
    bench.leave(bench.pod())
    bench.limiter.configure([limited()], LATER)
    assert bench.limiter.guards == {}
    bench.limiter.configure([GUARDED], LATER)
    assert [pods for _, pods in bench.limiter.guards["p"].current_record(LATER).spent] == [1]


def test_a_record_that_came_before_its_policy_counts():
    bench = Bench(limited("other"))
    bench.limiter.restore_guard("p", OPEN, LATER)
    bench.limiter.configure([limited("other"), GUARDED], LATER)
    assert bench.limiter.guards["p"].halts


def test_nothing_is_remembered_of_policies_that_are_gone():
    bench = Bench(GUARDED)
    bench.limiter.restore_guard("p", OPEN, LATER)
    bench.limiter.configure([], LATER)
    kept = (bench.limiter.guards, bench.limiter._records, bench.limiter._uids, bench.limiter._windows)
    assert kept == ({}, {}, {}, {})


def test_nothing_is_remembered_of_a_policy_that_went_with_its_guard_off():
    bench = Bench(GUARDED)
    for given in ([limited()], []):
        bench.limiter.configure(given, LATER)
    assert bench.limiter._records == {}


# -- who is told -------------------------------------------------------------------------------------------------------


def test_a_zone_that_changes_lets_its_pods_be_asked_again():
    bench = Bench(limited(zone_health=ZoneHealth(min_nodes=0)))
    bench.zone("z1", 1, 2)
    bench.released.clear()
    bench.reconsidered.clear()
    bench.limiter.zones.count("z1-0", {ZONE: "z1"}, {"p": True})
    assert bench.reconsidered == ["p"]
    assert bench.released == ["zone/p/z1", "zone/p/z1/zone-degraded", "zone/p/z1/zone-full"]
