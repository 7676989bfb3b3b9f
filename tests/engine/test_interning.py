"""One object for equal values, for as long as a pod has it."""

import gc

import pytest

from taintwarden.engine.interning import Interner
from taintwarden.engine.model import SchedulingGroup, Toleration, Tolerations

GT = Tolerations((Toleration(key="sla", operator="Gt", value="950"),))


@pytest.fixture
def interner() -> Interner:
    return Interner()


def test_equal_values_are_one_object(interner):
    equal = Tolerations((Toleration(key="sla", operator="Gt", value="950"),))
    assert interner.pod_class("shop", {"a": "1"}, GT) is interner.pod_class("shop", {"a": "1"}, equal)


def test_the_order_of_labels_is_no_difference(interner):
    first = interner.pod_class("shop", {"a": "1", "b": "2"}, GT)
    assert interner.pod_class("shop", {"b": "2", "a": "1"}, GT) is first


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": "other"},
        {"labels": {"a": "2"}},
        {"labels": {}},
        {"tolerations": Tolerations()},
        {"tolerations": Tolerations((), GT.native)},
        {"priority": 1},
        {"daemon_set": True},
        {"do_not_evict": True},
        {"do_not_disrupt": True},
        {"local_storage": True},
        {"group": SchedulingGroup("g", ("c",))},
    ],
    ids=lambda other: str(next(iter(other))),
)
def test_whatever_a_verdict_depends_on_makes_a_difference(interner, other):
    base = {"namespace": "shop", "labels": {"a": "1"}, "tolerations": GT}
    kept = interner.pod_class(**base)
    assert interner.pod_class(**(base | other)) is not kept


def test_the_order_of_tolerations_makes_a_difference(interner):
    entries = (Toleration(key="a"), Toleration(key="b"))
    kept = interner.pod_class("shop", {}, Tolerations(entries))
    assert interner.pod_class("shop", {}, Tolerations(entries[::-1])) is not kept


def test_a_class_is_forgotten_with_its_last_pod(interner):
    kept = [interner.pod_class("shop", {"number": str(number)}, GT) for number in range(100)]
    assert len(interner) == 100
    del kept[10:]
    gc.collect()
    assert len(interner) == 10


def test_a_class_does_not_follow_the_labels_it_was_made_of(interner):
    labels = {"a": "1"}
    made = interner.pod_class("shop", labels, GT)
    labels["a"] = "2"
    assert made.labels == {"a": "1"}
