"""The stored record of a guard, and what the next leader restores from it."""

import pytest

from engine.guard.bench import SLOT, WALL, WINDOW, Bench, pods, wave
from taintwarden.controller.stores.guard_record import decode_guard, encode_guard
from taintwarden.engine.guard import ALL, GuardTransition
from taintwarden.engine.guard.guard import TIDY_SECONDS
from taintwarden.engine.guard.latch import NARROW_SECONDS, OTHERS
from taintwarden.engine.guard.ledger import UNSURE_SECONDS
from taintwarden.engine.limit_settings import GuardAction
from taintwarden.engine.records import GuardRecord


def test_only_changes_are_stored():
    bench = Bench()
    assert not bench.guard.has_to_save
    bench.expect(*pods(11))
    assert bench.guard.check_wave(bench.now) is GuardTransition.TRIPPED
    bench.guard.latch.cause = "a taint"
    record = bench.store()
    assert (record.tripped_at, record.cause, record.counted, record.term) == (WALL, "a taint", (("shop", 11),), 1)
    assert not bench.guard.has_to_save
    bench.release()
    record = bench.store()
    assert (record.tripped_at, record.counted) == (None, ())
    bench.forget("p0")
    bench.expect("another")
    bench.forget("another")
    assert not bench.guard.has_to_save


def test_counts_that_a_guard_did_not_store_while_it_reported_do_not_pass_for_stored():
    bench = Bench(action=GuardAction.REPORT)
    bench.trip()
    bench.store()
    bench.change(action=GuardAction.HALT)
    assert not bench.guard.is_stored


def test_guard_that_reports_stores_counts_only_when_it_begins_to_hold():
    bench = Bench(action=GuardAction.REPORT)
    bench.trip()
    assert bench.store().counted == ()
    bench.expect("other", namespace="bank")
    bench.guard.check_wave(bench.now)
    assert not bench.guard.has_to_save, "the record would be the same"
    bench.change(action=GuardAction.HALT)
    assert not bench.guard.is_stored
    assert bench.store().counted == (("bank", 1), ("shop", 11))


def test_growth_after_the_trip_is_stored():
    bench = Bench(population=80)
    bench.expect(*pods(12, "big-"))
    bench.check_guard()
    bench.expect(*pods(6, "other-"), namespace="other")
    bench.guard.check_wave(bench.now)
    record = bench.store()
    bench.forget(*pods(3, "other-"))
    other = bench.restart(record)
    other.expect(*pods(12, "big-"))
    other.expect(*pods(6, "other-")[3:], namespace="other")
    other.resolve()
    other.advance(2 * NARROW_SECONDS)
    assert other.guard.holds("other"), "six are more than half of the allowance of 8"


def test_growth_before_the_record_is_stored_is_stored_too():
    bench = Bench()
    bench.expect(*pods(11))
    bench.guard.check_wave(bench.now)
    record = bench.guard.to_save(bench.now, 1)
    bench.expect("one-more", namespace="bank")
    bench.guard.saved(record)
    assert not bench.guard.latch.is_stored
    assert bench.store().counted == (("bank", 1), ("shop", 11))
    assert bench.guard.latch.is_stored


def test_a_record_that_could_not_be_written_is_written_again():
    bench = Bench()
    bench.trip()
    bench.release()
    bench.store(succeeded=False)
    assert bench.store().tripped_at is None


def test_a_change_while_a_record_is_written_is_written_next():
    bench = Bench()
    uids = bench.trip()
    record = bench.guard.to_save(bench.now, 1)
    bench.forget(*uids)
    bench.guard.check_wave(bench.now, may_arm=True)
    bench.guard.saved(record)
    assert bench.store().tripped_at is None


def test_fields_that_are_not_stored_are_known_until_they_are():
    bench = Bench()
    for pruned in (("population",), ()):
        bench.guard.saved(bench.guard.to_save(bench.now, 1), pruned=pruned)
        assert bench.guard.pruned == pruned


def test_a_record_without_a_population_is_read():
    """A version before wrote it: the allowance is a share of the pods that there are."""
    other = Bench(population=90).restart(GuardRecord(evicted=((WALL, (("shop", 10),)),)))
    other.check_guard()
    assert (other.guard.evicted(), other.guard.allowance()) == (10, 9)


def test_the_next_leader_counts_evictions_until_they_leave_the_window():
    bench = Bench()
    bench.evict(*pods(3))
    bench.seconds += 300
    bench.evict(*pods(2, "later-"), namespace="bank")
    bench.seconds += 100
    other = bench.restart()
    assert other.guard.evicted() == 5
    assert other.guard.record(other.now) == bench.guard.record(bench.now)
    other.advance(WINDOW + SLOT - 400)
    assert other.guard.evicted() == 2
    other.advance(300)
    assert other.guard.evicted() == 0


def test_evictions_that_have_left_the_window_before_another_leads_hold_nothing():
    bench = Bench()
    bench.expect(*pods(11))
    bench.seconds = WINDOW
    bench.guard.restore(GuardRecord(WALL, counted=(("shop", 3),), evicted=((WALL, (("shop", 5),)),)), bench.now)
    assert bench.guard.latch.counted() == {"shop": 11}


def test_a_new_leader_stores_nothing_of_a_guard_that_is_armed():
    bench = Bench()
    bench.expect("a")
    bench.guard.restore(GuardRecord(), bench.now)
    assert not bench.guard.has_to_save


def test_evictions_of_the_future_count_for_one_window():
    """The clock of the leader before was fast."""
    bench = Bench().restart(GuardRecord(evicted=((WALL + 1e6, (("shop", 3),)),)))
    bench.advance(WINDOW + SLOT - 1)
    assert bench.guard.evicted() == 3
    bench.advance(1)
    assert bench.guard.evicted() == 0


def test_reserved_evictions_of_pods_that_are_gone_count():
    bench = Bench()
    bench.reserve("a", "b")
    bench.reserve("c", namespace="bank")
    other = bench.restart()
    assert other.guard.evicted() == 0, "not known yet"
    other.resolve("b")
    assert other.guard.evicted() == 2
    assert other.guard.record(other.now).evicted == ((WALL + SLOT, (("bank", 1), ("shop", 1))),)
    assert [other.may_call(uid) for uid in "abc"] == [False, True, False]
    other.advance(UNSURE_SECONDS)
    assert other.guard.record(other.now).reserved == (), "it may stay"
    assert other.guard.evicted() == 2


def test_reserved_evictions_that_are_carried_out_late_count_for_a_minute_or_while_the_pod_has_to_leave():
    bench = Bench()
    bench.reserve("a", "b", "c", "d")
    other = bench.restart()
    other.expect("a", "b", "c", "d")
    other.resolve("a", "b", "c", "d")
    assert (other.guard.evicted(), other.may_call("b")) == (0, True)
    other.see_gone("a")
    assert other.guard.evicted() == 1
    other.evict("b")
    assert other.guard.evicted() == 2, "counted once"
    assert dict(other.guard.record(other.now).reserved) == {"c": "shop", "d": "shop"}
    other.forget("c")
    other.advance(UNSURE_SECONDS)
    assert dict(other.guard.record(other.now).reserved) == {"d": "shop"}, "it has to leave"
    other.advance(WINDOW - UNSURE_SECONDS)
    assert (other.guard.ledger.rows, other.may_call("d")) == ({}, False)


def test_restored_reservations_use_up_the_allowance():
    bench = Bench()
    bench.reserve(*pods(6))
    other = bench.restart()
    other.expect(*pods(6))
    other.resolve(*pods(6))
    assert other.want(*pods(10, "more-")) == 4
    other.store()
    assert other.want("one-more") == 0
    other.advance(WINDOW)
    assert other.want("one-more") == 1


def test_reserved_evictions_remain_in_the_record_until_pods_are_known():
    bench = Bench()
    bench.reserve("a", "b")
    other = bench.restart()
    other.want("c")
    assert other.store().reserved[:2] == (("a", "shop"), ("b", "shop"))
    third = other.restart()
    third.resolve()
    assert third.guard.evicted() == 3


def test_a_tripped_guard_is_armed_by_the_next_leader_if_the_cause_is_gone():
    bench = Bench()
    bench.trip()
    bench.guard.latch.cause = "a taint"
    other = bench.restart()
    other.check_guard()
    assert other.guard.latch.is_tripped
    assert other.resolve() is GuardTransition.ARMED


def test_a_tripped_guard_without_a_cause_is_reported_by_the_next_leader():
    bench = Bench(settle_seconds=2)
    bench.expect(*pods(11))
    bench.check_guard()
    other = bench.restart()
    other.expect(*pods(11))
    assert other.resolve() is None
    assert other.advance(2) is GuardTransition.TRIPPED


def test_a_restored_guard_is_checked_when_its_wave_is_complete():
    bench = Bench(settle_seconds=2)
    bench.expect(*pods(11))
    bench.check_guard()
    bench.guard.latch.cause = "a taint"
    other = bench.restart()
    other.expect(*pods(11))
    other.resolve(*pods(11))
    assert other.guard.next_check_in(other.now) == 2


def test_a_guard_without_counts_whose_causes_are_not_known_does_not_have_to_be_checked_all_the_time():
    other = Bench(action="Report").restart(GuardRecord(WALL, "a taint"))
    other.is_known = False
    other.advance(61)
    assert other.guard.next_check_in(other.now, may_arm=False) == 2.0


def test_a_time_of_the_future_is_no_time_of_a_trip():
    other = Bench().restart(GuardRecord(WALL + 1e6, "a taint"))
    assert other.guard.latch.tripped_at == WALL


def test_pods_that_were_counted_are_not_counted_again_by_the_next_leader():
    bench = Bench()
    wave(bench, 20, 6)
    other = bench.restart()
    other.expect(*pods(20, "shop-"))
    other.expect(*pods(2, "bank-"), namespace="bank")
    assert other.guard.latch.is_stored
    other.expect("shop-20")
    other.resolve()
    assert other.guard.latch.counted() == {"shop": 21, "bank": 6}


def test_a_change_of_leader_counts_no_pod_of_many_namespaces_twice():
    """A record names 64 of them. The others together are within half of the allowance: it holds the largest only."""
    bench = Bench(population=1_000, max_percent=60)
    for index in range(140):
        bench.expect(f"other-{index}", f"another-{index}", namespace=f"n{index}")
    bench.trip(400)
    other = bench.restart(decode_guard(encode_guard(bench.guard.record(bench.now))))
    for due in bench.guard.wave.near.values():
        other.guard.expect(due, other.now)
    other.resolve(*bench.guard.wave.near)
    assert other.guard.latch.counted() == bench.guard.latch.counted()
    for one in (bench, other):
        one.advance(NARROW_SECONDS)
        assert one.guard.latch.scope == "shop"


def test_namespaces_that_a_record_does_not_name_count_together():
    bench = Bench()
    record = GuardRecord(WALL, "a taint", ((OTHERS, 6), ("shop", 20)))
    other = bench.restart(record)
    assert other.guard.latch.counted() == {"shop": 20, OTHERS: 6}
    other.expect(*pods(4, "bank-"), namespace="bank")
    other.expect("s")
    other.resolve()
    assert other.guard.latch.counted() == {"shop": 20, "bank": 4, OTHERS: 2}
    other.advance(NARROW_SECONDS)
    assert other.guard.latch.scope == ALL, "others are above half of the allowance"


def seen(bench, uids):
    """State of a guard and of these pods, as other modules read it."""
    guard = bench.guard
    of_pods = [(uid in guard.wave.released, uid in guard.ledger.called, bench.may_call(uid)) for uid in uids]
    held = [guard.holds(namespace) for namespace in ("shop", "bank")]
    numbers = guard.evicted(), guard.expected(), guard.latch.counted(), guard.ledger.used
    return (
        numbers,
        guard.latch.is_tripped,
        guard.latch.scope,
        held,
        of_pods,
        guard.next_check_in(bench.now),
        guard.record(bench.now),
        guard.ledger.wanted,
    )


@pytest.mark.parametrize(
    "record",
    [
        GuardRecord(),
        GuardRecord(WALL - 5, "a taint", (("bank", 4), ("shop", 20)), ((WALL + SLOT, (("bank", 2),)),)),
        GuardRecord(reserved=(("q0", "shop"), ("x", "bank"))),
    ],
)
def test_a_process_that_leads_again_keeps_nothing_of_its_former_term(record):
    """A leader again restores the state of a new process, whatever its former term counted, held and released."""
    former = Bench(wall=WALL)
    former.expect(*pods(3, "r"))
    former.release()
    former.reserve("t0", "t1")
    former.call("t0")
    former.want("w0")
    former.expect(*pods(14, "q"))
    former.expect(*pods(2, "b"), namespace="bank")
    former.check_guard()
    former.forget("b0", "b1")
    former.check_guard()
    assert (former.guard.latch.is_tripped, former.guard.latch.scope) == (True, "shop")
    former.want("w1")
    new = Bench(wall=WALL)
    new.expect(*pods(3, "r"))
    new.expect(*pods(14, "q"))
    uids = [*pods(3, "r"), "t0", "t1", "w0", *pods(14, "q")]
    for bench in (former, new):
        bench.is_known = False
        bench.guard.restore(record, bench.now)
        for uid in [*pods(3, "r"), *pods(14, "q")]:
            bench.expect(uid)
        bench.expect("other", namespace="bank")
        bench.resolve(*uids)
    assert seen(former, uids) == seen(new, uids)


def test_reservations_of_the_former_leader_are_stored_as_evicted():
    """Else the next leader would count it once more from its start."""
    bench = Bench()
    bench.reserve("a")
    other = bench.restart()
    other.resolve()
    other.advance(TIDY_SECONDS)
    assert other.store().reserved == ()
