"""The order in which due pods are evicted."""

from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.rig import limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.machine.queues import SAME_URGENCY_SECONDS, rank_of
from taintwarden.engine.model import Pod, Tolerations
from taintwarden.engine.policy import OrderBy, Policy

MINUTE = SAME_URGENCY_SECONDS
INTERNER = Interner()


def pod(name: str = "a", *, priority: int = 0, grace: int = 30) -> Pod:
    shared = INTERNER.pod_class("shop", {}, Tolerations(), priority=priority, grace_seconds=grace)
    return Pod(name, name, "n1", shared, 0.0, 1)


def by(*order: OrderBy) -> Policy:
    policy = limited()
    return msgspec.structs.replace(policy, eviction=msgspec.structs.replace(policy.eviction, order=order))


def place(one: Pod, policy: Policy | None = None, due_at: float = 0.0, **more: Any) -> tuple[float, tuple[float, ...]]:
    """Pods come first by the number of their failed calls, then by rank."""
    return more.pop("attempts", 0), rank_of(one.shared, policy or limited(), due_at, more.pop("hard_at", None))


def test_deadlines_count_by_the_minute():
    assert place(pod(), due_at=MINUTE) == place(pod(), due_at=2 * MINUTE - 0.001)
    assert place(pod(), due_at=2 * MINUTE - 0.001) < place(pod(), due_at=2 * MINUTE)


def test_an_earlier_minute_goes_before_a_lower_priority():
    assert place(pod(priority=100), due_at=0) < place(pod(priority=-100), due_at=MINUTE)


def test_a_removal_and_a_deadline_count_on_one_scale():
    removed = place(pod(), due_at=0, hard_at=10 * MINUTE)
    assert place(pod(), due_at=9 * MINUTE) < removed < place(pod(), due_at=11 * MINUTE)


def test_within_a_minute_the_lower_priority_goes_first():
    assert place(pod(priority=-1), due_at=MINUTE - 1) < place(pod(priority=0), due_at=0)


def test_without_criteria_all_of_a_minute_are_equal():
    assert place(pod(priority=5, grace=1), by()) == place(pod(), by())


def test_spread_is_no_part_of_a_place():
    assert place(pod(), by(OrderBy.TOPOLOGY_SPREAD)) == place(pod(), by())


def test_before_a_hard_deadline_the_soft_one_does_not_count():
    assert place(pod(), due_at=0.0, hard_at=100.0) == place(pod(), due_at=9_999.0, hard_at=100.0)


def test_before_a_hard_deadline_pods_that_failed_more_often_come_later():
    assert place(pod(priority=5), hard_at=100.0) < place(pod(priority=-5), hard_at=100.0, attempts=1)
    assert place(pod(), hard_at=100.0, attempts=1) < place(pod(), hard_at=100.0, attempts=2)


def test_retries_on_one_node_come_after_first_calls_on_another_that_is_removed_at_the_same_time():
    assert place(pod(), hard_at=100.5) < place(pod(), hard_at=100.0, attempts=1)


def test_a_pod_whose_calls_failed_comes_after_all_others_of_its_lane():
    assert place(pod(priority=-5), due_at=0, attempts=1) > place(pod(priority=5), due_at=9 * MINUTE)
    assert place(pod(), attempts=2) > place(pod(), attempts=1)


@given(st.lists(st.tuples(st.integers(-5, 5), st.floats(0, 300)), min_size=2, max_size=20))
def test_places_of_one_policy_are_totally_ordered(pods):
    places = sorted(place(pod(priority=priority), by(OrderBy.PRIORITY), due) for priority, due in pods)
    assert all(one <= other for one, other in pairwise(places))
    assert all(len(rank) == 2 for _, rank in places)
