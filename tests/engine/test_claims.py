"""Claims: the moves between phases that there are, when a call is tried again, and what is known of a pod's claims."""

from typing import Any

import msgspec
import pytest

from engine.rig import limited
from taintwarden.engine.evaluate import Kind, TaintVerdict
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine import Outcome, Phase, Timings
from taintwarden.engine.machine.claims import QUEUED, TRANSITIONS, Call, Claim, Claims, retry_delay
from taintwarden.engine.machine.commands import Evict
from taintwarden.engine.machine.events import Settled
from taintwarden.engine.machine.queues import IllegalTransition, Queues
from taintwarden.engine.model import EvictionSettings, Instant, Method, Pod, Policy, Taint, Tolerations
from taintwarden.engine.spread import Spread

NOW = Instant(1_000.0, 100.0)
SHARED = Interner().pod_class("shop", {}, Tolerations(), grace_seconds=30)
POD = Pod("a", "a", "n1", SHARED, 0.0, 1)
TIMINGS = Timings()
POLICY = limited()
DELETES = {"method": Method.EVICT_THEN_DELETE, "pdb_timeout_seconds": 60}


def claim(given: Policy = POLICY, *, hard_at: float | None = None, due_at: float = 500.0, **eviction: Any) -> Claim:
    if eviction:
        given = msgspec.structs.replace(given, eviction=EvictionSettings(**eviction))
    return Claim.of(POD, TaintVerdict(Taint("sla"), given, Kind.VIOLATED, hard_at=hard_at), due_at)


# -- phases ------------------------------------------------------------------------------------------------------------


PATHS = {
    Phase.WAITING: "",
    Phase.DELAYED: "delay",
    Phase.READY: "ready",
    Phase.BLOCKED: "ready block",
    Phase.CHECKING: "ready check",
    Phase.ASIDE: "aside",
    Phase.IN_FLIGHT: "ready evict",
    Phase.LEAVING: "ready evict leave",
    Phase.REHEARSED: "ready rehearse",
    Phase.ENDED: "end",
}
"""How a claim comes into each phase."""


class Bench:
    """One claim in a phase that it has reached by moves that there are."""

    def __init__(self, phase: Phase) -> None:
        self.queues = Queues(Spread(lambda _: {}))
        self.claim = claim()
        self.queues.wait(self.claim)
        for name in PATHS[phase].split():
            self.move(name)
        assert self.claim.phase is phase

    def move(self, name: str) -> None:
        queues, one = self.queues, self.claim
        {
            "wait": lambda: queues.wait(one),
            "delay": lambda: queues.delay(one),
            "ready": lambda: queues.make_ready(one, POD, NOW),
            "ask again": lambda: queues.ask_again(one),
            "block": lambda: queues.block(one, Refusal("limit", 150.0, "k")),
            "check": lambda: queues.move(one, Phase.CHECKING),
            "aside": lambda: queues.move(one, Phase.ASIDE),
            "evict": lambda: queues.move(one, Phase.IN_FLIGHT),
            "leave": lambda: queues.expect_gone(one, 180.0),
            "rehearse": lambda: queues.move(one, Phase.REHEARSED),
            "end": lambda: queues.move(one, Phase.ENDED),
        }[name]()

    def state(self) -> dict[str, Any]:
        """All that could have changed."""
        queues = self.queues
        return {name: getattr(self.claim, name) for name in Claim.__struct_fields__} | {
            "next": queues.next_in(NOW),
            "first": queues.first_ready(),
            "lanes": queues.ready_lanes(),
            "blocked": {key: list(lines) for key, lines in queues._blocked.items()},
            "positions": dict(queues._positions),
            "waiting": (list(queues._deadlines._current), list(queues._delays._current)),
        }


MOVES = {
    "wait": Phase.WAITING,
    "delay": Phase.DELAYED,
    "ready": Phase.READY,
    "ask again": Phase.READY,
    "block": Phase.BLOCKED,
    "check": Phase.CHECKING,
    "aside": Phase.ASIDE,
    "evict": Phase.IN_FLIGHT,
    "leave": Phase.LEAVING,
    "rehearse": Phase.REHEARSED,
    "end": Phase.ENDED,
}


def is_legal(phase: Phase, move: str) -> bool:
    """Only what is blocked is asked again; every other move is in the table."""
    return MOVES[move] in TRANSITIONS[phase] and (move != "ask again" or phase is Phase.BLOCKED)


PAIRS = [(phase, move) for phase in Phase for move in MOVES]


@pytest.mark.parametrize(("phase", "move"), [pair for pair in PAIRS if is_legal(*pair)])
def test_a_move_in_the_table_is_made(phase, move):
    bench = Bench(phase)
    bench.move(move)
    assert bench.claim.phase is MOVES[move]


@pytest.mark.parametrize(("phase", "move"), [pair for pair in PAIRS if not is_legal(*pair)])
def test_any_other_move_is_an_error_and_changes_nothing(phase, move):
    bench = Bench(phase)
    before = bench.state()
    with pytest.raises(IllegalTransition, match=f"a/p cannot go from {phase.name} to {MOVES[move].name}"):
        bench.move(move)
    assert bench.state() == before


def test_the_table_names_every_phase():
    assert set(TRANSITIONS) == set(Phase)


@pytest.mark.parametrize("phase", QUEUED)
def test_what_nothing_was_done_about_may_begin_anew_be_put_aside_or_end(phase):
    assert {Phase.WAITING, Phase.ASIDE, Phase.ENDED} <= set(TRANSITIONS[phase])


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.ENDED])
def test_nothing_is_remembered_of_a_claim_that_has_ended(phase):
    bench = Bench(phase)
    bench.move("end")
    state = bench.state()
    assert (state["next"], state["first"], state["lanes"]) == (None, None, [])
    assert (state["blocked"], state["positions"], state["waiting"]) == ({}, {}, ([], []))


# -- calls that failed -------------------------------------------------------------------------------------------------


def fail(one: Claim, outcome: Outcome = Outcome.FAILED, now: Instant = NOW, **more: Any) -> float:
    """Returns the seconds until the next try."""
    one.note_failure(Settled("a", outcome, "why", **more), POD, now, TIMINGS)
    return one.not_before - now.monotonic


@pytest.mark.parametrize("outcome", TIMINGS.backoff)
def test_each_outcome_has_its_delays(outcome):
    one, (first, longest) = claim(), TIMINGS.backoff[outcome]
    waits = [fail(one, outcome) for _ in range(12)]
    assert first * 0.8 <= waits[0] <= first * 1.2
    assert longest * 0.8 <= waits[-1] <= longest * 1.2


def test_why_a_call_failed_is_remembered():
    one = claim()
    fail(one, Outcome.REFUSED)
    assert (one.outcome, one.message, one.attempts) == (Outcome.REFUSED, "why", 1)


def test_another_outcome_begins_with_its_first_delay():
    one = claim()
    for _ in range(5):
        fail(one)
    assert fail(one, Outcome.THROTTLED) <= 1.2
    assert one.attempts == 1


@pytest.mark.parametrize(("asked", "waits"), [(40.0, 40.0), (1e9, 300.0)])
def test_what_the_server_asks_for_is_kept_up_to_a_limit(asked, waits):
    assert fail(claim(), Outcome.THROTTLED, retry_after=asked) == waits


def test_what_the_server_asks_for_shortens_no_delay():
    assert fail(claim(), Outcome.MISCONFIGURED, retry_after=1.0) >= 48.0


@pytest.mark.parametrize("outcome", TIMINGS.backoff)
def test_since_when_budgets_block_is_remembered(outcome):
    one = claim()
    fail(one, outcome)
    fail(one, outcome, Instant(1_050.0, 150.0))
    assert one.blocked_since == (100.0 if outcome in (Outcome.BLOCKED, Outcome.MISCONFIGURED) else None)


def test_delays_are_different_for_each_pod_and_the_same_in_each_run():
    delays = [retry_delay((10.0, 80.0), 1, name) for name in "abab"]
    assert delays[:2] == delays[2:]
    assert delays[0] != delays[1]
    assert all(8.0 <= delay <= 12.0 for delay in delays)


# -- deleted instead ---------------------------------------------------------------------------------------------------


def test_a_pod_that_no_budget_blocks_is_not_deleted():
    assert claim(**DELETES).delete_at(POD, NOW) is None


@pytest.mark.parametrize("method", [Method.EVICT, Method.DELETE])
def test_a_pod_is_deleted_instead_only_if_the_policy_wants_it(method):
    one = claim(method=method)
    one.blocked_since = 100.0
    assert one.delete_at(POD, NOW) is None


def test_a_pod_is_deleted_when_budgets_have_blocked_it_for_long_enough():
    one = claim(**DELETES)
    one.blocked_since = 90.0
    assert one.delete_at(POD, NOW) == 150.0


@pytest.mark.parametrize(
    ("hard_at", "deleted_at"), [(1_055.0, 125.0), (1_500.0, 150.0), (1_010.0, 90.0)], ids=["early", "late", "too late"]
)
def test_before_a_hard_deadline_it_is_deleted_early_enough_to_stop_in_order(hard_at, deleted_at):
    one = claim(hard_at=hard_at, **DELETES)
    one.blocked_since = 90.0
    assert one.delete_at(POD, NOW) == deleted_at


def test_it_is_tried_again_no_later_than_it_is_deleted():
    one = claim(**DELETES)
    one.blocked_since = 41.5
    assert fail(one, Outcome.MISCONFIGURED) == 1.5


@pytest.mark.parametrize(("given", "seconds"), [(None, 30), (0, 0), (7, 7)])
def test_the_policys_grace_period_replaces_the_pods_own(given, seconds):
    assert claim(grace_period_seconds=given).grace_seconds(POD) == seconds


# -- the claims on a pod -----------------------------------------------------------------------------------------------

ENFORCED, REHEARSED = limited("e"), limited("r", spec={"mode": "DryRun"})


def claimed(*given: Claim) -> Claims:
    claims = Claims()
    for one in given:
        claims.add(claims.evictee(POD), one)
    return claims


def test_a_pod_has_one_claim_for_each_policy():
    claims = claimed(claim(limited("x")), claim(limited("y")))
    assert list(claims.by_key) == ["a/x", "a/y"]
    assert [one.policy.name for one in claims.evictees["a"].claims] == ["x", "y"]
    assert len(list(claims)) == 2


def test_a_pod_is_forgotten_with_its_last_claim():
    first, second = claim(limited("x")), claim(limited("y"))
    claims = claimed(first, second)
    claims.remove(first)
    assert [one.policy.name for one in claims.evictees["a"].claims] == ["y"]
    claims.remove(second)
    assert (claims.evictees, claims.by_key) == ({}, {})


def test_a_pod_whose_eviction_is_being_asked_for_is_not_forgotten():
    one = claim()
    claims = claimed(one)
    claims.evictees["a"].call = Call(one, Evict(POD, one.verdict), grace_cut=False)
    claims.remove(one)
    assert claims.evictee(POD).call is not None
