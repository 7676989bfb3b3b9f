"""What happens to the replayed objects, on command: each command is a method whose arguments come from the bench."""

import asyncio
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

from bench import population
from bench.population import Shape
from bench.replay.collection import Collection
from bench.replay.copies import Pods, workload_count
from taintwarden.kube.wire.protobuf_kinds import MESSAGES

STOPPED_AFTER_SECONDS = 1.0
"""From an accepted eviction until the pod is gone."""
POLL_SECONDS = 0.05
GROUP = "taintwarden.io/"
NEW_WORKLOADS = 50
"""How many workloads the pods of one turnover belong to."""

Answer = dict[str, Any]


class Scenario:
    """Changes pods and nodes as clients of a cluster do."""

    def __init__(self, shape: Shape, nodes: Collection, pods: Collection, made: Pods):
        self._shape = shape
        self._nodes = nodes
        self._pods = pods
        self._made = made
        self._due_at: dict[str, float] = {}
        """By node: when its pods have to leave."""
        self._lateness: list[float] = []
        self._new_pods = shape.pods
        self._writes_begin = asyncio.Event()
        self._writes_begin.set()
        self._written: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    # -- commands of the bench ------------------------------------------------------------------------------------

    async def churn(self, per_second: float, seconds: float) -> Answer:
        """Status updates of pods. Of what the operator reads, only the version changes."""
        keys, count = cycle(list(self._pods.items)), round(per_second * seconds)

        def update(_: int) -> None:
            self._pods.put(self._pods.get(next(keys)))

        return {"sent": count, "behind_seconds": await _paced(count, per_second, update)}

    async def heartbeats(self, every_seconds: float, seconds: float) -> Answer:
        """Each node reports its conditions in turn. Of what the operator reads, only the version changes."""
        names = list(self._nodes.items)
        per_second = len(names) / every_seconds
        count = round(per_second * seconds)

        def beat(number: int) -> None:
            self._nodes.put(self._nodes.get(names[number % len(names)]))

        return {"sent": count, "behind_seconds": await _paced(count, per_second, beat)}

    async def taint(self, key: str, first: int, count: int, seconds: float, grace_seconds: float) -> Answer:
        """Taint nodes, evenly over some seconds. Their pods have to leave so many seconds after it."""

        def add(number: int) -> None:
            name = population.node_name(first + number)
            node = self._nodes.get(name)
            node.spec.taints.add(key=key, value="1", effect="NoExecute")
            self._nodes.put(node)
            self._due_at[name] = time.time() + grace_seconds

        per_second = count / seconds if seconds else float("inf")
        return {"sent": count, "behind_seconds": await _paced(count, per_second, add)}

    async def untaint(self, first: int, count: int) -> Answer:
        for number in range(first, first + count):
            node = self._nodes.get(population.node_name(number))
            del node.spec.taints[:]
            self._nodes.put(node)
        return {"sent": count}

    async def flap(self, key: str, every_seconds: float, seconds: float) -> Answer:
        """Every node loses or gets a taint every so many seconds, one node after the other."""
        names = list(self._nodes.items)
        per_second = len(names) / every_seconds
        count = round(per_second * seconds)

        def turn(number: int) -> None:
            node = self._nodes.get(names[number % len(names)])
            if node.spec.taints:
                del node.spec.taints[:]
            else:
                node.spec.taints.add(key=key, value="1", effect="NoExecute")
            self._nodes.put(node)

        return {"sent": count, "behind_seconds": await _paced(count, per_second, turn)}

    async def hold_writes(self) -> Answer:
        """From now on, writes to nodes wait for their answers: what they cost is not measured."""
        self._writes_begin.clear()
        return {}

    async def release_writes(self) -> Answer:
        self._writes_begin.set()
        return {}

    async def written(self) -> Answer:
        """How many nodes were written so far."""
        return {"nodes": len(self._written)}

    async def turn_over(self, pods: int, per_second: float) -> Answer:
        """Create pods of new workloads, and delete them."""
        first, workload = self._new_pods, workload_count(self._shape) + self._new_pods
        self._new_pods += pods
        keys: list[str] = []

        def create(number: int) -> None:
            node = population.node_name(number % self._shape.nodes)
            pod = self._made.make(workload + number % NEW_WORKLOADS, first + number, node)
            self._pods.put(pod)
            keys.append(f"{pod.metadata.namespace}/{pod.metadata.name}")

        behind = await _paced(pods, per_second, create)
        behind = max(behind, await _paced(pods, per_second, lambda number: self._pods.remove(keys[number])))
        for number in range(NEW_WORKLOADS):
            self._made.forget(workload + number)
        return {"sent": 2 * pods, "behind_seconds": behind}

    async def expire(self) -> Answer:
        """The history of pods is compacted. Answers when they were listed again, and are watched."""
        opened = self._pods.watches_opened
        self._pods.expire()
        while self._pods.watches_opened == opened:
            await asyncio.sleep(POLL_SECONDS)
        return {}

    async def lateness(self) -> Answer:
        """Seconds from the moment at which each evicted pod had to leave to the arrival of its eviction."""
        found, self._lateness = self._lateness, []
        return {"seconds": found}

    # -- requests of the operator ---------------------------------------------------------------------------------

    def evict(self, key: str) -> None:
        """Accept an eviction. Raises KeyError if there is no such pod."""
        pod = self._pods.get(key)
        self._lateness.append(time.time() - self._due_at.get(pod.spec.nodeName, float("-inf")))
        pod.metadata.deletionTimestamp = MESSAGES["meta.v1.Time"](seconds=int(time.time())).SerializeToString()
        self._pods.put(pod)
        task = asyncio.create_task(self._stop(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self, key: str) -> None:
        await asyncio.sleep(STOPPED_AFTER_SECONDS)
        self._pods.remove(key)

    def node(self, name: str) -> Answer:
        """What a client reads of a node. Raises KeyError."""
        node = self._nodes.get(name)
        meta = node.metadata
        taints = [{"key": one.key, "value": one.value, "effect": one.effect} for one in node.spec.taints]
        return {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {
                "name": meta.name,
                "uid": meta.uid,
                "resourceVersion": meta.resourceVersion,
                "labels": {key: value.decode() for key, value in meta.labels.items()},
                "annotations": {key: value.decode() for key, value in meta.annotations.items()},
            },
            "spec": {"taints": taints},
        }

    async def patch_node(self, name: str, patch: Answer) -> Answer:
        """Apply the operator's annotations: those that it does not name are removed. Raises KeyError."""
        await self._writes_begin.wait()
        node = self._nodes.get(name)
        annotations = node.metadata.annotations
        for key in [key for key in annotations if key.startswith(GROUP)]:
            del annotations[key]
        for key, value in patch["metadata"].get("annotations", {}).items():
            annotations[key] = value.encode()
        self._nodes.put(node)
        self._written.add(name)
        return self.node(name)


async def _paced(count: int, per_second: float, act: Callable[[int], None]) -> float:
    """Act at a steady pace, each time by itself as long as this process keeps up; the most seconds it was behind."""
    now = asyncio.get_running_loop().time
    began, behind = now(), 0.0
    for number in range(count):
        wait = began + number / per_second - now()
        behind = max(behind, -wait)
        if wait > 0 or number % 100 == 0:
            await asyncio.sleep(max(0.0, wait))
        act(number)
    return behind
