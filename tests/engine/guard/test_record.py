"""What is stored of a guard, and what the next leader restores."""

import pytest

from engine.guard.bench import SLOT, WALL, WINDOW, Bench, pods, wave
from taintwarden.controller.stores.guard_record import read, written
from taintwarden.engine.guard import ALL, NARROW_SECONDS, OTHERS, UNSURE_SECONDS, GuardRecord, Turn


def test_what_changes_is_stored_and_nothing_else():
    bench = Bench()
    assert not bench.guard.has_to_save
    bench.trip()
    bench.guard.cause = "a taint"
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
    assert [other.guard.may_take(uid) for uid in "abc"] == [False] * 3, "they are reserved anew"
    assert other.guard.record(other.now).reserved == ()
    other.resolve("b")
    assert other.guard.evicted() == 2


def test_reserved_evictions_that_are_carried_out_late_count_for_a_minute():
    bench = Bench()
    bench.reserve("a", "b", "c", "d")
    other = bench.restart()
    other.expect("a", "b", "c", "d")
    other.resolve("a", "b", "c", "d")
    assert (other.guard.evicted(), other.guard.may_take("b")) == (0, True)
    other.guard.forget("a")
    other.resolve("b", "c", "d")
    assert other.guard.evicted() == 1
    other.call("b")
    other.resolve("c", "d")
    assert other.guard.evicted() == 2, "counted once"
    assert dict(other.guard.record(other.now).reserved) == {"b": "shop", "c": "shop", "d": "shop"}
    other.advance(UNSURE_SECONDS)
    other.resolve("c", "d")
    other.resolve("d")
    assert (other.guard.evicted(), other.guard.may_take("d")) == (2, False)


def test_reservations_of_before_leave_no_more_room_than_there_is():
    bench = Bench()
    bench.reserve(*pods(6))
    other = bench.restart()
    other.expect(*pods(6))
    other.resolve(*pods(6))
    assert other.want(*pods(10, "more-")) == 4
    other.store()
    assert other.want("one-more") == 0
    other.advance(UNSURE_SECONDS)
    other.resolve(*pods(6))
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
    bench.guard.cause = "a taint"
    other = bench.restart()
    other.look()
    assert other.guard.is_tripped
    assert other.resolve() is Turn.ARMED


def test_a_tripped_guard_without_a_cause_is_reported_by_the_next_leader():
    bench = Bench(settle_seconds=2)
    bench.expect(*pods(11))
    bench.look()
    other = bench.restart()
    other.expect(*pods(11))
    assert other.resolve() is None
    assert other.advance(2) is Turn.TRIPPED


def test_a_time_of_the_future_is_no_time_of_a_trip():
    other = Bench().restart(GuardRecord(WALL + 1e6, "a taint"))
    assert other.guard.tripped_at == WALL


def test_pods_that_were_counted_are_not_counted_again_by_the_next_leader():
    bench = Bench()
    wave(bench, 20, 6)
    other = bench.restart()
    other.expect(*pods(21, "shop-"))
    other.expect(*pods(2, "bank-"), namespace="bank")
    other.resolve()
    assert other.guard.counted() == {"shop": 21, "bank": 6}


def test_a_change_of_leader_counts_no_pod_of_many_namespaces_twice():
    """A record names 64 of them. The others together are within half of the allowance: it holds the largest only."""
    bench = Bench(population=1_000, max_percent=60)
    for index in range(140):
        bench.expect(f"other-{index}", f"another-{index}", namespace=f"n{index}")
    bench.trip(400)
    other = bench.restart(read(written(bench.guard.record(bench.now))))
    for due in bench.guard.near.values():
        other.guard.expect(due, other.now)
    other.resolve(*bench.guard.near)
    assert other.guard.counted() == bench.guard.counted()
    for one in (bench, other):
        one.advance(NARROW_SECONDS)
        assert one.guard.scope == "shop"


def test_namespaces_that_a_record_does_not_name_count_together():
    bench = Bench()
    record = GuardRecord(WALL, "a taint", ((OTHERS, 6), ("shop", 20)))
    other = bench.restart(record)
    assert other.guard.counted() == {"shop": 20, OTHERS: 6}
    other.expect(*pods(4, "bank-"), namespace="bank")
    other.expect("s")
    other.resolve()
    assert other.guard.counted() == {"shop": 20, "bank": 4, OTHERS: 2}
    other.advance(NARROW_SECONDS)
    assert other.guard.scope == ALL, "others are above half of the allowance"


def seen(bench, uids):
    """What a guard says of itself and of these pods."""
    guard = bench.guard
    of_pods = [(uid in guard.released, guard.has_taken(uid), guard.may_take(uid)) for uid in uids]
    held = [guard.holds(namespace) for namespace in ("shop", "bank")]
    numbers = guard.evicted(), guard.expected(), guard.counted(), guard._reserved
    return numbers, guard.is_tripped, guard.scope, held, of_pods, guard.next_look(bench.now), guard.record(bench.now)


@pytest.mark.parametrize(
    "record",
    [
        GuardRecord(),
        GuardRecord(WALL - 5, "a taint", (("bank", 4), ("shop", 20)), ((WALL + SLOT, (("bank", 2),)),)),
        GuardRecord(reserved=(("q0", "shop"), ("x", "bank"))),
    ],
)
def test_a_process_that_leads_again_keeps_nothing_of_its_former_term(record):
    """It restores what a new process does, whatever it counted, held, reserved, released and called before."""
    former = Bench(wall=WALL)
    former.expect(*pods(3, "r"))
    former.release()
    former.reserve("t0", "t1")
    former.call("t0")
    former.want("w0")
    former.expect(*pods(14, "q"))
    former.expect(*pods(2, "b"), namespace="bank")
    former.look()
    former.forget("b0", "b1")
    former.look()
    assert (former.guard.is_tripped, former.guard.scope) == (True, "shop")
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
