"""Writes to nodes and policies: one at a time under each key, tried again, and forgotten with leadership."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.kept import kept
from engine.rig import limited
from taintwarden.engine.commands import ClearGuardReset, SaveGuard, SaveHistory, Write
from taintwarden.engine.events import WriteOutcome, Written
from taintwarden.engine.machine import Timings
from taintwarden.engine.machine.outbox import Outbox, guard_key, history_key, key_of
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Gates, Instant, Node
from taintwarden.engine.records import GuardRecord

KEY = history_key("n1")
POLICY = limited()


def history(text: str, node: str = "n1") -> SaveHistory:
    return SaveHistory(node, f"uid-{node}", text)


def guard(since: float = 1.0) -> SaveGuard:
    return SaveGuard(POLICY, GuardRecord(since))


class Bench:
    """A leader's outbox, with delays that never reach their longest soon."""

    def __init__(self, *, leading: bool = True) -> None:
        timings = Timings(write_failed=(1.0, 8.0), write_outdated=(0.1, 8.0), write_refused=(100.0, 800.0))
        self.world = World(Gates(), None, 4, timings)
        self.world.leading = leading
        self.outbox = Outbox(self.world)
        self.pass_time(0.0)

    def pass_time(self, seconds: float) -> None:
        at = self.world.now.monotonic + seconds
        self.world.now = Instant(at, at)
        self.outbox.retry_due()

    def put(self, *orders: Write) -> None:
        for order in orders:
            self.outbox.put(order)

    def answer(self, outcome: WriteOutcome = WriteOutcome.DONE, key: str = KEY, version: int = -1) -> bool:
        """End the write in progress."""
        order = self.outbox._entries[key].sent
        assert order is not None
        return self.outbox.write_ended(Written(order, outcome, version))

    def ordered(self) -> list[Any]:
        """Commands since the last call."""
        out, self.world.commands = self.world.commands, []
        return out

    def wait(self) -> float:
        """Seconds until the next try."""
        at = self.outbox.next_at()
        return at - self.world.now.monotonic

    def retry(self) -> list[Any]:
        """Commands at the next try."""
        self.ordered()
        self.pass_time(self.wait())
        return self.ordered()


# -- one write at a time -----------------------------------------------------------------------------------------------


def test_a_follower_writes_nothing():
    bench = Bench(leading=False)
    bench.put(history("a"))
    assert bench.ordered() == []
    assert not bench.outbox.is_waiting(KEY)


def test_the_newest_wanted_value_is_written_when_the_write_in_progress_ends():
    bench = Bench()
    bench.put(history("a"), history("b"), history("c"))
    bench.ordered()
    bench.answer()
    assert bench.ordered() == [history("c")]


def test_a_write_in_progress_is_not_repeated():
    bench = Bench()
    bench.put(history("a"), history("b"), history("a"))
    bench.answer()
    assert bench.ordered() == [history("a")]
    assert not bench.outbox.is_waiting(KEY)


def test_a_withdrawn_value_is_not_written():
    bench = Bench()
    bench.put(history("a"), history("b"))
    bench.outbox.withdraw(KEY)
    bench.answer()
    assert bench.ordered() == [history("a")]


@pytest.mark.parametrize(
    "other",
    [history("a", "n2"), guard(), ClearGuardReset(POLICY)],
    ids=lambda order: type(order).__name__,
)
def test_other_keys_do_not_wait(other):
    bench = Bench()
    bench.put(history("a"), other)
    assert [key_of(one) for one in bench.ordered()] == [KEY, key_of(other)]


# -- answers -----------------------------------------------------------------------------------------------------------


def test_an_answer_to_another_order_of_the_same_content_does_not_count():
    bench = Bench()
    bench.put(history("a"))
    assert not bench.outbox.write_ended(Written(history("a"), WriteOutcome.DONE))
    assert bench.outbox.assumed_stored(KEY, 0) == history("a")


@pytest.mark.parametrize("wanted", [[], [history("b")]], ids=["alone", "followed"])
def test_a_write_to_an_object_that_is_gone_is_forgotten(wanted):
    bench = Bench()
    bench.put(history("a"), *wanted)
    bench.ordered()
    bench.answer(WriteOutcome.GONE)
    assert bench.ordered() == []
    assert not bench.outbox.is_waiting(KEY)


# -- tried again -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "first"), [(WriteOutcome.FAILED, 1.0), (WriteOutcome.OUTDATED, 0.1), (WriteOutcome.REFUSED, 100.0)]
)
def test_a_write_that_did_not_succeed_is_tried_again_later(outcome, first):
    bench = Bench()
    bench.put(history("a"))
    bench.answer(outcome)
    assert first * 0.8 <= bench.wait() <= first * 1.2
    assert bench.outbox.is_waiting(KEY)
    bench.ordered()
    bench.pass_time(bench.wait() - 0.01)
    assert bench.ordered() == []
    bench.pass_time(0.02)
    assert bench.ordered() == [history("a")]


def test_delays_double_up_to_the_longest():
    bench = Bench()
    bench.put(history("a"))
    waits = []
    for _ in range(6):
        bench.answer(WriteOutcome.FAILED)
        waits.append(bench.wait())
        bench.retry()
    for wait, delay in zip(waits, [1, 2, 4, 8, 8, 8], strict=True):
        assert delay * 0.8 <= wait <= delay * 1.2


def test_a_write_that_was_done_begins_again_with_the_first_delay():
    bench = Bench()
    bench.put(history("a"))
    for _ in range(3):
        bench.answer(WriteOutcome.FAILED)
        bench.retry()
    bench.put(history("b"))
    bench.answer()
    bench.answer(WriteOutcome.FAILED)
    assert bench.wait() <= 1.2


def test_another_wanted_value_waits_for_the_same_delay():
    bench = Bench()
    bench.put(history("a"))
    bench.answer(WriteOutcome.REFUSED)
    bench.ordered()
    bench.put(history("b"))
    assert bench.ordered() == []
    assert bench.retry() == [history("b")]


def test_a_write_that_failed_is_followed_by_what_is_wanted_by_then():
    bench = Bench()
    bench.put(history("a"), history("b"))
    bench.answer(WriteOutcome.FAILED)
    assert bench.retry() == [history("b")]


def test_a_try_that_is_not_needed_any_more_is_not_made():
    bench = Bench()
    bench.put(history("a"))
    bench.answer(WriteOutcome.FAILED)
    bench.outbox.withdraw(KEY)
    assert not bench.outbox.is_waiting(KEY)
    assert bench.outbox.next_at() is None


# -- records of guards -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [WriteOutcome.FAILED, WriteOutcome.GONE, WriteOutcome.REFUSED])
def test_a_guards_record_is_not_written_again_as_it_was(outcome):
    bench = Bench()
    bench.put(guard())
    bench.answer(outcome, guard_key("p"))
    assert bench.outbox.is_waiting(guard_key("p"))
    assert bench.retry() == []
    assert not bench.outbox.is_waiting(guard_key("p")), "a new one may be put now"
    bench.put(guard(2.0))
    assert bench.ordered() == [guard(2.0)]


@pytest.mark.parametrize("outcome", [one for one in WriteOutcome if one is not WriteOutcome.DONE])
def test_a_guards_record_is_made_again_after_1_2_and_every_5_seconds_whatever_the_answer(outcome):
    bench, waits = Bench(), []
    for since in range(5):
        bench.put(guard(float(since)))
        bench.answer(outcome, guard_key("p"))
        waits.append(bench.wait())
        bench.retry()
    assert waits == [1, 2, 5, 5, 5]


# -- forgotten ---------------------------------------------------------------------------------------------------------


def test_losing_leadership_forgets_every_write():
    bench = Bench()
    order = history("a")
    bench.put(order, history("b"), history("a", "n2"))
    bench.answer(WriteOutcome.FAILED, history_key("n2"))
    bench.outbox.clear()
    assert not bench.outbox.write_ended(Written(order, WriteOutcome.DONE))
    assert (bench.outbox.next_at(), bench.outbox.assumed_stored(KEY, 0)) == (None, None)


@pytest.mark.parametrize("failed", [False, True])
def test_a_forgotten_write_is_neither_awaited_nor_retried(failed):
    bench = Bench()
    order = history("a")
    bench.put(order)
    if failed:
        bench.answer(WriteOutcome.FAILED)
    bench.outbox.forget(KEY)
    assert not bench.outbox.write_ended(Written(order, WriteOutcome.DONE))
    assert bench.outbox.next_at() is None


# -- what is sent, and what comes back ---------------------------------------------------------------------------------


def test_a_history_carries_the_version_on_which_it_is_based():
    bench = Bench()
    bench.world.cluster.state("n1").node = Node("n1", "uid-n1", {}, (), 41)
    bench.put(history("a"), guard())
    assert [getattr(one, "version", None) for one in bench.ordered()] == [41, None]


def test_a_retry_is_based_on_the_newest_version():
    bench = Bench()
    state = bench.world.cluster.state("n1")
    state.node = Node("n1", "uid-n1", {}, (), 41)
    bench.put(history("a"))
    state.node = Node("n1", "uid-n1", {}, (), 42)
    bench.answer(WriteOutcome.FAILED)
    assert [one.version for one in bench.retry()] == [42]


def test_a_written_value_counts_until_the_stream_has_delivered_it():
    bench = Bench()
    bench.put(history("a"))
    bench.answer(version=50)
    assert bench.outbox.assumed_stored(KEY, 49) == history("a")
    assert bench.outbox.assumed_stored(KEY, 50) is None


def test_a_version_from_before_a_write_does_not_say_that_it_is_overwritten():
    bench = Bench()
    bench.put(history("a"))
    bench.answer(version=50)
    assert [bench.outbox.is_overwritten(Node("n1", "uid-n1", {}, (), version)) for version in (49, 50)] == [False, True]


def test_a_written_value_is_not_written_again_meanwhile():
    bench = Bench()
    bench.put(history("a"))
    bench.answer(version=50)
    bench.ordered()
    bench.put(history("a"))
    assert bench.ordered() == []


@pytest.mark.parametrize("write", [history("a"), guard(), ClearGuardReset(POLICY)], ids=lambda one: type(one).__name__)
def test_a_write_is_valid_while_it_is_in_progress_and_no_longer(write):
    bench = Bench()
    bench.put(write)
    [order] = bench.ordered()
    assert bench.outbox.is_still_valid(order)
    assert not bench.outbox.is_still_valid(replace(order)), "another order of the same content"
    bench.outbox.clear()
    assert not bench.outbox.is_still_valid(order)


def test_nothing_is_remembered_of_a_record_that_is_written():
    bench = Bench()
    bench.put(guard())
    bench.answer(key=guard_key("p"))
    assert kept(bench.outbox, guard_key("p"), without=bench.world) == []


def test_nothing_is_remembered_of_a_write_that_the_stream_has_delivered():
    bench = Bench()
    bench.put(history("a"))
    bench.answer(version=50)
    bench.ordered()
    assert not bench.outbox.is_overwritten(Node("n1", "uid-n1", {}, (), 50, "a"))
    assert kept(bench.outbox, "n1", KEY) == []
