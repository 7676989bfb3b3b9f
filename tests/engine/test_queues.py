"""Lines of pods: who is next, whom a limit holds, and who is let back when it may admit again."""

import msgspec
import pytest

from engine.rig import limited
from taintwarden.engine.evaluate import Kind, TaintVerdict
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine.pending import Lane, Pending, Phase
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.model import Instant, Pod, Policy, Reclaim, Taint, Tolerations
from taintwarden.engine.spread import Spread

NOW = Instant(1_000.0, 100.0)
X, Y = limited("x"), limited("y")


class Bench:
    """Queues with pods by name."""

    def __init__(self) -> None:
        self.queues = Queues(Spread(lambda _: {}))
        self.interner = Interner()
        self.pods: dict[str, Pending] = {}

    def ready(self, *names: str, policy: Policy = X, due_at: float = 0.0, hard_at: float | None = None) -> None:
        """Pods stand ready under a policy."""
        for name in names:
            shared = self.interner.pod_class("shop", {}, Tolerations())
            pod = Pod(name, name, "n1", shared, 0.0, 1)
            verdict = TaintVerdict(Taint("sla"), policy, Kind.VIOLATED, hard_at=hard_at)
            pending = self.pods[name] = Pending(pod, verdict, due_at)
            self.queues.wait(pending)
            self.queues.make_ready(pending, NOW)
            self.queues._waiting.cancel(name)

    def hold(self, *names: str, key: str = "k", until: float | None = None) -> None:
        for name in names:
            self.queues.hold(self.pods[name], Refusal("limit", until, key))

    def go(self, name: str) -> None:
        """It is on its way."""
        self.queues.remove(self.pods[name])
        self.pods[name].phase = Phase.IN_FLIGHT

    def next(self) -> str:
        first = self.queues.first_ready()
        return first.pod.name if first else ""

    def standing(self) -> str:
        """The names of those that stand ready."""
        return "".join(name for name, one in self.pods.items() if one.phase is Phase.READY)


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_a_pod_waits_for_its_deadline_and_its_next_try():
    bench = Bench()
    bench.ready("a", due_at=50.0)
    pending = bench.pods["a"]
    bench.queues.remove(pending)
    pending.retry_at = 70.0
    bench.queues.wait(pending)
    assert bench.queues.next_at() == 70.0
    assert bench.queues.pop_due(69.0) is None
    assert bench.queues.pop_due(70.0) == "a"


def test_a_pod_that_is_taken_out_waits_no_more():
    bench = Bench()
    bench.ready("a")
    bench.queues.remove(bench.pods["a"])
    bench.queues.wait(bench.pods["a"])
    bench.queues.remove(bench.pods["a"])
    assert bench.queues.next_at() is None


def test_a_pod_that_left_is_looked_for_later():
    bench = Bench()
    bench.ready("a")
    bench.queues.remove(bench.pods["a"])
    bench.queues.expect_gone(bench.pods["a"], by=80.0)
    assert bench.pods["a"].phase is Phase.LEAVING
    assert bench.queues.next_at() == 80.0


# -- standing ready ----------------------------------------------------------------------------------------------------


def test_nobody_is_next_where_nobody_stands():
    bench = Bench()
    assert bench.queues.first_ready() is None
    assert bench.queues.ready_lanes() == []


def test_the_first_in_order_is_next_whenever_it_came():
    bench = Bench()
    bench.ready("b", "c", "a")
    assert bench.next() == "a"


def test_the_earliest_of_all_lanes_is_next():
    bench = Bench()
    bench.ready("a", policy=X, due_at=300.0)
    bench.ready("z", policy=Y, due_at=0.0)
    assert bench.next() == "z"


def test_a_hard_deadline_goes_before_every_other():
    bench = Bench()
    bench.ready("a", policy=X, due_at=0.0)
    hard = limited("hard")
    bench.ready("z", policy=_hard(hard), due_at=900.0, hard_at=9_000.0)
    assert bench.next() == "z"


def _hard(policy: Policy) -> Policy:
    return msgspec.structs.replace(policy, reclaim=Reclaim(120))


def test_lanes_may_be_left_out():
    bench = Bench()
    bench.ready("a", policy=X)
    bench.ready("b", policy=Y)
    first = bench.queues.first_ready(besides={Lane(soft=True, policy="x"): None})
    assert first is bench.pods["b"]


def test_a_lane_is_forgotten_with_its_last_pod():
    bench = Bench()
    bench.ready("a")
    bench.go("a")
    assert bench.queues._lanes == {}


# -- held --------------------------------------------------------------------------------------------------------------


def test_a_held_pod_stands_in_nobodys_way():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("a")
    assert bench.next() == "b"
    assert bench.pods["a"].phase is Phase.HELD


def test_a_release_lets_the_first_back():
    bench = Bench()
    bench.ready("c", "a", "b")
    bench.hold("c", "a", "b")
    bench.queues.release("k")
    assert bench.standing() == "a"


def test_each_that_goes_lets_the_next_back():
    bench = Bench()
    bench.ready("a", "b", "c")
    bench.hold("a", "b", "c")
    bench.queues.release("k")
    for name in "abc":
        assert bench.standing() == name
        bench.go(name)
    assert bench.queues._held == {}


def test_one_that_is_refused_again_for_the_same_lets_nobody_back():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("a", "b")
    bench.queues.release("k")
    bench.hold("a")
    assert bench.standing() == ""


def test_one_that_is_refused_for_something_else_lets_the_next_back():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("a", "b")
    bench.queues.release("k")
    bench.hold("a", key="other")
    assert bench.standing() == "b"


def test_one_that_was_not_released_lets_nobody_back_when_it_goes():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("b")
    bench.go("a")
    assert bench.standing() == ""


def test_a_key_that_holds_nobody_releases_nobody():
    bench = Bench()
    bench.ready("a")
    bench.hold("a")
    bench.queues.release("other")
    assert bench.standing() == ""


def test_every_lane_gets_one_back():
    bench = Bench()
    bench.ready("a", "b", policy=X)
    bench.ready("c", "d", policy=Y)
    bench.hold("a", "b", "c", "d")
    bench.queues.release("k")
    assert bench.standing() == "ac"
    bench.go("a")
    assert bench.standing() == "bc", "the next of the same lane"


def test_a_held_pod_that_goes_elsewhere_frees_its_place():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("a", "b")
    bench.queues.remove(bench.pods["a"])
    bench.queues.release("k")
    assert bench.standing() == "b"


def test_a_held_pod_that_changed_is_asked_again_alone():
    bench = Bench()
    bench.ready("a", "b", "c")
    bench.hold("a", "b", "c")
    bench.queues.ask_again(bench.pods["b"])
    assert bench.standing() == "b"
    bench.go("b")
    assert bench.standing() == "", "nobody was released"
    bench.queues.release("k")
    bench.go("a")
    assert bench.standing() == "c", "it is held no more"


def test_a_pod_back_in_line_stands_where_it_stood():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("a")
    bench.queues.release("k")
    assert bench.next() == "a"


# -- by time -----------------------------------------------------------------------------------------------------------


def test_time_releases_one():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("a", "b", until=150.0)
    assert bench.queues.next_release() == 150.0
    bench.queues.release_due(Instant(0.0, 149.0))
    assert bench.standing() == ""
    bench.queues.release_due(Instant(0.0, 150.0))
    assert bench.standing() == "a"


def test_the_latest_refusal_says_when():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("a", until=150.0)
    bench.hold("b", until=170.0)
    assert bench.queues.next_release() == 170.0


@pytest.mark.parametrize("how", ["go", "release"])
def test_a_key_that_holds_nobody_has_no_time(how):
    bench = Bench()
    bench.ready("a")
    bench.hold("a", until=150.0)
    if how == "go":
        bench.queues.remove(bench.pods["a"])
    else:
        bench.queues.release("k")
    assert bench.queues.next_release() is None


def test_those_left_behind_are_released_by_time_again():
    bench = Bench()
    bench.ready("a", "b")
    bench.hold("a", "b", until=150.0)
    bench.queues.release_due(Instant(0.0, 150.0))
    bench.hold("a", until=200.0)
    bench.queues.release_due(Instant(0.0, 200.0))
    assert bench.standing() == "a"
    bench.go("a")
    assert bench.standing() == "b"
