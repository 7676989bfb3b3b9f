"""The guards of all policies as two limits: what they refuse, what they free, and what outlives a change of policy."""

from typing import Any

import msgspec
import pytest

from engine.kept import kept
from engine.limits.asking import AT_ONCE, ask
from engine.rig import budget, limited
from taintwarden.engine.guard import BudgetKey, Due, Guard
from taintwarden.engine.guard.ledger import MAX_RESERVED
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import GuardAction, GuardSettings
from taintwarden.engine.limits import EvictionRequest, FreedKeys, Refusal, Settlement
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.limits.guards import GuardRecords, Guards
from taintwarden.engine.limits.refusal import GUARD, RefusalScope
from taintwarden.engine.model import Instant, Pod, Tolerations
from taintwarden.engine.policy import Mode, Policy, Reclaim
from taintwarden.engine.records import GuardRecord

SETTINGS = GuardSettings(max_percent=10, min_pods=0, window_seconds=600, settle_seconds=0)
POLICY = limited(guard=SETTINGS)
PACED = limited(guard=msgspec.structs.replace(SETTINGS, action=GuardAction.PACE))
START = 1_700_000_000.0
TRIPPED = GuardRecord(START - 60, "a taint", (("shop", 20),))
NOT_STORED = "the guard stores its record first"
INTERNER = Interner()


def policy(given: Policy = POLICY, **changed: Any) -> Policy:
    return msgspec.structs.replace(given, **changed)


class Bench:
    """The guards of some policies, each of which may evict 10 of 100 pods."""

    def __init__(self, *policies: Policy) -> None:
        self.freed = FreedKeys()
        self.budgets = Budgets(self.freed)
        self.guards = Guards(self.budgets, self.freed)
        self.records = GuardRecords(self.guards)
        self.seconds = 0.0
        self.configure(*policies or (POLICY,))

    @property
    def now(self) -> Instant:
        return Instant(START + self.seconds, self.seconds)

    @property
    def guard(self) -> Guard:
        return self.guards.by_policy["p"]

    def configure(self, *policies: Policy) -> None:
        self.guards.configure(policies, self.now)
        for guard in self.guards.by_policy.values():
            guard.population = lambda: 100
        self.freed.take()

    def request(self, name: str = "a", namespace: str = "shop", given: Policy = POLICY, **more: Any) -> EvictionRequest:
        pod = Pod(name, name, "n1", INTERNER.pod_class(namespace, {}, Tolerations()), 0.0, 1)
        return ask(pod, given, now=self.now, **more)

    def refuse(self, *args: Any, **more: Any) -> Refusal | None:
        return self.guards.admit(self.request(*args, **more))

    def refuse_record(self, *args: Any, **more: Any) -> Refusal | None:
        return self.records.admit(self.request(*args, **more))

    def expect(self, number: int, namespace: str = "shop") -> None:
        for one in range(number):
            self.guard.expect(Due(f"{namespace}-{one}", self.now.wall, namespace, "n1"), self.now)
        self.guard.check_wave(self.now)
        if not self.guard.latch.is_stored:
            self.store()
            self.guard.check_wave(self.now)

    def store(self) -> GuardRecord:
        record = self.guard.to_save(self.now, 1)
        assert record is not None
        self.guard.saved(record, error="")
        return record

    def call(self, name: str = "a", settlement: Settlement = Settlement.OPEN) -> None:
        self.records.reserve(self.request(name))
        self.guards.settle(name, settlement, self.now)

    def evict(self, name: str = "a") -> None:
        self.call(name)
        self.guards.gone(self.request(name).pod, self.now)


# -- what they refuse --------------------------------------------------------------------------------------------------


def test_a_tripped_guard_refuses_the_policy():
    bench = Bench(POLICY, limited("q", guard=SETTINGS))
    assert bench.refuse() is None
    bench.expect(8)
    bench.expect(8, "bank")
    assert bench.refuse() == Refusal(GUARD)
    assert bench.refuse(given=limited("q")) is None
    assert bench.refuse(released=True) is None


def test_a_guard_trips_when_a_budget_allows_more():
    bench = Bench()
    for number in range(11):
        bench.guard.expect(Due(f"p{number}", bench.now.wall, "shop", "n1", BudgetKey("shop", ("pdb",))), bench.now)
    for allowed in (10, 11):
        bench.budgets.set_budget(budget("pdb", allowed), bench.seconds)
        bench.guard.check_wave(bench.now)
        assert bench.guard.latch.is_tripped == (allowed > 10)


def test_a_guard_that_holds_one_namespace_refuses_its_lane():
    bench = Bench()
    bench.expect(20)
    detail = "it holds namespace shop only"
    assert bench.refuse() == Refusal(GUARD, None, RefusalScope.LANE, "lane/p/shop", detail)
    assert bench.refuse(namespace="bank") is None


def test_a_pod_waits_until_its_record_is_stored():
    bench = Bench()
    assert bench.refuse_record() == Refusal(GUARD, None, RefusalScope.PODS, "record/p", NOT_STORED, is_brief=True)
    assert bench.store().reserved == (("a", "shop"),)
    assert bench.refuse_record() is None


def test_a_call_that_is_made_again_needs_no_other_record():
    bench = Bench()
    bench.refuse_record()
    bench.store()
    bench.call()
    assert bench.refuse_record() is None


def test_a_tripped_guard_refuses_all_until_its_record_has_what_counts():
    bench = Bench()
    bench.expect(20)
    assert bench.refuse(namespace="bank") is None
    bench.guard.expect(Due("late", bench.now.wall, "play", "n1"), bench.now)
    assert bench.refuse(namespace="bank") == Refusal(GUARD, detail=NOT_STORED, is_brief=True)
    bench.store()
    assert bench.refuse(namespace="bank") is None


def test_a_record_that_cannot_be_stored_says_why():
    bench = Bench()
    bench.refuse_record()
    bench.guard.saved(bench.guard.to_save(bench.now, 1), error="status is read-only")
    refused = bench.refuse_record()
    text = "the guard cannot store its record, and tries again at least every 5s: status is read-only"
    assert (refused.detail, refused.is_brief) == (text, False)
    bench.store()
    assert bench.refuse_record() is None


@pytest.mark.parametrize(("end", "more"), [("unreserve", ()), ("forget", ()), ("gone", (None, AT_ONCE))])
def test_a_pod_without_a_reservation_is_retried_when_one_ends(end, more):
    bench = Bench()
    for number in range(10):
        bench.refuse_record(f"p{number}")
    bench.store()
    bench.refuse_record("one-more")
    bench.freed.take()
    getattr(bench.guard, end)("p0", *more)
    assert bench.freed.take() == ["record/p", "unreserved/p"]
    getattr(bench.guard, end)("p1", *more)
    assert bench.freed.take() == []


def test_pods_without_a_reservation_are_retried_when_ten_fit_into_a_full_record():
    bench = Bench()
    bench.guard.population = lambda: 100 * MAX_RESERVED
    for number in range(MAX_RESERVED):
        bench.refuse_record(f"p{number}")
        bench.store()
    bench.refuse_record("one-more")
    for number in range(10):
        bench.freed.take()
        bench.guard.unreserve(f"p{number}")
        assert ("unreserved/p" in bench.freed.keys) == (number == 9)


def test_a_pod_without_a_place_waits_apart_from_those_with_one():
    """Reserved pods may be behind it in its lane."""
    bench = Bench()
    reserved = Refusal(GUARD, None, RefusalScope.PODS, "record/p", NOT_STORED, is_brief=True)
    for number in range(10):
        assert bench.refuse_record(f"p{number}") == reserved
    assert bench.refuse_record("one-more").key == "unreserved/p"


def test_pod_beyond_the_allowance_waits_for_the_window_and_not_for_a_write():
    bench = Bench()
    for number in range(10):
        bench.refuse_record(f"p{number}")
    found = bench.refuse_record("one-more")
    assert (found.detail, found.is_brief) == (
        "as many pods as it allows were evicted within its window, or are reserved",
        False,
    )


def test_a_pace_admits_pods_that_the_record_has():
    bench = Bench(PACED)
    bench.expect(20)
    assert bench.refuse() is None
    assert bench.refuse_record().detail == NOT_STORED
    bench.store()
    assert bench.refuse_record() is None


def test_a_pace_admits_none_until_its_record_has_what_counts():
    bench = Bench(PACED)
    bench.expect(20)
    bench.guard.expect(Due("late", bench.now.wall, "play", "n1"), bench.now)
    assert bench.refuse() == Refusal(GUARD, detail=NOT_STORED, is_brief=True)


def test_a_call_that_evicted_no_pod_leaves_its_place_to_others():
    """Not only to its own pod, which a budget may hold by now."""
    bench = Bench()
    for number in range(10):
        bench.records.reserve(bench.request(f"p{number}"))
    bench.refuse_record("other")
    bench.freed.take()
    bench.guards.settle("p0", Settlement.STAYS, bench.now)
    assert bench.freed.take() == ["record/p", "unreserved/p"]


def test_a_released_pod_needs_no_place_in_the_record():
    assert Bench().refuse_record(released=True) is None


# -- what they free ----------------------------------------------------------------------------------------------------


def test_the_policy_is_retried_when_its_guard_is_armed():
    bench = Bench()
    bench.expect(8)
    bench.expect(8, "bank")
    bench.guard.check_wave(bench.now)
    bench.freed.take()
    bench.guard.let_pass(bench.guard.release())
    assert bench.freed.take() == ["policy/p", "record/p", "unreserved/p"]


def test_the_lane_is_retried_when_its_namespace_is_held_no_more():
    bench = Bench()
    bench.expect(11)
    bench.freed.take()
    for number in range(11):
        bench.guard.forget(f"shop-{number}")
    bench.guard.check_wave(bench.now)
    assert bench.freed.take() == ["lane/p/shop", "record/p", "unreserved/p"]


def test_the_lane_is_retried_when_its_guard_is_switched_off():
    bench = Bench()
    bench.expect(11)
    bench.freed.take()
    bench.guards.configure((limited(),), bench.now)
    assert bench.freed.take() == ["lane/p/shop", "record/p", "unreserved/p"]


# -- how calls end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settlement", "is_reserved"), [(Settlement.OPEN, True), (Settlement.STAYS, False)])
def test_a_pod_is_reserved_after_its_call_unless_it_is_known_to_stay(settlement, is_reserved):
    bench = Bench()
    bench.call(settlement=settlement)
    record = bench.guard.record(bench.now)
    assert (record.evicted, record.reserved) == ((), (("a", "shop"),) * is_reserved)


def test_a_pod_that_is_gone_after_its_call_counts_as_evicted_whatever_the_answer_was():
    bench = Bench()
    bench.evict()
    record = bench.guard.record(bench.now)
    assert ([pods for _, pods in record.evicted], record.reserved) == ([(("shop", 1),)], ())


@pytest.mark.parametrize("others", [(), (policy(uid="another"),), (limited(guard=GuardSettings(100)),)])
def test_the_pods_of_a_guard_that_is_gone_are_forgotten_in_slices(others):
    bench = Bench()
    bench.expect(5)
    bench.configure(*others)
    bench.guards.drop_removed(4)
    assert kept(bench.guards, "shop-4") != []
    bench.guards.drop_removed(4)
    assert kept(bench.guards, "shop-4") == []


# -- policies that change ----------------------------------------------------------------------------------------------


def test_a_policy_with_a_guard_is_concerned():
    bench = Bench(limited("q"), policy(name="r", reclaim=Reclaim(120)), POLICY)
    policies = [POLICY, limited("q"), limited("r")]
    assert [bench.guards.concerns(one) for one in policies] == [True, False, False]
    assert [bench.records.concerns(one) for one in policies] == [True, False, False]


@pytest.mark.parametrize("off", [limited(), policy(reclaim=Reclaim(120))], ids=["no guard", "reclaim"])
def test_a_guard_that_was_switched_off_continues_from_its_record(off):
    bench = Bench()
    bench.evict()
    bench.configure(off)
    assert bench.guards.by_policy == {}
    bench.seconds += 100
    bench.configure(POLICY)
    assert bench.guard.evicted() == 1
    bench.seconds += 530
    bench.guard.check_wave(bench.now)
    assert bench.guard.evicted() == 0


def test_a_guard_that_was_switched_off_forgets_its_trip():
    bench = Bench()
    bench.expect(11)
    bench.guard.check_wave(bench.now)
    assert bench.guard.halts
    bench.configure(limited())
    bench.configure(POLICY)
    assert not bench.guard.halts


@pytest.mark.parametrize("meanwhile", [[], [limited()]], ids=["known", "switched off"])
def test_a_new_policy_of_the_same_name_inherits_nothing(meanwhile):
    bench = Bench()
    bench.evict()
    if meanwhile:
        bench.configure(*meanwhile)
    bench.configure(policy(uid="another"))
    assert bench.guard.evicted() == 0


def test_in_a_dry_run_a_guard_holds_nothing():
    bench = Bench(policy(rehearses=True, mode=Mode.DRY_RUN))
    assert bench.guard.settings.action is GuardAction.REPORT
    bench.expect(11)
    assert bench.refuse() is None
    bench.configure(POLICY)
    assert bench.guard.settings.action is GuardAction.HALT
    assert bench.guard.latch.is_tripped, "as many still have to leave"


def test_the_window_outlasts_a_dry_run():
    """Else a switch to DryRun and back lets twice as many pods leave."""
    bench = Bench()
    for number in range(10):
        bench.evict(f"p{number}")
    bench.configure(policy(rehearses=True, mode=Mode.DRY_RUN))
    bench.configure(POLICY)
    assert bench.guard.evicted() == 10


# -- records of other processes ----------------------------------------------------------------------------------------


def test_a_record_applies_when_this_process_leads():
    bench = Bench()
    bench.guards.keep("p", TRIPPED)
    assert not bench.guard.latch.is_tripped
    bench.guards.restore(bench.now)
    assert bench.guard.latch.is_tripped
    bench.configure(POLICY)
    assert bench.guard.latch.tripped_at == TRIPPED.tripped_at


def test_a_record_of_a_policy_that_is_not_known_yet_applies_later():
    bench = Bench()
    bench.guards.keep("q", TRIPPED)
    bench.configure(POLICY)
    bench.configure(POLICY, limited("q", guard=SETTINGS))
    assert bench.guards.by_policy["q"].latch.is_tripped


@pytest.mark.parametrize("meanwhile", [[], [limited()]], ids=["known", "switched off"])
def test_a_record_of_a_policy_that_is_gone_is_forgotten(meanwhile):
    bench = Bench()
    bench.guards.keep("p", TRIPPED)
    if meanwhile:
        bench.configure(*meanwhile)
    bench.guards.configure((), bench.now)
    assert kept(bench.guards, "p") == []


def test_a_pod_whose_reservation_ends_before_it_is_stored_is_retried():
    """Its lane failed, so that others may be reserved; no record will have it."""
    bench = Bench()
    bench.refuse_record("first")
    bench.refuse_record()
    bench.freed.take()
    bench.guard.unreserve_all("shop")
    assert bench.freed.take() == ["record/p", "unreserved/p"]
