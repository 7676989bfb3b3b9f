"""Maximum number of pods of a node that terminate at the same time."""

import pytest

from engine.limits.asking import AT_ONCE, ask
from engine.rig import limited
from engine.script import play
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import PerNode
from taintwarden.engine.limits import FreedKeys
from taintwarden.engine.limits.departures import LONGEST_SECONDS, OVERDUE_SECONDS, Departures, key
from taintwarden.engine.limits.refusal import NODE
from taintwarden.engine.model import Instant, Pod, Tolerations

NOW = Instant(1_000.0, 50.0)
SHARED = Interner().pod_class("shop", {}, Tolerations())


def pod(name: str, node: str = "n1") -> Pod:
    return Pod(name, name, node, SHARED, 0.0, 1)


class Bench(Departures):
    """Events of pods on n1, by the names of pods."""

    def __init__(self) -> None:
        super().__init__(FreedKeys())

    def call(self, name: str, node: str = "n1") -> None:
        self.leave(pod(name, node))

    def stops(self, name: str, ahead: str = "30") -> None:
        self.begin(pod(name), NOW.wall + float(ahead), NOW, ["p"])

    def passes(self, name: str) -> None:
        self.begin(pod(name), NOW.wall + 30, NOW)

    def gone(self, name: str) -> None:
        self.end(name, "n1")


COUNTED = {
    "none": ("", "b", 1, True),
    "one that is called for": ("call a", "b", 1, False),
    "as many as may": ("call a", "b", 2, True),
    "and no more": ("call a, call b", "c", 2, False),
    "one of another node": ("call a n2", "b", 1, True),
    "one that stays": ("call a, stay a, stay a", "b", 1, True),
    "one that is called for twice": ("call a, call a, stay a", "b", 1, True),
    "the pod itself, whose call may have been carried out": ("call a", "a", 1, True),
    "one that terminates, whoever made it": ("stops other", "a", 1, False),
    "one that terminates and leaves by no policy": ("passes other", "a", 1, True),
    "one that was not overdue": (f"stops other {0.5 - OVERDUE_SECONDS}", "a", 1, False),
    "one that is overdue": (f"stops other {-OVERDUE_SECONDS}", "a", 1, True),
    "one that is gone": ("stops other, gone other", "a", 1, True),
}


@pytest.mark.parametrize(("happens", "name", "most", "admits"), COUNTED.values(), ids=COUNTED)
def test_pods_that_are_called_or_terminate_count(happens, name, most, admits):
    bench = Bench()
    play(bench, happens)
    assert (bench.refuse(pod(name), most, NOW) is None) == admits


def test_a_refusal_names_the_node():
    bench = Bench()
    bench.call("a")
    refused = bench.refuse(pod("b"), 1, NOW)
    assert (refused.limit, refused.key, refused.until) == (NODE, key("n1"), None)
    assert refused.detail == "1 pod is being evicted from node n1, or terminating there"


def test_a_pod_that_is_gone_frees_its_node_also_beside_a_policy_without_the_limit():
    departures = Departures(freed := FreedKeys())
    departures.configure([limited(), limited("q", per_node=PerNode(1))], AT_ONCE)
    departures.leave(pod("a"))
    departures.gone(pod("a"), AT_ONCE)
    assert freed.take() == [key("n1")]


def test_a_refusal_ends_when_the_first_terminating_pod_is_overdue():
    departures = Departures(FreedKeys())
    departures.begin(pod("slow"), NOW.wall + 60, NOW, ["p"])
    departures.begin(pod("quick"), NOW.wall + 30, NOW, ["p"])
    refused = departures.refuse(pod("a"), 1, NOW)
    assert refused.until == NOW.monotonic + 30 + OVERDUE_SECONDS


def test_a_pod_that_goes_without_having_terminated_changes_nothing():
    departures = Departures(FreedKeys())
    departures.end("quick", "n1")
    departures.begin(pod("foreign"), NOW.wall + 30, NOW, ["p"])
    departures.end("another", "n1")
    assert departures.uids() == [("foreign", "n1")]


def test_a_terminating_pod_reported_twice_counts_once_with_its_newest_time():
    departures = Departures(FreedKeys())
    departures.begin(pod("foreign"), NOW.wall + 300, NOW, ["p"])
    departures.begin(pod("foreign"), NOW.wall + 1, NOW, ["p"])
    refused = departures.refuse(pod("a"), 1, NOW)
    assert refused.until == NOW.monotonic + 1 + OVERDUE_SECONDS
    assert departures.refuse(pod("a"), 2, NOW) is None


@pytest.mark.parametrize("step", [-86_400.0, 86_400.0])
def test_a_step_of_the_wall_clock_makes_no_terminating_pod_overdue(step):
    departures = Departures(FreedKeys())
    departures.begin(pod("foreign"), NOW.wall + 30, NOW, ["p"])
    stepped = Instant(NOW.wall + step, NOW.monotonic + 30)
    refused = departures.refuse(pod("a"), 1, stepped)
    assert refused.until == NOW.monotonic + 30 + OVERDUE_SECONDS
    overdue = Instant(stepped.wall, NOW.monotonic + 30 + OVERDUE_SECONDS)
    assert departures.refuse(pod("a"), 1, overdue) is None


def test_refused_pods_are_retried_when_a_pod_stays_or_is_gone():
    freed = FreedKeys()
    departures = Departures(freed)
    departures.configure([limited(per_node=PerNode(1))], AT_ONCE)
    departures.leave(pod("a"))
    departures.begin(pod("b"), NOW.wall + 30, NOW, ["p"])
    assert freed.take() == []
    departures.stay("a")
    assert freed.take() == [key("n1")]
    departures.end("b", "n1")
    assert freed.take() == [key("n1")]


def test_a_reservation_counts_until_the_pod_stays():
    departures = Departures(FreedKeys())
    asked = ask(pod("a"), limited(per_node=PerNode(1)), now=NOW)
    departures.reserve(asked)
    assert departures.refuse(pod("b"), 1, NOW) is not None
    departures.stay("a")
    assert departures.refuse(pod("b"), 1, NOW) is None


def test_later_events_of_a_terminating_pod_prolong_nothing():
    departures = Departures(FreedKeys())
    departures.begin(pod("a"), NOW.wall + 1e7, NOW, ["p"])
    later = Instant(NOW.wall + 100, NOW.monotonic + 100)
    departures.begin(pod("a"), NOW.wall + 1e7, later)
    refused = departures.refuse(pod("b"), 1, later)
    assert refused.until == NOW.monotonic + LONGEST_SECONDS + OVERDUE_SECONDS
