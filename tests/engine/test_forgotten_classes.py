"""What the pods of a workload share is forgotten with its last pod: every run of a Job has another class."""

import gc
from weakref import ref

from engine.rig import Rig, exists, gt, limited
from taintwarden.engine.machine import commands
from taintwarden.engine.model import PodClass


def cluster() -> Rig:
    rig = Rig(limited())
    rig.node("n1", "sla=940")
    rig.node("n2", "sla=940")
    return rig


def known(shared: "ref[PodClass]") -> bool:
    gc.collect()
    return shared() is not None


def run(rig: Rig, name: str, node: str = "n1") -> "ref[PodClass]":
    """A pod that tolerates the taint, with labels of its own."""
    return ref(rig.pod(name, gt("900"), node=node, labels={"job": name}).shared)


def test_the_class_of_a_pod_that_is_gone_is_forgotten():
    rig = cluster()
    first = run(rig, "first")
    assert known(first)
    rig.gone("first")
    assert not known(first)


def test_a_class_is_known_as_long_as_one_of_its_pods_is_there():
    rig = cluster()
    shared = run(rig, "a")
    for name in ("b", "c"):
        rig.pod(name, gt("900"), node="n2", labels={"job": "a"})
    rig.gone("a")
    rig.gone("b", "n2")
    assert known(shared)
    rig.gone("c", "n2")
    assert not known(shared)


def test_the_class_of_before_a_change_of_labels_is_forgotten():
    rig = cluster()
    before = run(rig, "a")
    rig.pod("a", gt("900"), labels={"job": "another"})
    assert not known(before)


def test_only_the_witness_of_a_drained_node_is_kept_of_those_that_were_evicted():
    rig = cluster()
    shared = []
    for number in range(6):
        name = f"run-{number}"
        shared.append(ref(rig.pod(name, labels={"job": name}).shared))
        rig.settle(name)
        rig.gone(name)
    rig.take(commands.Evict)
    rig.advance(120)
    assert not any(map(known, shared[1:-1]))  # the rig still has the last commands


def test_an_invalid_value_is_reported_once_though_pods_come_and_go():
    rig = Rig(limited())
    rig.node("n1", "sla=abc")
    for number in range(3):
        for name, toleration in ((f"compares-{number}", gt("900")), (f"exists-{number}", exists())):
            rig.pod(name, toleration, labels={"job": name})
            rig.gone(name)
    assert len(rig.take(commands.InvalidValue)) == 1
    rig.node("n1", "sla=def")
    rig.pod("later", gt("900"))
    assert len(rig.take(commands.InvalidValue)) == 1
