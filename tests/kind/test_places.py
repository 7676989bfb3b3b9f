"""``limits.concurrentNodes`` where kubelets end the pods."""

from controlplane import wait_until
from kind.installation import Installation
from kind.scene import RUN_SECONDS, Scene

STOP_SECONDS = 8


def losing(scene: Scene) -> set[str]:
    """Nodes with pods of the story that terminate."""
    return {one["spec"]["nodeName"] for one in scene.pods() if "deletionTimestamp" in one["metadata"]}


def watch_until_drained(scene: Scene) -> list[set[str]]:
    """The different sets of nodes that lost pods at once, in order, until no pod of the story is left."""
    seen: dict[frozenset[str], None] = {}

    def drained() -> bool:
        seen.setdefault(frozenset(losing(scene)))
        return not scene.pods()

    wait_until(drained, RUN_SECONDS + len(scene.workers) * 3 * STOP_SECONDS, "all nodes to be drained")
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


def test_a_new_leader_lets_the_same_node_go_on(scene: Scene) -> None:
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
