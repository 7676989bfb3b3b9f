"""How many calls are in progress, whose they are, and what failed calls change."""

import pytest

from engine.kept import kept
from engine.limits.asking import ask
from engine.rig import limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import Freed, Refusal, Settlement
from taintwarden.engine.limits.calls import MANY_FAILURES, MAX_FAILING, SLOW_SECONDS, Calls
from taintwarden.engine.limits.protocol import EVERY_POLICY
from taintwarden.engine.limits.refusal import CALLS, THROTTLED
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Policy, Tolerations, WallTime


class Bench:
    """So many slots, and pods of any namespace."""

    def __init__(self, slots: int = 16) -> None:
        self.freed = Freed()
        self.calls = Calls(slots, self.freed)
        self.seconds = 0.0
        self._interner = Interner()
        self._number = 0

    @property
    def now(self) -> Instant:
        return Instant(WallTime(self.seconds), MonotonicTime(self.seconds))

    def refuses(self, namespace: str = "shop", policy: Policy | None = None) -> Refusal | None:
        return self.calls.admit(ask(self._pod("asked", namespace), policy or limited(), now=self.now))

    def _pod(self, name: str, namespace: str) -> Pod:
        return Pod(name, name, "n1", self._interner.pod_class(namespace, {}, Tolerations()), 0.0, 1)

    def begin(self, number: int, namespace: str = "shop") -> list[str]:
        uids = [f"p{self._number + index}" for index in range(number)]
        self._number += number
        for uid in uids:
            self.calls.reserve(ask(self._pod(uid, namespace), limited(), now=self.now))
        return uids

    def end(self, *uids: str) -> None:
        for uid in uids:
            self.calls.settle(uid, Settlement.EVICTED, self.now)

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds
        self.calls.let_time_pass(self.now.monotonic)


def test_one_namespace_has_half_of_the_slots():
    bench = Bench(16)
    bench.begin(7)
    assert bench.refuses() is None
    bench.begin(1)
    refused = bench.refuses()
    assert refused is not None
    assert (refused.limit, refused.key) == (CALLS, "calls/shop")
    assert bench.refuses("bank") is None


def test_all_slots_are_the_most():
    bench = Bench(16)
    bench.begin(8)
    bench.begin(8, "bank")
    refused = bench.refuses("play")
    assert refused == Refusal(CALLS)


def test_a_call_that_ends_makes_room():
    bench = Bench(16)
    first, *_ = bench.begin(8)
    bench.begin(8, "bank")
    bench.freed.take()
    bench.end(first)
    assert bench.freed.take() == ["calls/shop", EVERY_POLICY]
    assert bench.refuses() is None


def test_calls_without_an_answer_hold_no_slot_of_others():
    bench = Bench(16)
    for namespace in ("a", "b"):
        bench.begin(8, namespace)
    assert bench.refuses("shop") is not None
    assert bench.calls.next_slow_at() == SLOW_SECONDS
    bench.pass_time(SLOW_SECONDS)
    assert bench.freed.take() == [EVERY_POLICY]
    assert bench.refuses("shop") is None
    assert bench.calls.in_flight == 16


def test_a_namespace_with_slow_calls_makes_few_further_ones():
    bench = Bench(16)
    bench.begin(2)
    assert bench.refuses() is None
    bench.pass_time(SLOW_SECONDS)
    refused = bench.refuses()
    assert refused is not None
    assert refused.detail == "2 calls of namespace shop are in progress, 2 of them without an answer"


def test_slow_calls_are_bounded_too():
    bench = Bench(4)
    for number in range(12):
        bench.begin(1, f"ns-{number}")
        bench.pass_time(SLOW_SECONDS)
    assert bench.refuses("other") == Refusal(CALLS)


def test_one_slot_is_enough_for_a_namespace():
    assert Bench(1).refuses() is None


def test_a_rehearsal_makes_no_call():
    bench = Bench(1)
    bench.begin(1)
    assert bench.refuses(policy=limited(spec={"mode": "DryRun"})) is None


def test_a_namespace_whose_slow_call_ended_may_make_as_many_as_before():
    bench = Bench(16)
    first, _ = bench.begin(2)
    bench.pass_time(SLOW_SECONDS)
    bench.begin(1)
    bench.end(first)
    refused = bench.refuses()
    assert refused is not None
    assert refused.detail == "2 calls of namespace shop are in progress, 1 of them without an answer"


def test_nothing_is_remembered_of_calls_that_ended():
    bench = Bench()
    uids = bench.begin(4)
    bench.pass_time(SLOW_SECONDS)
    bench.end(*uids, *bench.begin(2))
    assert bench.calls.in_flight == 0
    bench.freed.take()
    assert kept(bench.calls, "shop") == []


# -- what failed calls change -----------------------------------------------------------------------------------------


def test_a_namespace_is_doubtful_from_its_first_failure_to_its_next_success():
    bench = Bench()
    bench.calls.note("shop", failed=True)
    assert (bench.calls.is_doubtful("shop"), bench.calls.is_doubtful("bank")) == (True, False)
    bench.calls.note("shop", failed=False)
    assert not bench.calls.is_doubtful("shop")


def test_after_many_failures_everybody_is():
    bench = Bench()
    for number in range(MANY_FAILURES):
        assert not bench.calls.is_doubtful("shop")
        bench.calls.note(f"ns-{number}", failed=True)
    assert bench.calls.is_doubtful("shop")
    bench.calls.note("bank", failed=False)
    assert not bench.calls.is_doubtful("shop")


def test_so_many_namespaces_are_remembered():
    bench = Bench()
    for number in range(MAX_FAILING):
        bench.calls.note(f"ns-{number}", failed=True)
    bench.calls.note("bank", failed=False)
    assert bench.calls.is_doubtful("ns-0")
    bench.calls.note("shop", failed=True)
    assert not bench.calls.is_doubtful("ns-0")
    assert bench.calls.is_doubtful("shop")


def test_a_new_leader_knows_of_no_failures():
    bench = Bench()
    bench.calls.note("shop", failed=True)
    bench.calls.forget_failures()
    assert not bench.calls.is_doubtful("shop")


@pytest.mark.parametrize(("seconds", "limit"), [(0.0, THROTTLED), (4.9, THROTTLED), (5.0, "")])
def test_a_pause_holds_all_calls(seconds, limit):
    bench = Bench()
    bench.calls.pause(MonotonicTime(5.0))
    bench.calls.pause(MonotonicTime(1.0))
    bench.seconds = seconds
    refused = bench.refuses()
    assert (refused.limit if refused else "") == limit


def test_calls_that_fill_half_the_slots_are_many():
    bench = Bench(16)
    bench.begin(7)
    assert not bench.calls.is_busy
    bench.begin(1)
    assert bench.calls.is_busy


def test_half_of_an_odd_number_of_slots_is_rounded_down():
    bench = Bench(5)
    bench.begin(1)
    assert bench.refuses() is None
    bench.begin(1)
    assert bench.refuses() is not None


def test_a_namespace_has_one_slot_at_least():
    bench = Bench(3)
    assert bench.refuses() is None
    bench.begin(1)
    bench.pass_time(SLOW_SECONDS)
    assert bench.refuses() is not None


def test_a_refusal_says_how_many_calls_are_in_progress():
    bench = Bench(16)
    bench.begin(8)
    refused = bench.refuses()
    assert refused is not None
    assert refused.detail == "8 calls of namespace shop are in progress"


def test_a_refusal_says_how_many_calls_have_no_answer():
    bench = Bench(16)
    first, *_ = bench.begin(4)
    bench.pass_time(SLOW_SECONDS)
    bench.end(first)
    refused = bench.refuses()
    assert refused is not None
    assert refused.detail == "3 calls of namespace shop are in progress, 3 of them without an answer"
