"""Claims: the moves between phases that there are, when a call is tried again, and the claims known of a pod."""

from typing import Any

import msgspec
import pytest

from engine.rig import limited
from taintwarden.engine.commands import Evict
from taintwarden.engine.evaluate import Grounds, TaintVerdict, VerdictKind
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.refusal import CALLS, FAILING, RefusalScope
from taintwarden.engine.machine import Phase
from taintwarden.engine.machine.claims import TRANSITIONS, Call, Claim, Claims, limit_of, retry_delay
from taintwarden.engine.machine.queues import IllegalTransition, Queues
from taintwarden.engine.machine.refusals import Refusals
from taintwarden.engine.model import Instant, Pod, Taint, Tolerations
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import EvictionSettings, Policy
from taintwarden.engine.spread import Spread

NOW = Instant(1_000.0, 100.0)
SHARED = Interner().pod_class("shop", {}, Tolerations(), grace_seconds=30)
POD = Pod("a", "a", "n1", SHARED, 0.0, 1)
POLICY = limited()


def grounds(given: Policy, due_at: float = 500.0) -> Grounds:
    return Grounds(given, (TaintVerdict(Taint("sla"), given, VerdictKind.VIOLATED, counts_from=due_at),))


def claim(given: Policy = POLICY, **eviction: Any) -> Claim:
    if eviction:
        given = msgspec.structs.replace(given, eviction=EvictionSettings(**eviction))
    return Claim.of(POD, grounds(given), 0.0)


# -- phases ------------------------------------------------------------------------------------------------------------


PATHS = {
    Phase.WAITING: "",
    Phase.SETTLING: "delay",
    Phase.RETRYING: "back off",
    Phase.READY: "ready",
    Phase.BLOCKED: "ready, block",
    Phase.IN_FLIGHT: "ready, evict",
    Phase.ACCEPTED: "ready, evict, leave",
    Phase.REHEARSED: "ready, rehearse",
    Phase.PAUSED: "pause",
    Phase.ENDED: "end",
}
"""How a claim comes into each phase."""


class Bench:
    """One claim in a phase that it has reached by moves that there are."""

    def __init__(self, phase: Phase) -> None:
        self.queues = Queues(Refusals(), Spread(lambda _: {}), lambda _: False)
        self.claim = claim()
        self.queues.wait(self.claim)
        for name in filter(None, PATHS[phase].split(", ")):
            self.move(name)
        assert self.claim.phase is phase

    def move(self, name: str) -> None:
        queues, one = self.queues, self.claim
        {
            "wait": lambda: self.rest(POLICY),
            "delay": lambda: queues.delay(one),
            "back off": lambda: queues.back_off(one),
            "ready": lambda: queues.make_ready(one, POD, NOW, is_released=False),
            "pause": lambda: self.rest(limited(spec={"paused": True})),
            "ask again": lambda: queues.requeue(one),
            "block": lambda: queues.block(one, Refusal("limit", 150.0, RefusalScope.PODS, "k")),
            "evict": lambda: queues.move(one, Phase.IN_FLIGHT),
            "leave": lambda: queues.expect_leaving(one, 180.0),
            "rehearse": lambda: queues.move(one, Phase.REHEARSED),
            "end": lambda: queues.move(one, Phase.ENDED),
        }[name]()

    def rest(self, given: Policy) -> None:
        """Its policy does not act any more."""
        before = self.claim.grounds
        self.claim.grounds = grounds(given)
        try:
            self.queues.wait(self.claim)
        except IllegalTransition:
            self.claim.grounds = before
            raise

    def state(self) -> dict[str, Any]:
        """All that could have changed."""
        queues = self.queues
        return {name: getattr(self.claim, name) for name in Claim.__struct_fields__} | {
            "next": queues.next_in(NOW),
            "first": queues.first_ready(),
            "lanes": list(queues._lanes),
            "blocked": {key: list(lines) for key, lines in queues._blocked.items()},
            "positions": dict(queues._positions),
            "waiting": (list(queues._deadlines._current), list(queues._delays._current)),
        }


MOVES = {
    "wait": Phase.WAITING,
    "delay": Phase.SETTLING,
    "back off": Phase.RETRYING,
    "ready": Phase.READY,
    "ask again": Phase.READY,
    "block": Phase.BLOCKED,
    "evict": Phase.IN_FLIGHT,
    "leave": Phase.ACCEPTED,
    "rehearse": Phase.REHEARSED,
    "pause": Phase.PAUSED,
    "end": Phase.ENDED,
}


def is_legal(phase: Phase, move: str) -> bool:
    """Only blocked claims are retried; every other move is in the table."""
    return MOVES[move] in TRANSITIONS[phase] and (move != "ask again" or phase is Phase.BLOCKED)


PAIRS = [(phase, move) for phase in Phase for move in MOVES]


def test_a_move_in_the_table_is_made():
    for phase, move in (pair for pair in PAIRS if is_legal(*pair)):
        bench = Bench(phase)
        bench.move(move)
        assert bench.claim.phase is MOVES[move]


def test_any_other_move_is_an_error_and_changes_nothing():
    for phase, move in (pair for pair in PAIRS if not is_legal(*pair)):
        bench = Bench(phase)
        before = bench.state()
        with pytest.raises(IllegalTransition, match=f"a/p cannot go from {phase.name} to {MOVES[move].name}"):
            bench.move(move)
        assert bench.state() == before


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.ENDED])
def test_nothing_is_remembered_of_a_claim_that_has_ended(phase):
    bench = Bench(phase)
    bench.move("end")
    state = bench.state()
    assert (state["next"], state["first"], state["lanes"]) == (None, None, [])
    assert (state["blocked"], state["positions"], state["waiting"]) == ({}, {}, ([], []))


# -- calls that failed -------------------------------------------------------------------------------------------------


def test_delays_are_different_for_each_pod_and_the_same_in_each_run():
    delays = [retry_delay((10.0, 80.0), 1, name) for name in "abab"]
    assert delays[:2] == delays[2:]
    assert delays[0] != delays[1]
    assert all(8.0 <= delay <= 12.0 for delay in delays)


@pytest.mark.parametrize("outcome", [one for one in Outcome if one not in (Outcome.ACCEPTED, Outcome.GONE)])
def test_each_outcome_has_its_delays(outcome):
    first, longest = outcome.row.back_off
    waits = [retry_delay((first, longest), attempts, "a") for attempts in range(1, 13)]
    assert first * 0.8 <= waits[0] <= first * 1.2
    assert longest * 0.8 <= waits[-1] <= longest * 1.2


def test_it_is_postponed_and_never_brought_forward():
    one = claim()
    one.delay_until(120.0)
    one.delay_until(110.0)
    assert one.not_before == 120.0


# -- what it keeps -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("due_at", "waits"), [(400.0, 130.0), (500.0, 0.0), (600.0, 0.0)])
def test_one_that_is_due_earlier_is_part_of_a_new_wave(due_at, waits):
    one = claim()
    one.update_grounds(grounds(POLICY, due_at=due_at), POD, 130.0)
    assert one.not_before == waits


def test_the_lowest_version_of_its_pod_counts():
    """Each report of a pod would ask for a read of its node; after a restore of etcd versions are lower."""
    one, versions = Claim.of(msgspec.structs.replace(POD, resource_version=5), grounds(POLICY), 0.0), []
    for version in (9, 3):
        one.update_grounds(grounds(POLICY), msgspec.structs.replace(POD, resource_version=version), 0.0)
        versions.append(one.version)
    assert versions == [5, 3]


@pytest.mark.parametrize(("due_at", "announced"), [(500.0, True), (501.0, False)])
def test_another_deadline_is_not_announced_yet(due_at, announced):
    one = claim()
    one.announced_in = 1
    one.update_grounds(grounds(POLICY, due_at=due_at), POD, 0.0)
    assert one.announced_in == (1 if announced else None)


@pytest.mark.parametrize(
    ("mode", "rests"),
    [("Enforce", Phase.WAITING), ("DryRun", Phase.WAITING), ("Paused", Phase.PAUSED)],
)
def test_where_it_begins(mode, rests):
    one = claim(limited(spec={"paused": True} if mode == "Paused" else {"mode": mode}))
    assert one.initial_phase is rests


@pytest.mark.parametrize(("limits", "waited_for"), [(["a", "brief"], "a"), (["brief"], "brief")])
def test_what_is_over_in_a_moment_is_what_it_waited_for_only_if_nothing_else_was(limits, waited_for):
    one = claim()
    for limit in limits:
        one.note_refusal(Refusal(limit, is_brief=limit == "brief"), is_reported=False)
    assert one.waited_for == waited_for


def test_ready_again_it_waits_since_it_was_due():
    one = claim()
    one.note_due(60.0)
    one.note_refusal(Refusal("a"), is_reported=True)
    one.note_due(120.0)
    assert (one.waited_for, one.ready_since, one.was_announced) == ("a", 60.0, True)


def test_with_another_deadline_it_has_waited_for_nothing_yet():
    one = claim()
    one.note_due(60.0)
    one.note_refusal(Refusal("a"), is_reported=True)
    one.fail(Outcome.FAILED, "", 70.0, 80.0)
    one.update_grounds(grounds(POLICY, due_at=501.0), POD, 0.0)
    assert (one.waited_for, one.ready_since, one.failing_since) == ("", None, None)
    one.note_due(120.0)
    assert one.waits_since("b", 130.0) == 120.0


def test_a_policy_that_does_not_act_makes_it_wait_for_nothing():
    one = claim()
    one.note_due(60.0)
    one.pause()
    assert one.waits_since("a", 130.0) == 130.0


@pytest.mark.parametrize(
    ("outcomes", "since"),
    [
        ([Outcome.FAILED, Outcome.THROTTLED, Outcome.FAILED], 100.0),
        ([Outcome.FAILED, Outcome.BLOCKED, Outcome.FAILED], 102.0),
        ([Outcome.BLOCKED], 60.0),
    ],
)
def test_calls_fail_since_the_first_that_did(outcomes, since):
    """A budget that allows none is an answer; whichever other way calls end, they fail."""
    one = claim()
    one.note_due(60.0)
    for number, outcome in enumerate(outcomes):
        one.fail(outcome, "", 100.0 + number, 200.0)
    assert one.waits_since("failing", 130.0) == since
    assert one.waits_since("policy-rate", 130.0) == 60.0


@pytest.mark.parametrize(("given", "seconds"), [(None, 30), (0, 0), (7, 7)])
def test_the_policys_grace_period_replaces_the_pods_own(given, seconds):
    assert claim(grace_period_seconds=given).grace_seconds(POD) == seconds


# -- the claims on a pod -----------------------------------------------------------------------------------------------


def claimed(*given: Claim) -> Claims:
    claims = Claims()
    for one in given:
        claims.add(claims.evictee(POD), one)
    return claims


def test_a_pod_is_forgotten_with_its_last_claim():
    first, second = claim(limited("x")), claim(limited("y"))
    claims = claimed(first, second)
    claims.remove(first)
    assert [one.policy.name for one in claims.evictees["a"].claims] == ["y"]
    claims.remove(second)
    assert claims.evictees == {}


def test_a_pod_whose_eviction_is_being_asked_for_is_not_forgotten():
    one = claim()
    claims = claimed(one)
    claims.evictees["a"].call = Call(one, Evict(POD, one.verdict))
    claims.remove(one)
    assert claims.evictee(POD).call is not None


def test_calls_that_all_wait_for_and_failures_of_a_lane_are_limits_of_their_own():
    assert [limit_of(one) for one in (Outcome.THROTTLED, Outcome.POSTPONED, Outcome.DENIED)] == [CALLS, CALLS, FAILING]
