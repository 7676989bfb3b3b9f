"""Calls in progress: their slots, lanes whose calls fail or have no answer, and a Lease that is not renewed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from engine.limits.asking import ask
from engine.rig import limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import EvictionRequest, FreedKeys, Refusal, Settlement
from taintwarden.engine.limits.calls import (
    LANE_SLOW,
    MANY_SLOW,
    MAX_LANES,
    MAX_PAUSE_SECONDS,
    MAX_SLOW,
    NOT_RENEWED,
    SLOW_SECONDS,
    Calls,
)
from taintwarden.engine.limits.protocol import EVERY_POLICY
from taintwarden.engine.limits.refusal import CALLS, FAILING, RefusalScope
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Tolerations, WallTime
from taintwarden.engine.outcomes import CallAnswer
from taintwarden.engine.policy import Policy, Reclaim

FINE, FAILS, NONE = CallAnswer
POLICY = limited()
HARD = msgspec.structs.replace(POLICY, reclaim=Reclaim(120))
SHOP = ("p", "shop")
INTERNER = Interner()


class Bench:
    """Calls for pods of any namespace, on a clock that the test moves."""

    def __init__(self, slots: int = 16) -> None:
        self.freed = FreedKeys()
        self.calls = Calls(slots, self.freed)
        self.seconds = 0.0
        self._number = 0

    @property
    def now(self) -> Instant:
        return Instant(WallTime(self.seconds), MonotonicTime(self.seconds))

    def request(self, namespace: str = "shop", policy: Policy = POLICY, **more: Any) -> EvictionRequest:
        self._number += 1
        uid = f"pod-{self._number}"
        pod = Pod(uid, uid, "n1", INTERNER.pod_class(namespace, {}, Tolerations()), 0.0, 1)
        return ask(pod, policy, now=self.now, **more)

    def refuse(self, namespace: str = "shop", policy: Policy = POLICY, **more: Any) -> Refusal | None:
        return self.calls.admit(self.request(namespace, policy, **more))

    def begin(self, number: int = 1, namespace: str = "shop", policy: Policy = POLICY) -> list[str]:
        """Calls begin, whether they are admitted or not. Returns the UIDs."""
        requests = [self.request(namespace, policy) for _ in range(number)]
        for request in requests:
            self.calls.reserve(request)
        return [request.pod.uid for request in requests]

    def answer(self, uid: str, answer: CallAnswer = FINE) -> None:
        """A call is answered, and ends."""
        self.calls.answered(uid, answer, self.now.monotonic, "why")
        self.calls.settle(uid, Settlement.ACCEPTED if answer is FINE else Settlement.STAYS, self.now)

    def call(self, answer: CallAnswer, namespace: str = "shop", policy: Policy = POLICY) -> None:
        """A call that is answered at once."""
        self.answer(*self.begin(1, namespace, policy), answer)

    def advance(self, seconds: float = SLOW_SECONDS) -> list[tuple[str, str]]:
        """Returns the lanes of the calls that become slow."""
        self.seconds += seconds
        return list(self.calls.process_time(self.now.monotonic))

    def hang(self, number: int = 1, namespace: str = "shop") -> list[str]:
        """Calls that have no answer for a second. Returns their UIDs."""
        uids = self.begin(number, namespace)
        self.advance()
        return uids

    def wait(self, namespace: str = "shop", policy: Policy = POLICY) -> float:
        """For how many seconds calls of a namespace are refused from now on."""
        refused = self.refuse(namespace, policy)
        if refused is None:
            return 0.0
        return refused.until - self.seconds


# -- slots -------------------------------------------------------------------------------------------------------------


def test_there_are_as_many_calls_as_slots():
    bench = Bench(slots=4)
    bench.begin(3)
    assert bench.refuse() is None
    bench.begin()
    assert bench.refuse("bank") == Refusal(CALLS, detail="4 calls are in progress")


def test_a_call_that_ends_frees_all_policies_if_all_slots_were_used():
    bench = Bench(slots=2)
    first, second = bench.begin(2)
    bench.answer(first)
    assert EVERY_POLICY in bench.freed.take()
    bench.answer(second)
    assert bench.freed.take() == ["lane/p/shop"]


def test_a_rehearsal_needs_no_slot():
    bench = Bench(slots=1)
    bench.begin()
    assert bench.refuse(policy=limited(spec={"mode": "DryRun"})) is None


@pytest.mark.parametrize(("calls", "is_busy"), [(2, False), (3, True), (6, True)])
def test_calls_are_busy_when_half_of_the_slots_are_used(calls, is_busy):
    bench = Bench(slots=6)
    bench.begin(calls)
    assert bench.calls.is_busy == is_busy


# -- half of the slots -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", [1, 8])
def test_a_lane_has_half_of_the_slots_while_others_could_go(half):
    bench = Bench(slots=2 * half + 1)
    bench.begin(half - 1)
    assert bench.refuse(others_could_go=True) is None
    bench.begin()
    refused = bench.refuse(others_could_go=True)
    detail = f"{half} calls of namespace shop are in progress, and others wait"
    assert refused == Refusal(CALLS, None, RefusalScope.LANE, "lane/p/shop", detail)
    assert bench.refuse("bank", others_could_go=True) is None


# -- calls without an answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "is_slow"), [(0.75, False), (1.0, True)])
def test_a_call_without_an_answer_for_a_second_gives_its_slot_back(seconds, is_slow):
    bench = Bench(slots=1)
    bench.begin()
    assert bench.advance(seconds) == ([SHOP] if is_slow else [])
    assert (bench.refuse("bank") is None) == is_slow
    assert len(bench.calls._calls) == 1


def test_the_next_slow_call_is_the_oldest_that_is_not_slow():
    bench = Bench()
    assert bench.calls.next_slow_at() is None
    bench.begin()
    bench.advance(0.25)
    uid, _ = bench.begin(2)
    assert bench.calls.next_slow_at() == 1.0
    bench.advance(0.75)
    assert bench.calls.next_slow_at() == 1.25
    bench.answer(uid)
    bench.advance(0.25)
    assert bench.calls.next_slow_at() is None


def test_a_lane_fails_while_a_call_has_no_answer():
    bench = Bench()
    uid, _ = bench.begin(2)
    assert not bench.calls.is_failing(SHOP)
    bench.advance()
    assert bench.calls.is_failing(SHOP)
    assert not bench.calls.is_failing(("p", "bank"))
    bench.answer(uid)
    assert bench.calls.is_failing(SHOP), "the other has none yet"


def test_a_lane_with_four_slow_calls_begins_no_other():
    bench = Bench(slots=16)
    bench.hang(LANE_SLOW - 1)
    assert bench.refuse() is None
    uid, *_ = bench.hang()
    refused = bench.refuse()
    assert (refused.whom, refused.key, refused.until) == (RefusalScope.LANE, "lane/p/shop", None)
    assert refused.detail == "4 calls of namespace shop have had no answer for a second"
    assert bench.refuse("bank") is None
    bench.answer(uid)
    assert bench.refuse() is None


@pytest.mark.parametrize(("others", "admits"), [(MANY_SLOW - 2, True), (MANY_SLOW - 1, False)])
def test_a_lane_has_one_slow_call_once_a_hundred_are_slow(others, admits):
    bench = Bench(slots=2 * MANY_SLOW)
    for lane in range(others):
        bench.begin(1, f"lane-{lane}")
    bench.hang()
    assert (bench.refuse() is None) is admits


def test_a_call_that_becomes_slow_frees_its_lane_and_all_policies():
    bench = Bench(slots=1)
    bench.begin()
    bench.freed.take()
    bench.advance()
    assert bench.freed.take() == ["lane/p/shop", EVERY_POLICY]


def test_of_one_lane_four_slow_calls_give_their_slots_back():
    """One that hangs alone has all slots; the next ones must not have them all again."""
    bench = Bench(slots=16)
    hung = bench.begin(16)
    bench.advance()
    bench.begin(3, "bank")
    assert bench.refuse("fine") is None
    bench.begin(1, "bank")
    assert bench.refuse("fine").limit == CALLS
    for uid in hung[:4]:
        bench.answer(uid)
    assert bench.refuse("fine") is None
    for uid in hung[4:]:
        bench.answer(uid)
    bench.begin(11, "bank")
    assert bench.refuse("fine") is None
    bench.begin(1, "bank")
    assert bench.refuse("fine").limit == CALLS


@pytest.mark.parametrize("hung", [40, 100])
def test_hung_namespaces_leave_slots_for_others(hung):
    bench = Bench(slots=20)
    for second in range(30):
        for lane in [f"hung-{number}" for number in range(hung)] * 2:
            if bench.refuse(lane, others_could_go=True) is None:
                bench.begin(1, lane)
        bench.advance()
        assert bench.refuse("shop", others_could_go=True) is None, f"in second {second}"
    assert hung > 40 or MANY_SLOW <= len(bench.calls._calls) <= MAX_SLOW


# -- lanes that fail ---------------------------------------------------------------------------------------------------


def test_a_lane_whose_calls_fail_waits_twice_as_long_each_time():
    bench, waits = Bench(), []
    for _ in range(7):
        bench.call(FAILS)
        waits.append(bench.wait())
        bench.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_a_call_in_the_air_counts_when_its_lane_has_recovered_meanwhile():
    bench = Bench()
    for uid, answer in zip(bench.begin(3), (FAILS, FINE, FAILS), strict=True):
        bench.advance(0.1)
        bench.answer(uid, answer)
    assert bench.wait() == 1


def test_before_a_hard_deadline_a_lane_waits_for_at_most_two_seconds():
    bench, waits = Bench(), []
    for _ in range(4):
        bench.call(FAILS, policy=HARD)
        waits.append(bench.wait(policy=HARD))
        bench.advance(waits[-1])
    assert waits == [1, 2, 2, 2]


def test_a_lane_whose_calls_fail_waits_alone():
    bench = Bench()
    bench.call(FAILS)
    refused = bench.refuse()
    assert refused == Refusal(FAILING, MonotonicTime(1.0), RefusalScope.LANE, "lane/p/shop", "why")
    assert bench.refuse("bank") is None
    assert bench.refuse(policy=limited("q")) is None, "a lane of another policy in the namespace"
    assert [bench.calls.is_failing(lane) for lane in (SHOP, ("p", "bank"), ("q", "shop"))] == [True, False, False]


@pytest.mark.parametrize("others", [0, 1])
def test_a_try_that_hangs_is_still_the_only_one(others):
    bench = Bench()
    bench.begin()
    bench.call(FAILS)
    bench.advance(1)
    bench.begin(others)
    assert bench.refuse() == Refusal(FAILING, None, RefusalScope.LANE, "lane/p/shop", "why")


def test_calls_in_the_air_when_a_lane_failed_count_once():
    bench = Bench()
    uids = bench.begin(5)
    bench.advance(0.25)
    for uid in uids:
        bench.answer(uid, FAILS)
    assert bench.wait() == 1
    bench.advance(1)
    bench.call(FAILS)
    assert bench.wait() == 2


def test_a_success_ends_the_back_off():
    bench = Bench()
    for _ in range(3):
        bench.call(FAILS)
        bench.advance(30)
    bench.call(FINE)
    assert not bench.calls.is_failing(SHOP)
    assert bench.refuse() is None
    bench.call(FAILS)
    assert bench.wait() == 1


def test_a_call_that_was_not_made_ends_no_back_off():
    bench = Bench()
    bench.call(FAILS)
    bench.advance(1)
    bench.call(NONE)
    assert bench.calls.is_failing(SHOP)
    bench.call(FAILS)
    assert bench.wait() == 2


@pytest.mark.parametrize("begun_first", [0, 1], ids=["forgotten", "in progress"])
@pytest.mark.parametrize("seconds", [0, SLOW_SECONDS], ids=["quick", "slow"])
def test_only_lanes_with_calls_in_progress_keep_their_failures_when_very_many_fail(begun_first, seconds):
    bench = Bench(slots=MAX_LANES)
    bench.call(FAILS)
    bench.begin(begun_first)
    bench.advance(seconds)
    for lane in range(MAX_LANES):
        bench.call(FAILS, f"lane-{lane}")
    assert bench.calls.is_failing(SHOP) == bool(begun_first)
    assert len(bench.calls._lanes) <= MAX_LANES


# -- the Lease is not renewed ------------------------------------------------------------------------------------------


def test_a_failed_renewal_stops_all_policies_until_one_succeeds():
    bench = Bench()
    bench.calls.note_renewal(bench.now.monotonic, succeeded=False)
    assert bench.refuse("bank") == bench.refuse(policy=HARD) == Refusal(CALLS, detail=NOT_RENEWED)
    bench.advance(60)
    assert bench.refuse() is not None
    bench.calls.note_renewal(bench.now.monotonic, succeeded=True)
    assert EVERY_POLICY in bench.freed.take()
    assert bench.refuse() is None


def test_a_lane_that_failed_is_tried_at_once_when_the_lease_is_renewed_again():
    bench = Bench()
    bench.begin(1, "bank")
    bench.call(FAILS)
    bench.calls.note_renewal(bench.now.monotonic, succeeded=False)
    bench.call(FAILS)
    bench.freed.take()
    bench.calls.note_renewal(bench.now.monotonic, succeeded=True)
    assert "lane/p/shop" in bench.freed.take()
    assert bench.wait() == 0
    bench.call(FAILS)
    assert bench.wait() == 4, "its back-off goes on"


def test_a_renewal_that_succeeds_as_before_ends_no_wait_of_a_lane():
    bench = Bench()
    bench.call(FAILS)
    bench.calls.note_renewal(bench.now.monotonic, succeeded=True)
    assert bench.wait() == 1


@pytest.mark.parametrize("number", [1, 30])
def test_failing_lanes_delay_no_other(number):
    bench = Bench(slots=64)
    for lane in range(number):
        bench.call(FAILS, f"poisoned-{lane}")
    assert bench.refuse("bank") is None


# -- pauses ------------------------------------------------------------------------------------------------------------


def test_a_pause_that_the_server_asks_for_delays_all_lanes():
    bench = Bench()
    bench.calls.pause(30.0, bench.now.monotonic)
    refused = Refusal(CALLS, MonotonicTime(30.0), detail="the API server requests a pause (429)")
    assert [bench.refuse(), bench.refuse("bank"), bench.refuse(policy=HARD)] == [refused] * 3
    bench.advance(30)
    assert bench.refuse() is None


def test_a_shorter_pause_does_not_end_a_longer_one():
    bench = Bench()
    for seconds in (30.0, 5.0):
        bench.calls.pause(seconds, bench.now.monotonic)
    assert bench.wait() == 30


def test_a_pause_lasts_thirty_seconds_at_most():
    bench = Bench()
    bench.calls.pause(3600.0, bench.now.monotonic)
    assert bench.wait() == MAX_PAUSE_SECONDS == 30


# -- another leader ----------------------------------------------------------------------------------------------------


def test_a_new_leader_knows_of_no_failures():
    bench = Bench()
    bench.call(FAILS, "bank")
    bench.begin()
    bench.freed.take()
    assert bench.calls.forget_failures() == [("p", "bank")]
    assert bench.freed.take() == ["lane/p/bank"]
    assert [bench.refuse("bank"), bench.refuse()] == [None, None]
    assert not bench.calls.is_failing(("p", "bank"))
    assert kept(bench.calls, "bank") == []


@pytest.mark.parametrize("seconds", [0, SLOW_SECONDS])
def test_a_new_leader_knows_of_no_failures_of_a_lane_with_a_call_in_progress(seconds):
    bench = Bench()
    [uid] = bench.begin(1, "bank")
    bench.advance(seconds)
    bench.call(FAILS, "bank")
    bench.calls.forget_failures()
    assert bench.refuse("bank") is None
    bench.answer(uid)


# -- random histories --------------------------------------------------------------------------------------------------


@given(
    slots=st.integers(1, 8),
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([None, *CallAnswer]), st.sampled_from([0, 0.5, 1, 6])),
        max_size=60,
    ),
)
def test_every_slot_comes_back(slots, steps):
    """Calls that are admitted, and answered in any order and at any time, use no slot once they have ended."""
    bench, going = Bench(slots), []
    for namespace, answer, seconds in steps:
        if answer is not None and going:
            bench.answer(going.pop(len(steps) % len(going)), answer)
        elif bench.refuse(namespace, others_could_go=True) is None:
            going += bench.begin(1, namespace)
        bench.advance(seconds)
    for uid in going:
        bench.answer(uid, FINE)
    bench.advance(60)
    bench.call(FINE)
    bench.begin(slots - 1)
    assert bench.refuse("d") is None
    bench.begin()
    assert bench.refuse("d") == Refusal(CALLS, detail=f"{slots} calls are in progress")
