"""How many pods of a node may be on their way out."""

import pytest

from engine.kept import kept
from engine.limits.asking import AT_ONCE, ask
from engine.rig import limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import Freed, Settlement
from taintwarden.engine.limits.departures import LONGEST_SECONDS, OVERDUE_SECONDS, Departures, key
from taintwarden.engine.limits.refusal import NODE
from taintwarden.engine.model import Instant, Pod, Tolerations

NOW = Instant(1_000.0, 50.0)
SHARED = Interner().pod_class("shop", {}, Tolerations())


def pod(name: str, node: str = "n1") -> Pod:
    return Pod(name, name, node, SHARED, 0.0, 1)


def test_an_empty_node_lets_a_pod_go():
    assert Departures(Freed()).refuse(pod("a"), 1, NOW) is None


def test_a_pod_that_was_asked_for_counts():
    departures = Departures(Freed())
    departures.leave(pod("a"))
    refused = departures.refuse(pod("b"), 1, NOW)
    assert refused is not None
    assert (refused.limit, refused.key, refused.until) == (NODE, key("n1"), None)
    assert refused.detail == "1 pods of node n1 are being evicted or terminating"


def test_as_many_go_as_may():
    departures = Departures(Freed())
    departures.leave(pod("a"))
    assert departures.refuse(pod("b"), 2, NOW) is None
    departures.leave(pod("b"))
    assert departures.refuse(pod("c"), 2, NOW) is not None


def test_nodes_do_not_mind_each_other():
    departures = Departures(Freed())
    departures.leave(pod("a"))
    assert departures.refuse(pod("b", "n2"), 1, NOW) is None


def test_a_pod_that_stays_counts_no_more():
    departures = Departures(Freed())
    departures.leave(pod("a"))
    departures.stay("a")
    departures.stay("a")
    assert departures.refuse(pod("b"), 1, NOW) is None


def test_asking_twice_counts_once():
    departures = Departures(Freed())
    departures.leave(pod("a"))
    departures.leave(pod("a"))
    departures.stay("a")
    assert departures.refuse(pod("b"), 1, NOW) is None


def test_a_pod_whose_call_may_have_been_carried_out_is_not_in_its_own_way():
    departures = Departures(Freed())
    departures.leave(pod("a"))
    assert departures.refuse(pod("a"), 1, NOW) is None


def test_who_is_leaving_is_known_until_it_stays():
    departures = Departures(Freed())
    assert not departures.is_leaving("a")
    departures.leave(pod("a"))
    assert departures.is_leaving("a")
    departures.stay("a")
    assert not departures.is_leaving("a")


def test_a_terminating_pod_counts_whoever_asked_for_it():
    departures = Departures(Freed())
    departures.terminating("foreign", "n1", NOW.wall + 30, NOW)
    assert departures.refuse(pod("a"), 1, NOW) is not None


def test_a_refusal_ends_when_the_first_terminating_pod_is_overdue():
    departures = Departures(Freed())
    departures.terminating("slow", "n1", NOW.wall + 60, NOW)
    departures.terminating("quick", "n1", NOW.wall + 30, NOW)
    refused = departures.refuse(pod("a"), 1, NOW)
    assert refused is not None
    assert refused.until == NOW.monotonic + 30 + OVERDUE_SECONDS


@pytest.mark.parametrize(("ago", "counts"), [(OVERDUE_SECONDS - 0.5, True), (OVERDUE_SECONDS, False), (900.0, False)])
def test_an_overdue_pod_holds_up_nobody(ago, counts):
    departures = Departures(Freed())
    departures.terminating("stuck", "n1", NOW.wall - ago, NOW)
    assert (departures.refuse(pod("a"), 1, NOW) is not None) == counts


def test_a_terminating_pod_that_is_gone_counts_no_more():
    departures = Departures(Freed())
    departures.terminating("foreign", "n1", NOW.wall + 30, NOW)
    departures.terminating("foreign", "n1", None, NOW)
    assert departures.refuse(pod("a"), 1, NOW) is None


def test_a_pod_that_goes_without_having_terminated_changes_nothing():
    departures = Departures(Freed())
    departures.terminating("quick", "n1", None, NOW)
    departures.terminating("foreign", "n1", NOW.wall + 30, NOW)
    departures.terminating("another", "n1", None, NOW)
    assert departures.uids() == [("foreign", "n1")]


def test_a_terminating_pod_told_of_twice_counts_once_with_its_newest_time():
    departures = Departures(Freed())
    departures.terminating("foreign", "n1", NOW.wall + 300, NOW)
    departures.terminating("foreign", "n1", NOW.wall + 1, NOW)
    refused = departures.refuse(pod("a"), 1, NOW)
    assert refused is not None
    assert refused.until == NOW.monotonic + 1 + OVERDUE_SECONDS
    assert departures.refuse(pod("a"), 2, NOW) is None


@pytest.mark.parametrize("step", [-86_400.0, 86_400.0])
def test_a_step_of_the_wall_clock_makes_no_terminating_pod_overdue(step):
    departures = Departures(Freed())
    departures.terminating("foreign", "n1", NOW.wall + 30, NOW)
    stepped = Instant(NOW.wall + step, NOW.monotonic + 30)
    refused = departures.refuse(pod("a"), 1, stepped)
    assert refused is not None
    assert refused.until == NOW.monotonic + 30 + OVERDUE_SECONDS
    overdue = Instant(stepped.wall, NOW.monotonic + 30 + OVERDUE_SECONDS)
    assert departures.refuse(pod("a"), 1, overdue) is None


def test_who_is_refused_is_asked_again_when_a_pod_stays_or_is_gone():
    freed = Freed()
    departures = Departures(freed)
    departures.configure([limited(node_max_concurrent=1)], AT_ONCE)
    departures.leave(pod("a"))
    departures.terminating("b", "n1", NOW.wall + 30, NOW)
    assert freed.take() == []
    departures.stay("a")
    assert freed.take() == [key("n1")]
    departures.terminating("b", "n1", None, NOW)
    assert freed.take() == [key("n1")]


@pytest.mark.parametrize(
    ("settlement", "counts"), [(Settlement.EVICTED, True), (Settlement.UNKNOWN, True), (Settlement.STAYS, False)]
)
def test_a_reservation_counts_unless_the_pod_stays(settlement, counts):
    departures = Departures(Freed())
    asked = ask(pod("a"), limited(node_max_concurrent=1), now=NOW)
    departures.reserve(asked)
    departures.settle("a", settlement, AT_ONCE)
    assert (departures.refuse(pod("b"), 1, NOW) is not None) == counts


def test_nothing_is_remembered_of_those_that_are_gone():
    freed = Freed()
    departures = Departures(freed)
    departures.leave(pod("a"))
    departures.terminating("a", "n1", NOW.wall, NOW)
    departures.stay("a")
    departures.terminating("a", "n1", None, NOW)
    freed.take()
    assert kept(departures, "a") == []
    assert kept(departures, "n1") == []


def test_a_pod_that_may_stop_for_years_counts_for_ten_minutes():
    departures = Departures(Freed())
    departures.terminating("a", "n1", NOW.wall + 1e7, NOW)
    refused = departures.refuse(pod("b"), 1, NOW)
    assert refused is not None
    assert refused.until == NOW.monotonic + LONGEST_SECONDS + OVERDUE_SECONDS


def test_later_events_of_a_terminating_pod_prolong_nothing():
    departures = Departures(Freed())
    departures.terminating("a", "n1", NOW.wall + 1e7, NOW)
    later = Instant(NOW.wall + 100, NOW.monotonic + 100)
    departures.terminating("a", "n1", NOW.wall + 1e7, later)
    refused = departures.refuse(pod("b"), 1, later)
    assert refused is not None
    assert refused.until == NOW.monotonic + LONGEST_SECONDS + OVERDUE_SECONDS
