"""All limits together: in which order they are asked, and that nothing is taken unless all admit."""

from typing import Any

import msgspec

from engine.limits.asking import AT_ONCE, ask
from engine.rig import ZONE, budget, limited, owner
from taintwarden.engine.guard import Due, Guard
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import GuardSettings, PerNode, PerWorkload, RateLimit, ZoneHealth
from taintwarden.engine.limits import EvictionRequest, Limiter, Refusal, Settlement, refusal
from taintwarden.engine.model import Instant, Pod, Tolerations
from taintwarden.engine.policy import Policy, Reclaim, Window

LATER = Instant(1_700_000_000.0, 1_000.0)
NEVER = (Window("0 0 29 2 *", 60),)
"""A window that opens on leap days."""


class Bench:
    """A limiter under one policy, with pods of one workload on labelled nodes."""

    def __init__(self, given: Policy, overall_rate: float | None = None) -> None:
        self.limiter = Limiter(overall_rate)
        self.policy = given
        self.now = LATER
        self.configure(given, now=Instant(LATER.wall - 1_000, 0.0))
        self.interner = Interner()

    def configure(self, *policies: Policy, now: Instant = LATER) -> None:
        self.limiter.configure(policies, now)
        for guard in self.limiter.guards.by_policy.values():
            guard.population = lambda: 1_000

    @property
    def guard(self) -> Guard:
        return self.limiter.guards.by_policy["p"]

    def pod(self, name: str = "a", *, of: str = "web", node: str = "n1", namespace: str = "shop") -> Pod:
        shared = self.interner.pod_class(namespace, {}, Tolerations(), owner=owner(of))
        pod = Pod(name, name, node, shared, 0.0, 1, True)
        self.limiter.workloads.seen(pod, None)
        return pod

    def request(self, pod: Pod, zone: str = "z1", **more: Any) -> EvictionRequest:
        return ask(pod, self.policy, zone=zone, now=self.now, **more)

    def refuse(self, pod: Pod, zone: str = "z1", **more: Any) -> Refusal | None:
        return self.limiter.admit(self.request(pod, zone, **more))

    def ask(self, pod: Pod, zone: str = "z1", **more: Any) -> str:
        """The limit that refuses; empty if none does, and then the pod is evicted."""
        refused = self.refuse(pod, zone, **more)
        if refused is None:
            self.call(pod, Settlement.ACCEPTED, zone, **more)
        return refused.limit if refused else ""

    def reserve(self, pod: Pod, zone: str = "z1", **more: Any) -> None:
        self.limiter.reserve(self.request(pod, zone, **more))

    def call(self, pod: Pod, settlement: Settlement, zone: str = "z1", **more: Any) -> None:
        """A call that ends at once."""
        self.reserve(pod, zone, **more)
        self.limiter.settle(pod.uid, settlement, AT_ONCE)
        if settlement is Settlement.STAYS:
            self.limiter.stay(pod.uid)

    def trip(self) -> None:
        """More pods have to leave than the guard allows."""
        for number in range(500):
            self.guard.expect(Due(f"wave-{number}", self.now.wall, "shop" if number % 2 else "bank", "n1"), self.now)
        self.guard.check_wave(self.now)
        assert self.guard.halts

    def zone(self, name: str, good: int, bad: int) -> None:
        for number in range(good + bad):
            self.limiter.zones.count_node(f"{name}-{number}", {ZONE: name}, {"p": number >= good})

    def spent(self) -> list[int]:
        return [sum(dict(pods).values()) for _, pods in self.guard.record(self.now).evicted]


def reserved(bench: Bench, *uids: str) -> Bench:
    """The guard's stored record has the evictions of these pods."""
    for uid in uids:
        assert bench.guard.want(uid, "shop")
    record = bench.guard.to_save(bench.now, 1)
    assert record is not None
    bench.guard.saved(record, error="")
    return bench


# -- each limit refuses -----------------------------------------------------------------------------------------------


def test_a_released_pod_passes_the_guard_and_full_zones():
    bench = Bench(limited(guard=GuardSettings(), zone_health=ZoneHealth(())))
    bench.zone("z1", 0, 9)
    bench.trip()
    bench.now = Instant(LATER.wall + 1, LATER.monotonic + 1)
    assert bench.ask(bench.pod(), released=True) == ""
    assert bench.ask(bench.pod("b")) == refusal.ZONE


# -- together ----------------------------------------------------------------------------------------------------------


def test_a_refused_pod_takes_from_no_bucket():
    bench = Bench(
        limited(evictions_per_second=1.0, burst=1, per_zone=RateLimit(1.0), per_namespace=RateLimit(1.0)),
        overall_rate=1.0,
    )
    bench.limiter.budgets.set_budget(budget(), AT_ONCE.monotonic)
    assert [bench.ask(bench.pod(name)) for name in "abc"] == [refusal.BUDGET] * 3
    bench.limiter.budgets.drop_budget("shop", "pdb")
    assert bench.ask(bench.pod("d")) == ""


def test_a_guard_counts_evictions_beside_a_policy_without_one():
    bench = reserved(Bench(limited(guard=GuardSettings())), "a")
    bench.configure(bench.policy, limited("q"))
    pod = bench.pod()
    bench.reserve(pod)
    bench.limiter.gone(pod, bench.now)
    assert bench.guard.evicted() == 1


def test_a_rehearsal_takes_what_evictions_of_the_policy_share_and_the_pod_stays():
    bench = Bench(limited(evictions_per_second=1.0, burst=1, per_node=PerNode(1), spec={"mode": "DryRun"}))
    bench.limiter.rehearse(bench.request(bench.pod()))
    assert bench.ask(bench.pod("b")) == refusal.POLICY_RATE
    bench.now = Instant(LATER.wall + 1, LATER.monotonic + 1)
    assert bench.ask(bench.pod("b")) == "", "none is on its way out of the node"


def test_a_limit_that_holds_the_whole_policy_is_named_before_others():
    closed = msgspec.structs.replace(limited(evictions_per_second=0.001, burst=1), windows=NEVER)
    bench = Bench(closed)
    bench.limiter.budgets.set_budget(budget(), AT_ONCE.monotonic)
    assert bench.ask(bench.pod()) == refusal.WINDOW


def test_a_deletion_is_checked_against_all_limits_but_budgets():
    bench = Bench(limited(per_workload=PerWorkload(1)))
    bench.limiter.budgets.set_budget(budget(), AT_ONCE.monotonic)
    assert bench.ask(bench.pod(), deletes=True) == ""
    bench.limiter.workloads.set_wanted(("shop", owner().uid), 3)
    assert bench.ask(bench.pod("b"), deletes=True) == refusal.WORKLOAD


# -- nodes that will be gone ------------------------------------------------------------------------------------------


HARD = msgspec.structs.replace(
    limited(
        evictions_per_second=0.001,
        burst=1,
        per_node=PerNode(1),
        per_namespace=RateLimit(0.001),
        per_zone=RateLimit(0.001),
        per_workload=PerWorkload(1),
        zone_health=ZoneHealth(()),
        guard=GuardSettings(min_pods=0),
    ),
    windows=NEVER,
    reclaim=Reclaim(120),
)


def test_soft_limits_step_aside_for_a_hard_deadline():
    bench = Bench(HARD)
    bench.zone("z1", 0, 9)
    for name in "abcdef":
        assert bench.ask(bench.pod(name)) == ""


def test_the_overall_rate_does_not():
    bench = Bench(HARD, overall_rate=1.0)
    assert [bench.ask(bench.pod(name)) for name in "ab"] == ["", refusal.OVERALL_RATE]


# -- how calls end -----------------------------------------------------------------------------------------------------


LIMITED = limited(
    guard=GuardSettings(),
    evictions_per_second=1.0,
    burst=1,
    per_node=PerNode(1),
    per_workload=PerWorkload(1),
    per_namespace=RateLimit(1.0),
)


def test_a_pod_that_stays_gives_back_all_but_the_call():
    bench = reserved(Bench(LIMITED, overall_rate=1.0), "a", "b")
    bench.limiter.workloads.set_wanted(("shop", owner().uid), 2)
    bench.limiter.budgets.set_budget(budget(allowed=1), AT_ONCE.monotonic)
    first, second = bench.pod(), bench.pod("b")
    bench.call(first, Settlement.STAYS)
    assert bench.spent() == []
    assert bench.ask(second) == refusal.OVERALL_RATE
    bench.now = Instant(LATER.wall + 1, LATER.monotonic + 1)
    assert bench.refuse(second) is None
