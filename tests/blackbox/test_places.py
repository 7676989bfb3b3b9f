"""Few nodes lose pods at once, also while one cannot be drained, and while the operator's process is replaced."""

import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from blackbox.box import NO_LIMIT, Box, at_once
from controlplane import Operator
from e2e.stories import PodRef, taint

NODES, MOST, PODS, PER_SECOND = 40, 2, 2, 10
BAD = taint("900")
ALL_SECONDS = 60


@pytest.fixture
def replaced(operator: Operator) -> Iterator[Operator]:
    """The operator, which the story replaces; the next story finds it leading."""
    yield operator
    if not operator.process.is_running:
        operator.start()
    operator.wait_leading()


def places(box: Box) -> list[str]:
    """The nodes that have a place."""
    return [one["node"] for one in (box.status().get("places") or {}).get("nodes", ())]


def most_at_once(box: Box, pods: Mapping[str, Sequence[PodRef]]) -> int:
    """Maximum number of nodes that lost pods at once: each from its first to its last pod, or until now."""
    moments = list[tuple[float, int]]()
    for of_node in pods.values():
        times = [box.watch.evicted_at(pod.uid) for pod in of_node]
        known = [at for at in times if at is not None]
        if known:
            moments += [(min(known), 1), (time.monotonic() if None in times else max(known), -1)]
    counts, most = 0, 0
    for _, change in sorted(moments):
        counts += change
        most = max(most, counts)
    return most


def test_few_nodes_lose_pods_at_once_and_a_restart_keeps_their_places(box: Box, replaced: Operator) -> None:
    box.cluster.create_pdb("never", box.namespace, {"app": "blocked"})
    names = at_once([lambda number=number: box.node(name=f"n{number:02}") for number in range(NODES)])
    pods = {name: box.crowd([box.namespace], PODS, name, prefix=name[-3:]) for name in names}
    blocked = box.pod("blocked", names[0], labels={"app": "blocked"})
    box.enforce(limits=NO_LIMIT | {"concurrentNodes": MOST, "evictionsPerSecond": PER_SECOND, "burst": 1})
    box.taint(names[0], BAD)
    box.wait(lambda: places(box) == names[:1], 15, "the first node to take a place")
    fell = time.monotonic()
    at_once([lambda name=name: box.taint(name, BAD) for name in names[1:]])
    others = [pod for name in names[1:] for pod in pods[name]]
    box.wait(lambda: box.left(others) < len(others) / 2, ALL_SECONDS, "half of the pods to leave")
    said = box.delay("place")
    assert f"{names[0]}, " in said, said
    replaced.stop()
    held = places(box)
    assert names[0] in held
    assert len(held) <= MOST
    replaced.start()
    replaced.wait_leading()
    assert set(held) & set(places(box)), "a restart keeps places"
    box.last_gone(others, fell, ALL_SECONDS)
    box.stays(blocked, until=time.monotonic() + 1)
    whole = pods | {names[0]: [*pods[names[0]], blocked]}
    assert most_at_once(box, whole) <= MOST
    box.wait(lambda: places(box) == names[:1], 15, "the drained nodes to lose their places")
    assert f"{names[0]} for " in box.run_command("status", box.policy).stdout
