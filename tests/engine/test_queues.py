"""Queues of claims: which is next, which a limit blocks, and which is let back when it may admit again."""

from typing import Any

import msgspec
import pytest

from engine.kept import kept
from engine.rig import limited, owner
from engine.script import play
from taintwarden.engine.evaluate import Grounds, TaintVerdict, VerdictKind
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.refusal import BUDGET, FAILING, GUARD, POLICY_RATE, VIEW, RefusalScope
from taintwarden.engine.machine import Phase
from taintwarden.engine.machine.claims import Claim
from taintwarden.engine.machine.queues import LANES_AT_ONCE, MAX_TURNS, OTHERS_AFTER_SECONDS, Queues
from taintwarden.engine.machine.refusals import Lane, LaneGroup, Refusals
from taintwarden.engine.model import Instant, Pod, SpreadConstraint, Taint, Tolerations
from taintwarden.engine.policy import OrderBy, Policy, Reclaim
from taintwarden.engine.selectors import LabelSelector
from taintwarden.engine.spread import Spread

NOW = Instant(1_000.0, 100.0)
X, Y = limited("x"), limited("y")
OF_X = LaneGroup(soft=True, policy="x")


class Bench:
    """Queues with one claim on each pod, by the pod's name."""

    def __init__(self) -> None:
        self.failing: set[tuple[str, str]] = set()
        self.waiting = Refusals()
        self.queues = Queues(self.waiting, Spread(lambda _: {}), lambda lane: lane in self.failing)
        self.interner = Interner()
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, Claim] = {}

    def wait(
        self,
        *names: str,
        policy: Policy = X,
        due_at: float = 0.0,
        hard_at: float | None = None,
        namespace: str = "shop",
    ) -> None:
        """Pods have to leave under a policy."""
        for name in names:
            shared = self.interner.pod_class(namespace, {}, Tolerations())
            pod = self.pods.setdefault(name, Pod(name, name, "n1", shared, 0.0, 1))
            given = policy if hard_at is None else msgspec.structs.replace(policy, reclaim=Reclaim(0))
            verdict = TaintVerdict(Taint("sla"), given, VerdictKind.VIOLATED, counts_from=due_at, hard_at=hard_at)
            self.claims[name] = Claim.of(pod, Grounds(given, (verdict,)), 0.0)
            self.queues.wait(self.claims[name])

    def ready(self, *names: str, now: Instant = NOW, **more: Any) -> None:
        """Pods stand ready."""
        self.wait(*names, **more)
        for name in names:
            self.queues.make_ready(self.claims[name], self.pods[name], now, is_released=False)

    def block(self, *names: str, key: str = "k", until: float | None = None) -> None:
        for name in names:
            self.queues.block(self.claims[name], Refusal("limit", until, RefusalScope.PODS, key))

    def call(self, name: str) -> None:
        """The eviction of a pod is in progress."""
        self.queues.move(self.claims[name], Phase.IN_FLIGHT)

    def ready_of_y(self, *names: str) -> None:
        self.ready(*names, policy=Y)

    def block_otherwise(self, name: str) -> None:
        self.block(name, key="other")

    def release(self, key: str) -> None:
        self.queues.release(key)

    def ask_again(self, name: str) -> None:
        self.queues.requeue(self.claims[name])

    def end(self, name: str) -> None:
        self.queues.move(self.claims[name], Phase.ENDED)

    def next(self) -> str:
        first = self.queues.first_ready()
        return first.uid if first else ""

    def standing(self) -> str:
        """The names of those that stand ready."""
        return "".join(name for name, one in self.claims.items() if one.phase is Phase.READY)


def at(wall: float, monotonic: float = 100.0) -> Instant:
    return Instant(wall, monotonic)


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_a_claim_waits_for_its_deadline_by_the_wall_clock():
    bench = Bench()
    bench.wait("a", due_at=1_050.0)
    assert bench.queues.next_in(NOW) == 50.0
    assert bench.queues.pop_due(at(1_049.0, 9_999.0)) is None
    assert bench.queues.pop_due(at(1_050.0)) == "a/x"


def test_a_delayed_claim_waits_by_the_monotonic_clock():
    bench = Bench()
    bench.wait("a")
    bench.claims["a"].settles_at = 120.0
    bench.queues.delay(bench.claims["a"])
    assert bench.queues.next_in(NOW) == 20.0
    assert bench.queues.pop_due(at(9_999.0, 119.0)) is None
    assert bench.queues.pop_due(at(0.0, 120.0)) == "a/x"


# -- standing ready ----------------------------------------------------------------------------------------------------


def test_a_hard_deadline_goes_before_every_other():
    bench = Bench()
    bench.ready("a", policy=X, due_at=0.0)
    hard = limited("hard")
    bench.ready("z", policy=_hard(hard), due_at=900.0, hard_at=9_000.0)
    assert bench.next() == "z"


def _hard(policy: Policy) -> Policy:
    return msgspec.structs.replace(policy, reclaim=Reclaim(120))


def test_a_retry_comes_after_all_first_calls_of_its_lane():
    bench = Bench()
    bench.wait("a", due_at=0.0)
    bench.ready("b", due_at=6_000.0)
    bench.claims["a"].attempts = 1
    bench.queues.make_ready(bench.claims["a"], bench.pods["a"], NOW, is_released=False)
    assert bench.next() == "b"


def test_released_pods_have_a_lane_of_their_own():
    bench = Bench()
    bench.ready("a")
    bench.wait("b")
    bench.queues.make_ready(bench.claims["b"], bench.pods["b"], NOW, is_released=True)
    assert bench.queues.first_ready(excluded={OF_X: None}) is bench.claims["b"]


# -- turns -------------------------------------------------------------------------------------------------------------


def turns(bench: Bench, number: int) -> str:
    """Owners of the pods that are called, in order, as the first letters of the names."""
    gone = ""
    for _ in range(number):
        claim = bench.queues.first_ready()
        if claim is None:
            break
        lane = bench.queues.lane_of(claim)
        bench.call(claim.uid)
        bench.queues.note_turn(lane, failing=lane.key in bench.failing)
        gone += lane.namespace
    return gone


def test_the_next_turn_has_the_lane_that_had_its_last_one_longest_ago():
    bench = Bench()
    bench.ready(*"1234", namespace="a")
    bench.ready(*"5678", namespace="b")
    assert turns(bench, 3) == "aba"
    bench.ready("9", namespace="c")
    assert turns(bench, 3) == "cba"


def test_a_lane_that_was_empty_has_not_forgotten_its_turn():
    """Otherwise a namespace whose pods come one at a time would always be first."""
    bench = Bench()
    bench.ready(*"123", namespace="a")
    bench.ready("x", namespace="b")
    assert turns(bench, 2) == "ab"
    bench.ready("y", namespace="b")
    assert turns(bench, 2) == "ab"


def test_lanes_that_fail_get_a_quarter_of_the_turns_while_others_could_go():
    bench = Bench()
    bench.failing = {("x", "bad")}
    bench.ready(*[f"bad{number}" for number in range(10)], namespace="bad")
    bench.ready(*[f"good{number}" for number in range(10)], namespace="good")
    assert turns(bench, 8) == 2 * (3 * "good" + "bad")
    assert turns(bench, 20).endswith("bad" * 4), "where no other could go"


def test_a_lane_that_fails_gets_no_more_turns_than_each_of_the_others():
    bench = Bench()
    bench.failing = {("x", "z")}
    for namespace in "abcdefghiz":
        bench.ready(*[f"{namespace}{number}" for number in range(5)], namespace=namespace)
    assert turns(bench, 20).count("z") == 2


def test_lanes_that_fail_take_turns():
    bench = Bench()
    bench.failing = {("x", "a"), ("x", "b")}
    bench.ready(*"123", namespace="a")
    bench.ready(*"456", namespace="b")
    assert turns(bench, 6) == "ababab"


@pytest.mark.parametrize("failing", ["hard", "x"])
def test_a_hard_deadline_goes_first_whichever_lane_fails(failing):
    bench = Bench()
    bench.failing = {(failing, "soon"), (failing, "other")}
    bench.ready(*"abcd", namespace="other")
    bench.ready(*"wxyz", policy=_hard(limited("hard")), hard_at=9_000.0, namespace="soon")
    assert turns(bench, 5) == 4 * "soon" + "other"


def test_a_lane_that_begins_to_fail_moves_behind_the_others():
    bench = Bench()
    bench.ready(*"12", namespace="a")
    bench.ready(*"34", namespace="b")
    bench.failing = {("x", "a")}
    bench.queues.update_turns(("x", "a"))
    assert turns(bench, 2) == "bb"


def test_a_parked_lane_has_no_turn_until_it_is_released():
    bench = Bench()
    bench.ready(*"12", namespace="a")
    bench.ready("3", namespace="b")
    bench.queues.park_lane(Lane(OF_X, "a"), Refusal("limit", None, RefusalScope.LANE, "k"))
    assert turns(bench, 3) == "b"
    bench.queues.release("k")
    assert turns(bench, 3) == "aa"


def test_nothing_is_kept_of_a_parked_lane_whose_pods_are_gone():
    bench = Bench()
    bench.ready("1", namespace="a")
    bench.queues.park_lane(Lane(OF_X, "a"), Refusal("limit", 150.0, RefusalScope.LANE, "k"))
    bench.end("1")
    queues = bench.queues
    assert (bench.waiting.lanes, queues._turns, queues.next_release_in(NOW)) == ({}, {}, None)
    assert kept(bench.waiting, "k") == []


def test_a_lane_whose_pods_are_gone_does_not_take_the_time_of_others_with_it():
    bench = Bench()
    for name in "ab":
        bench.ready(name, namespace=name)
        bench.queues.park_lane(Lane(OF_X, name), Refusal("limit", 150.0, RefusalScope.LANE, "k"))
    bench.end("a")
    assert bench.queues.next_release_in(NOW) == 50.0
    bench.queues.release_due(150.0)
    assert bench.next() == "b"


# -- blocked -----------------------------------------------------------------------------------------------------------

BLOCKED = {
    "a blocked claim delays no other": ("ready a b, block a", "b"),
    "a release lets the first back": ("ready c a b, block c a b, release k", "a"),
    "each that goes lets the next back": ("ready a b c, block a b c, release k, call a", "b"),
    "until none is left": ("ready a b c, block a b c, release k, call a, call b", "c"),
    "one that is refused again lets none back": ("ready a b, block a b, release k, block a", ""),
    "one that is refused otherwise lets the next back": (
        "ready a b, block a b, release k, block_otherwise a",
        "b",
    ),
    "one that was not released lets none back when it goes": ("ready a b, block b, call a", ""),
    "a key that blocks none releases none": ("ready a, block a, release other", ""),
    "one that ends frees its place": ("ready a b, block a b, end a, release k", "b"),
    "one whose pod changed is asked again alone": ("ready a b c, block a b c, ask_again b", "b"),
    "which releases none": ("ready a b c, block a b c, ask_again b, call b", ""),
    "and it is blocked no more": ("ready a b c, block a b c, ask_again b, call b, release k, call a", "c"),
    "every lane gets one back": ("ready a b, ready_of_y c d, block a b c d, release k", "ac"),
    "one that goes frees the next of its lane": ("ready a b, ready_of_y c d, block a b c d, release k, call a", "bc"),
}


@pytest.mark.parametrize(("happens", "standing"), BLOCKED.values(), ids=BLOCKED)
def test_claims_are_ready_unless_blocked(happens, standing):
    bench = Bench()
    play(bench, happens)
    assert bench.standing() == standing


def test_nothing_is_kept_of_a_key_whose_claims_have_gone():
    bench = Bench()
    bench.ready("a", "b")
    bench.block("a", "b")
    bench.queues.release("k")
    for name in "ab":
        bench.call(name)
    assert kept(bench.queues, "k") == []


NAMED = {
    "its own before that of its lane": (Refusal(BUDGET), {"lane": FAILING}, BUDGET),
    "that of its lane before one that is over in a moment": (Refusal(VIEW, is_brief=True), {"lane": FAILING}, FAILING),
    "what holds all for long before its own": (Refusal(BUDGET), {"policy": GUARD}, GUARD),
    "its own before a rate of all": (Refusal(BUDGET), {"policy": POLICY_RATE}, BUDGET),
    "that of its lane, when it is asked again": (None, {"lane": FAILING}, FAILING),
    "that of all before that of its lane": (None, {"policy": POLICY_RATE, "lane": FAILING}, POLICY_RATE),
}


@pytest.mark.parametrize(("own", "others", "named"), NAMED.values(), ids=NAMED)
def test_which_refusal_is_the_cause_to_name(own, others, named):
    bench = Bench()
    bench.ready("a")
    lane = bench.queues.lane_of(bench.claims["a"])
    bench.queues.block(bench.claims["a"], refused := own or Refusal(BUDGET))
    bench.claims["a"].note_refusal(refused, is_reported=False)
    if own is None:
        bench.ask_again("a")
    if "lane" in others:
        bench.waiting.hold_lane(lane, Refusal(others["lane"], whom=RefusalScope.LANE))
    bench.waiting.hold_policies({lane.group: Refusal(others["policy"])} if "policy" in others else {})
    assert bench.waiting.of_claim(bench.claims["a"], lane).limit == named


# -- by time -----------------------------------------------------------------------------------------------------------


def test_time_releases_one():
    bench = Bench()
    bench.ready("a", "b")
    bench.block("a", "b", until=150.0)
    assert bench.queues.next_release_in(NOW) == 50.0
    bench.queues.release_due(149.0)
    assert bench.standing() == ""
    bench.queues.release_due(150.0)
    assert bench.standing() == "a"


def test_the_latest_refusal_says_when():
    bench = Bench()
    bench.ready("a", "b")
    bench.block("a", until=150.0)
    bench.block("b", until=170.0)
    assert bench.queues.next_release_in(NOW) == 70.0


@pytest.mark.parametrize("how", ["go", "release"])
def test_a_key_that_blocks_no_claim_has_no_time(how):
    bench = Bench()
    bench.ready("a")
    bench.block("a", until=150.0)
    if how == "go":
        bench.end("a")
    else:
        bench.queues.release("k")
    assert bench.queues.next_release_in(NOW) is None


def test_time_releases_lanes_that_may_have_a_turn_before_parked_ones():
    bench = Bench()
    parked = [f"ns{number}" for number in range(LANES_AT_ONCE)]
    for namespace in parked:
        bench.ready(f"{namespace}-a", f"{namespace}-b", namespace=namespace)
        bench.block(f"{namespace}-a", until=150.0)
        bench.queues.park_lane(Lane(OF_X, namespace), Refusal("limit", None, RefusalScope.LANE, "other"))
    bench.ready("last", namespace="able")
    bench.queues.note_turn(Lane(OF_X, "able"), failing=False)
    bench.block("last", until=150.0)
    bench.queues.release_due(150.0)
    assert bench.next() == "last"


def test_time_releases_sixteen_lanes_at_once_and_the_others_a_second_later():
    bench = Bench()
    names = [f"{number:02}" for number in range(LANES_AT_ONCE + 1)]
    for name in names:
        bench.ready(name, namespace=name)
        bench.block(name, until=150.0)
    bench.queues.release_due(150.0)
    assert bench.standing() == "".join(names[:-1])
    assert bench.queues.next_release_in(at(0.0, 150.0)) == OTHERS_AFTER_SECONDS
    bench.queues.release_due(151.0)
    assert bench.standing() == "".join(names)


def test_of_more_lanes_than_are_tracked_the_oldest_turns_are_forgotten():
    bench = Bench()
    for number in range(MAX_TURNS + 1):
        bench.queues.note_turn(Lane(OF_X, f"{number}"), failing=False)
    bench.ready("never", namespace="never had one")
    bench.ready("oldest", namespace="0")
    assert bench.next() == "oldest"


# -- the spread of a workload ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("revisions", "order", "first"),
    [
        (("1", "1"), (OrderBy.PRIORITY, OrderBy.TOPOLOGY_SPREAD), "b"),
        (("1", "2"), (OrderBy.PRIORITY, OrderBy.TOPOLOGY_SPREAD), "a"),
        (("1", "1"), (OrderBy.PRIORITY,), "a"),
    ],
)
def test_a_pod_leaves_before_its_place_if_its_domain_has_more_pods_of_its_revision(revisions, order, first):
    bench = Bench()
    spread = (SpreadConstraint("kubernetes.io/hostname", LabelSelector()),)
    bench.queues = Queues(Refusals(), counted := Spread(lambda node: {"kubernetes.io/hostname": node}), lambda _: False)
    for name, revision in zip("abc", (revisions[0], revisions[1], revisions[1]), strict=True):
        labels = {"pod-template-hash": revision}
        shared = bench.interner.pod_class("shop", labels, Tolerations(), spread=spread, owner=owner())
        bench.pods[name] = Pod(name, name, "n1" if name == "a" else "n2", shared, 0.0, 1)
        counted.pod_added(bench.pods[name])
    given = msgspec.structs.replace(X, eviction=msgspec.structs.replace(X.eviction, order=order))
    bench.ready(*"abc", policy=given)
    assert bench.next() == first
