"""``limits.concurrentNodes`` where kubelets end the pods, and on many nodes of which a stand-in ends them."""

from collections.abc import Iterator

import pytest

from controlplane import wait_until
from controlplane.kubelet import Kubelet
from kind.installation import Installation
from kind.scene import BAD, RUN_SECONDS, Scene, taint

STOP_SECONDS = 8
MANY, MOST = 40, 2


@pytest.fixture
def many_nodes(scene: Scene) -> Iterator[list[str]]:
    """Nodes without machines: a stand-in reports their pods, and removes those that terminate."""
    kubelet = Kubelet(scene.cluster, stop_seconds=1.0)
    kubelet.others |= {node["metadata"]["name"] for node in scene.cluster.items("nodes")}
    names = [f"{scene.name}-{number:02}" for number in range(MANY)]
    with kubelet:
        for name in names:
            scene.cluster.create_node(name)
        yield names
        kubelet.check()
        for name in names:
            scene.cluster.delete("nodes", name)


def losing(scene: Scene) -> set[str]:
    """Nodes with pods of the story that terminate."""
    return {one["spec"]["nodeName"] for one in scene.pods() if "deletionTimestamp" in one["metadata"]}


def watch_until_drained(scene: Scene) -> list[set[str]]:
    """The different sets of nodes that lost pods at once, in order, until no pod of the story is left."""
    seen: dict[frozenset[str], None] = {}

    def drained() -> bool:
        seen.setdefault(frozenset(losing(scene)))
        return not scene.pods()

    wait_until(drained, RUN_SECONDS + 100, "all nodes to be drained")
    return [set(one) for one in seen if one]


def test_one_node_after_the_other_loses_its_pods(scene: Scene) -> None:
    for node in scene.workers:
        for number in range(2):
            scene.pod(f"{node}-{number}", on=node, stop_seconds=STOP_SECONDS)
    scene.wait_running(2 * len(scene.workers))
    scene.policy(limits={"concurrentNodes": 1, "guard": {"maxPercent": 100}})
    scene.wait_enforcing()
    for node in scene.workers:
        scene.taint(node)
    seen = watch_until_drained(scene)
    assert sorted(seen, key=sorted) == [{node} for node in sorted(scene.workers)]


def test_a_new_leader_keeps_the_place_of_the_node(scene: Scene) -> None:
    first, second = scene.workers[:2]
    for node in (first, second):
        scene.pod(node, on=node, stop_seconds=2 * STOP_SECONDS)
    scene.wait_running(2)
    scene.policy(limits={"concurrentNodes": 1, "guard": {"maxPercent": 100}})
    scene.wait_enforcing()
    scene.taint(first)
    wait_until(lambda: losing(scene) == {first}, RUN_SECONDS, f"{first} to lose its pod")
    scene.taint(second)
    operator = Installation(scene.cluster)
    operator.crash(operator.leader())
    assert watch_until_drained(scene) == [{first}, {second}]


def test_two_of_forty_nodes_at_a_time_lose_pods_over_a_change_of_leader(scene: Scene, many_nodes: list[str]) -> None:
    for node in many_nodes:
        for number in range(2):
            scene.pod(f"{node}-{number}", on=node)
    scene.wait_running(2 * MANY)
    scene.policy(limits={"concurrentNodes": MOST, "guard": {"maxPercent": 100}})
    scene.wait_enforcing()
    for node in many_nodes:
        scene.cluster.set_taints(node, [taint(BAD)])
    wait_until(lambda: len(scene.pods()) < MANY, RUN_SECONDS, "half of the pods to leave")
    operator = Installation(scene.cluster)
    operator.crash(operator.leader())
    seen = watch_until_drained(scene)
    assert max(len(nodes) for nodes in seen) == MOST
