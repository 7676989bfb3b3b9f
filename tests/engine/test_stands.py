"""The check of each order immediately before its bytes are sent: if it should still be carried out."""

from collections.abc import Callable

import msgspec
import pytest

from engine.rig import REACHED, START, Rig, gt, limited
from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.machine import Timings
from taintwarden.engine.model import Profile, Toleration
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Reclaim
from taintwarden.engine.selectors import LabelSelector


def evicting(**options: object) -> tuple[Rig, commands.Evict]:
    """A pod of which an eviction was issued."""
    rig = Rig(limited(), **options).with_pod("sla=940")
    [order] = rig.take(commands.Evict)
    return rig, order


def asked(rig: Rig, order: commands.Order) -> bool:
    return rig.machine.is_still_valid(order, rig.now)


def lead(rig: Rig, *, leading: bool, term: int = 0) -> None:
    rig.feed(events.LeadershipChanged(leading=leading, term=term))


def led_again(rig: Rig) -> None:
    lead(rig, leading=False)
    lead(rig, leading=True, term=1)


CHANGES: dict[str, Callable[[Rig], object]] = {
    "another replica leads": lambda rig: lead(rig, leading=False),
    "this one leads again": led_again,
    "this one leads again, and has looked at all nodes": lambda rig: (led_again(rig), rig.wake()),
    "a stream is cut off": lambda rig: rig.feed(events.ViewChanged("pods", live=False)),
    "the pod is gone": lambda rig: rig.feed(events.PodGone("uid-a", "n1")),
    "the node is gone": lambda rig: rig.feed(events.NodeGone("n1")),
    "the node cannot be read": lambda rig: rig.feed(events.NodeUnreadable("n1")),
    "the taint is gone": lambda rig: rig.node("n1"),
    "the pod tolerates the taint": lambda rig: rig.pod("a", gt("900")),
    "the pod tolerates it for a time": lambda rig: rig.pod("a", Toleration("sla", "Exists", toleration_seconds=5000)),
    "the policy is paused": lambda rig: rig.feed(events.PoliciesChanged((policy(paused=True),))),
    "the policy rehearses": lambda rig: rig.feed(events.PoliciesChanged((policy(mode="DryRun"),))),
    "the policy is paused, and that was looked at": lambda rig: rig.change(policy(paused=True)),
    "the policy rehearses, and that was looked at": lambda rig: rig.change(policy(mode="DryRun")),
    "the policy is gone": lambda rig: rig.change(),
    "policies changed, and nodes were not looked at": lambda rig: rig.feed(events.PoliciesChanged((limited(),))),
    "a profile changed, and its pods were not looked at": lambda rig: rig.feed(profile("950")),
    "a profile tolerates it": lambda rig: (rig.feed(profile("900")), rig.wake()),
    "it was answered": lambda rig: rig.settle("a"),
    "it has to be asked again": lambda rig: rig.settle("a", Outcome.FAILED),
}


def profile(above: str) -> events.ProfileSeen:
    return events.ProfileSeen(Profile("shop", "p", LabelSelector(()), (gt(above),)))


@pytest.mark.parametrize("change", CHANGES)
def test_an_eviction_is_not_valid_when(change):
    rig, order = evicting()
    CHANGES[change](rig)
    assert not asked(rig, order)


def test_an_eviction_that_was_issued_again_is_valid_and_the_one_before_is_not():
    rig, first = evicting()
    rig.settle("a", Outcome.FAILED)
    rig.advance(60)
    [second] = rig.take(commands.Evict)
    assert [asked(rig, order) for order in (first, second)] == [False, True]


def test_an_eviction_is_not_valid_while_the_node_stream_is_silent():
    rig, order = evicting(timings=Timings(max_silence=15.0, namespace_pause=0.0))
    rig.monotonic += 15
    assert asked(rig, order)
    rig.monotonic += 1
    assert not asked(rig, order)
    rig.feed(events.NodesReached(REACHED))
    assert not asked(rig, order), "it may deliver what it held back"
    rig.monotonic += 2
    assert asked(rig, order)


def test_a_read_is_proof_from_its_request_on_while_the_node_stream_is_silent():
    rig = Rig(limited(), timings=Timings(max_silence=15.0, namespace_pause=0.0))
    node = rig.node("n1", "sla=940")
    rig.monotonic += 60
    rig.pod("a")
    assert rig.take(commands.CheckNode) == [commands.CheckNode("n1")]
    rig.monotonic += 10
    rig.process(events.NodeChecked("n1", node.resource_version, REACHED))
    [order] = rig.take(commands.Evict)
    rig.monotonic += 5
    assert asked(rig, order)
    rig.monotonic += 1
    assert not asked(rig, order)


def test_a_value_that_a_silent_stream_held_back_evicts_nothing_before_the_next_one():
    rig = Rig(limited(), timings=Timings()).with_pod("sla=980", gt())
    rig.monotonic += 60
    rig.node("n1", "sla=940")
    assert rig.take(commands.Evict) == []
    rig.node("n1", "sla=980")
    rig.advance(10)
    assert rig.take(commands.Evict) == []


def test_a_stream_that_speaks_all_the_time_is_believed_at_once():
    rig = Rig(limited(), timings=Timings())
    rig.pod("a", gt())
    for _ in range(5):
        rig.node("n1", "sla=980")
        rig.monotonic += 4
    rig.node("n1", "sla=940")
    assert len(rig.take(commands.Evict)) == 1


def test_an_eviction_is_not_valid_while_a_clock_that_was_set_back_is_before_the_deadline():
    rig = Rig(limited())
    rig.pod("a", Toleration("sla", "Exists", toleration_seconds=100))
    rig.node("n1", "sla=940", added=START)
    rig.advance(101)
    [order] = rig.take(commands.Evict)
    assert asked(rig, order)
    rig.wall -= 50
    assert not asked(rig, order)


def test_an_eviction_by_a_policy_that_leaves_the_pod_on_its_node_is_not_valid():
    rig = Rig(msgspec.structs.replace(limited(), reclaim=Reclaim(120)))
    rig.pod("a")
    rig.node("n1", "spot=1", added=START)
    [order] = rig.take(commands.Evict)
    rig.feed(events.PodSeen(rig.make_pod("a", do_not_evict=True)))
    assert not asked(rig, order)


def test_a_read_of_a_node_is_always_valid():
    assert asked(Rig(leading=False), commands.CheckNode("n1"))


# -- writes ------------------------------------------------------------------------------------------------------------


def saving() -> tuple[Rig, commands.SaveHistory]:
    rig = Rig(limited())
    rig.node("n1", "sla=940")
    [order] = rig.take(commands.SaveHistory)
    return rig, order


WRITES: dict[str, Callable[[Rig], object]] = {
    "another replica leads": lambda rig: lead(rig, leading=False),
    "this one leads again": led_again,
    "the node is gone": lambda rig: rig.feed(events.NodeGone("n1")),
    "another node has the name": lambda rig: rig.node("n1", "sla=940", uid="another"),
    "it was made": lambda rig: rig.answer(commands.SaveHistory),
    "it failed": lambda rig: rig.answer(commands.SaveHistory, WriteOutcome.FAILED),
}


def test_a_write_that_was_just_issued_is_valid():
    rig, order = saving()
    assert asked(rig, order)


@pytest.mark.parametrize("change", WRITES)
def test_a_write_is_not_valid_when(change):
    rig, order = saving()
    WRITES[change](rig)
    assert not asked(rig, order)
