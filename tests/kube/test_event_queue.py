"""Events that wait: alarms first, each namespace in its turn, and none of them without a bound."""

import pytest

from taintwarden.kube.calls.event_queue import EventQueue


@pytest.fixture
def queue() -> EventQueue[str]:
    return EventQueue()


def put(queue: EventQueue[str], namespace: str, *names: str) -> None:
    for name in names:
        queue.put(namespace, name, f"{namespace}/{name}")


def popped(queue: EventQueue[str]) -> list[str]:
    return [queue.pop() for _ in range(len(queue))]


def test_namespaces_take_turns(queue):
    put(queue, "loud", *"abc")
    put(queue, "quiet", "x")
    assert popped(queue) == ["loud/a", "quiet/x", "loud/b", "loud/c"]


def test_of_one_key_the_latest_waits_at_the_end(queue):
    put(queue, "shop", "a", "b")
    queue.put("shop", "a", "shop/a again")
    assert popped(queue) == ["shop/b", "shop/a again"]


def test_of_too_many_those_of_the_namespace_with_the_most_are_dropped():
    queue = EventQueue[str](max_queued=4)
    put(queue, "loud", *"abc")
    put(queue, "quiet", *"xyz")
    assert sorted(popped(queue)) == ["loud/b", "loud/c", "quiet/y", "quiet/z"]
    assert queue.dropped == 2


def test_a_flood_drops_nothing_of_others():
    queue = EventQueue[str](max_queued=10)
    put(queue, "quiet", *"abc")
    put(queue, "loud", *map(str, range(1_000)))
    put(queue, "late", *"de")
    others = [one for one in popped(queue) if not one.startswith("loud")]
    assert others == ["quiet/a", "late/d", "quiet/b", "late/e", "quiet/c"]


def test_alarms_have_a_bound_too():
    queue = EventQueue[str](max_queued=2)
    for name in "abc":
        queue.put("", name, name, is_alarm=True)
    assert popped(queue) == ["b", "c"]


def test_what_is_cleared_was_dropped(queue):
    put(queue, "shop", "a", "b")
    queue.put("", "guard", "guard", is_alarm=True)
    queue.clear()
    assert (len(queue), queue.dropped) == (0, 3)
