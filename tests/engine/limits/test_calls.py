"""Calls in progress: their slots, lanes whose calls fail or have no answer, and a server that fails."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from engine.limits.asking import ask
from engine.rig import limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import EvictionRequest, Freed, Refusal, Settlement
from taintwarden.engine.limits.calls import LANE_SLOW, MANY_SLOW, MAX_LANES, MAX_SLOW, SLOW_SECONDS, Calls
from taintwarden.engine.limits.protocol import EVERY_POLICY
from taintwarden.engine.limits.refusal import CALLS, FAILING, Whom
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Policy, Reclaim, Tolerations, WallTime
from taintwarden.engine.outcomes import CallAnswer

FINE, LANE_FAILS, SERVER_FAILS, NONE = CallAnswer
POLICY = limited()
HARD = msgspec.structs.replace(POLICY, reclaim=Reclaim(120))
SHOP = ("p", "shop")
INTERNER = Interner()


class Bench:
    """Calls for pods of any namespace, on a clock that the test moves."""

    def __init__(self, slots: int = 16) -> None:
        self.freed = Freed()
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

    def answer(self, uid: str, answer: CallAnswer = FINE, asked: float = 0.0) -> None:
        """A call is answered, and ends."""
        self.calls.answered(uid, answer, self.now.monotonic, "why", asked)
        self.calls.settle(uid, Settlement.EVICTED if answer is FINE else Settlement.STAYS, self.now)

    def call(self, answer: CallAnswer, namespace: str = "shop", policy: Policy = POLICY) -> None:
        """A call that is answered at once."""
        self.answer(*self.begin(1, namespace, policy), answer)

    def advance(self, seconds: float = SLOW_SECONDS) -> list[tuple[str, str]]:
        """Returns the lanes of the calls that become slow."""
        self.seconds += seconds
        return list(self.calls.let_time_pass(self.now.monotonic))

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
def test_they_are_busy_when_half_of_the_slots_are_used(calls, is_busy):
    bench = Bench(slots=6)
    bench.begin(calls)
    assert bench.calls.is_busy == is_busy


# -- half of the slots -------------------------------------------------------------------------------------------------


def test_a_lane_has_half_of_the_slots_while_others_could_go():
    bench = Bench(slots=16)
    bench.begin(7)
    assert bench.refuse(others_could_go=True) is None
    bench.begin()
    refused = bench.refuse(others_could_go=True)
    detail = "8 calls of namespace shop are in progress, and others wait"
    assert refused == Refusal(CALLS, None, Whom.LANE, "lane/p/shop", detail)
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
    assert (refused.whom, refused.key, refused.until) == (Whom.LANE, "lane/p/shop", None)
    assert refused.detail == "4 calls of namespace shop have had no answer for a second"
    assert bench.refuse("bank") is None
    bench.answer(uid)
    assert bench.refuse() is None


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
        bench.call(LANE_FAILS)
        waits.append(bench.wait())
        bench.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_before_a_hard_deadline_a_lane_waits_for_at_most_two_seconds():
    bench, waits = Bench(), []
    for _ in range(4):
        bench.call(LANE_FAILS, policy=HARD)
        waits.append(bench.wait(policy=HARD))
        bench.advance(waits[-1])
    assert waits == [1, 2, 2, 2]


def test_a_lane_whose_calls_fail_waits_alone():
    bench = Bench()
    bench.call(LANE_FAILS)
    refused = bench.refuse()
    assert refused == Refusal(FAILING, MonotonicTime(1.0), Whom.LANE, "lane/p/shop", "why")
    assert bench.refuse("bank") is None
    assert bench.refuse(policy=limited("q")) is None, "a lane of another policy in the namespace"
    assert [bench.calls.is_failing(lane) for lane in (SHOP, ("p", "bank"), ("q", "shop"))] == [True, False, False]


@pytest.mark.parametrize("others", [0, 1])
def test_a_try_that_hangs_is_still_the_only_one(others):
    bench = Bench()
    bench.begin()
    bench.call(LANE_FAILS)
    bench.advance(1)
    bench.begin(others)
    assert bench.refuse() == Refusal(FAILING, None, Whom.LANE, "lane/p/shop", "why")


def test_calls_in_the_air_when_a_lane_failed_count_once():
    bench = Bench()
    uids = bench.begin(5)
    bench.advance(0.25)
    for uid in uids:
        bench.answer(uid, LANE_FAILS)
    assert bench.wait() == 1
    bench.advance(1)
    bench.call(LANE_FAILS)
    assert bench.wait() == 2


def test_a_success_ends_the_back_off():
    bench = Bench()
    for _ in range(3):
        bench.call(LANE_FAILS)
        bench.advance(30)
    bench.call(FINE)
    assert not bench.calls.is_failing(SHOP)
    assert bench.refuse() is None
    bench.call(LANE_FAILS)
    assert bench.wait() == 1


def test_a_call_that_was_not_made_ends_no_back_off():
    bench = Bench()
    bench.call(LANE_FAILS)
    bench.advance(1)
    bench.call(NONE)
    assert bench.calls.is_failing(SHOP)
    bench.call(LANE_FAILS)
    assert bench.wait() == 2


@pytest.mark.parametrize("begun_first", [False, True], ids=["forgotten", "in progress"])
def test_only_lanes_with_calls_in_progress_keep_their_failures_when_very_many_fail(begun_first):
    bench = Bench(slots=MAX_LANES)
    bench.call(LANE_FAILS)
    if begun_first:
        bench.begin()
    for lane in range(MAX_LANES):
        bench.call(LANE_FAILS, f"lane-{lane}")
    assert bench.calls.is_failing(SHOP) == begun_first


# -- the server fails --------------------------------------------------------------------------------------------------


def test_an_outage_of_the_server_delays_all_lanes_for_one_to_five_seconds():
    bench, waits = Bench(), []
    for _ in range(5):
        bench.call(SERVER_FAILS)
        waits.append(bench.wait("bank"))
        bench.advance(waits[-1])
    assert waits == [1, 2, 4, 5, 5]


def test_an_outage_refuses_whole_policies():
    bench = Bench()
    bench.call(SERVER_FAILS)
    assert bench.refuse("bank") == Refusal(CALLS, MonotonicTime(1.0), detail="the API server fails")
    assert not bench.calls.is_failing(SHOP), "it is no failure of a lane"


def test_after_the_wait_of_an_outage_one_call_is_the_probe():
    bench = Bench()
    bench.call(SERVER_FAILS)
    bench.advance(1)
    assert bench.refuse("bank") is None
    bench.begin(1, "bank")
    refused = bench.refuse()
    detail = "the API server fails, and one call tries whether it answers again"
    assert refused == Refusal(CALLS, detail=detail)


@pytest.mark.parametrize("answer", [FINE, LANE_FAILS])
def test_an_answer_to_the_probe_ends_the_outage(answer):
    bench = Bench()
    for _ in range(2):
        bench.call(SERVER_FAILS)
        bench.advance(2)
    bench.freed.take()
    bench.call(answer, "bank")
    assert EVERY_POLICY in bench.freed.take()
    bench.begin(3)
    assert bench.refuse() is None
    bench.call(SERVER_FAILS)
    assert bench.wait() == 1, "the next outage begins anew"


def test_a_probe_without_an_answer_for_a_second_makes_way_for_the_next():
    bench = Bench()
    bench.call(SERVER_FAILS)
    bench.advance(1)
    bench.begin(1, "bank")
    assert bench.refuse() is not None
    bench.freed.take()
    bench.advance(1)
    assert EVERY_POLICY in bench.freed.take()
    assert bench.refuse() is None


def test_calls_in_the_air_when_the_server_failed_count_once():
    bench = Bench()
    uids = bench.begin(5)
    bench.advance(0.25)
    for uid in uids:
        bench.answer(uid, SERVER_FAILS)
    assert bench.wait() == 1
    bench.advance(1)
    bench.call(SERVER_FAILS)
    assert bench.wait() == 2


def test_the_server_may_ask_for_a_longer_wait():
    bench = Bench()
    bench.answer(*bench.begin(), SERVER_FAILS, asked=20)
    assert bench.wait("bank") == 20
    bench.advance(20)
    bench.answer(*bench.begin(), SERVER_FAILS, asked=0.5)
    assert bench.wait("bank") == 2, "the back-off is longer"


def test_a_slow_error_of_the_server_is_a_failure_of_its_lane():
    bench = Bench()
    [uid] = bench.hang()
    bench.answer(uid, SERVER_FAILS)
    refused = bench.refuse()
    assert refused == Refusal(FAILING, MonotonicTime(2.0), Whom.LANE, "lane/p/shop", "why")
    assert bench.refuse("bank") is None


def test_a_slow_error_of_the_server_ends_no_outage():
    bench = Bench()
    [hung] = bench.hang()
    bench.call(SERVER_FAILS, "bank")
    bench.answer(hung, SERVER_FAILS)
    assert bench.wait("bank") == 1


# -- pauses ------------------------------------------------------------------------------------------------------------


def test_a_pause_that_the_server_asks_for_delays_all_lanes():
    bench = Bench()
    bench.calls.pause(MonotonicTime(30.0))
    refused = Refusal(CALLS, MonotonicTime(30.0), detail="the API server requests a pause (429)")
    assert [bench.refuse(), bench.refuse("bank"), bench.refuse(policy=HARD)] == [refused] * 3
    bench.advance(30)
    assert bench.refuse() is None


def test_a_shorter_pause_does_not_end_a_longer_one():
    bench = Bench()
    for until in (30.0, 5.0):
        bench.calls.pause(MonotonicTime(until))
    assert bench.wait() == 30


# -- another leader ----------------------------------------------------------------------------------------------------


def test_a_new_leader_knows_of_no_failures():
    bench = Bench()
    bench.call(LANE_FAILS, "bank")
    bench.begin()
    bench.call(SERVER_FAILS)
    bench.freed.take()
    assert bench.calls.forget_failures() == [("p", "bank")]
    assert bench.freed.take() == ["lane/p/bank"]
    assert [bench.refuse("bank"), bench.refuse()] == [None, None]
    assert not bench.calls.is_failing(("p", "bank"))
    assert kept(bench.calls, "bank") == []


# -- whatever happens --------------------------------------------------------------------------------------------------


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
