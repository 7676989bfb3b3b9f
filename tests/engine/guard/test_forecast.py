"""Which pods have to leave soon, and for whom they count."""

from collections import Counter

from engine.guard.bench import WALL
from taintwarden.engine.guard.forecast import Due, Forecast
from taintwarden.engine.model import Instant

NOW = Instant(WALL, 0.0)
WINDOW = 600.0


def forecast(*pods: Due) -> Forecast:
    found = Forecast(WINDOW)
    for pod in pods:
        found.put(pod, NOW)
    return found


def due(uid: str, *, after: float = 0.0, namespace: str = "shop", node: str = "n1", is_own: bool = False) -> Due:
    return Due(uid, WALL + after, 0.0, 0.0, namespace, node, is_own)


def test_pods_that_count_for_all_are_counted_by_namespace_and_node():
    found = forecast(due("a"), due("b"), due("c", namespace="bank", node="n2"))
    assert (found.by_namespace, found.by_node) == ({"shop": 2, "bank": 1}, {"n1": 2, "n2": 1})


def test_a_pod_that_stays_is_not_counted_any_more():
    found = forecast(due("a"), due("b", namespace="bank", node="n2"))
    found.remove("a")
    assert (found.total, found.by_namespace, found.by_node) == (1, {"bank": 1}, {"n2": 1})


def test_nothing_is_kept_of_pods_that_stay():
    found = forecast(due("a"), due("b", is_own=True))
    for uid in "ab":
        found.remove(uid)
    assert (found.begins("shop"), found.namespaces()) == ([], [])
    assert (dict(found.by_namespace), dict(found.by_node)) == ({}, {})


def test_own_pods_count_for_their_namespace_only():
    found = forecast(due("a", is_own=True), due("b", node="n2", is_own=True))
    assert (found.total, found.own("shop")) == (0, Counter({"n1": 1, "n2": 1}))


def test_a_namespace_without_own_pods_has_none():
    assert forecast().own("shop") == Counter()


def test_own_pods_of_one_node_can_be_left_out():
    found = forecast(due("a"), due("b", is_own=True), due("c", node="n2", is_own=True))
    assert [pods for _, pods in found.begins("shop", besides="n2")] == [2]


def test_pods_due_after_the_window_do_not_count_yet():
    found = forecast(due("a", after=WINDOW + 1))
    assert (found.total, found.next_near_at()) == (0, WALL + 1)


def test_another_length_of_the_window_counts_as_if_it_had_always_been_so():
    pods = [due("a"), due("b", after=100), due("c", after=200, is_own=True), due("d", after=500)]
    found, other = forecast(*pods), Forecast(WINDOW / 2)
    found.resize(WINDOW / 2, NOW)
    for pod in pods:
        other.put(pod, NOW)
    assert found.begins("shop") == other.begins("shop")
    assert (found.total, found.next_near_at()) == (other.total, other.next_near_at())
