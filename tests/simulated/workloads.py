"""Controllers that keep the number of their pods, a scheduler that finds them nodes, a kubelet that runs them."""

from random import Random
from typing import Any

from simulated.cluster import Json, Simulation
from taintwarden.engine.machine import events

WATCHED = ("ReplicaSet", "StatefulSet", "Job")
SCHEDULER_LOOKS_AGAIN_SECONDS = 2.0


class Workload:
    """A controller and what its pods look like."""

    def __init__(self, name: str, kind: str, replicas: int, template: Json) -> None:
        self.name = name
        self.kind = kind
        self.uid = f"{kind}-{name}"
        self.namespace = template.get("namespace", "default")
        self.replicas = replicas
        self.template = template
        self.home = ""
        """A node that its pods go to whatever its taints; empty: to any that is not bad."""
        self.coming = 0
        """Pods that it will create in a moment."""


class Workloads:
    """All controllers of a simulation.

    Args:
        sim: the cluster.
        chance: how long everything takes, and where pods land.
        longest: the longest times, in seconds, until a pod is replaced, Ready and stopped.

    """

    def __init__(self, sim: Simulation, chance: Random, longest: tuple[float, float, float] = (3.0, 5.0, 6.0)) -> None:
        self.sim = sim
        self.all: dict[str, Workload] = {}
        self._chance = chance
        self._longest = longest
        self._numbers = 0
        sim.kubelet = self._stop
        sim.observers.append(self._observe)
        self._gone: list[Workload] = []
        sim.listers.append(self._list)

    def watched(self) -> list[Workload]:
        """Those whose wanted number of pods is told."""
        return [one for one in self.all.values() if one.kind in WATCHED]

    def _list(self) -> list[events.Event]:
        """What is there; and what is not, since a list tells that, too."""
        gone = [events.WorkloadGone((one.namespace, one.uid)) for one in self._gone]
        return [*gone, *(events.WorkloadSeen((one.namespace, one.uid), one.replicas) for one in self.watched())]

    def create(self, name: str, replicas: int, kind: str = "ReplicaSet", **template: Any) -> Workload:
        """A workload with all its pods Ready at once."""
        workload = self.all[name] = Workload(name, kind, replicas, template)
        workload.home = template.pop("home", "")
        self._tell(workload)
        for _ in range(replicas):
            self._create_pod(workload, ready=True)
        return workload

    def scale(self, name: str, replicas: int) -> None:
        """Its owner wants another number of pods."""
        workload = self.all[name]
        workload.replicas = replicas
        self._tell(workload)
        self._reconcile(workload)

    def delete(self, name: str) -> None:
        """It goes with all its pods."""
        workload = self.all.pop(name)
        self._gone.append(workload)
        if workload.kind in WATCHED:
            self.sim.deliver(lambda: self.sim.feed(events.WorkloadGone((workload.namespace, workload.uid))))
        for pod in self.pods(workload):
            self.sim.terminate(pod)

    def pods(self, workload: Workload) -> list[Json]:
        """Its pods that are not terminating."""
        return [
            pod
            for pod in self.sim.pods.values()
            if "deletionTimestamp" not in pod["metadata"]
            and any(owner["uid"] == workload.uid for owner in pod["metadata"]["ownerReferences"])
        ]

    def _tell(self, workload: Workload) -> None:
        if workload.kind in WATCHED:
            self.sim.deliver(
                lambda: self.sim.feed(events.WorkloadSeen((workload.namespace, workload.uid), workload.replicas))
            )

    def _observe(self, what: str, pod: Json) -> None:
        owners = [owner["uid"] for owner in pod["metadata"]["ownerReferences"]]
        for workload in self.all.values():
            if what != "changed" and workload.uid in owners:
                self._reconcile(workload)

    def _reconcile(self, workload: Workload) -> None:
        pods = self.pods(workload)
        for _ in range(len(pods) + workload.coming, workload.replicas):
            workload.coming += 1
            self.sim.later(self._wait(0), lambda: self._replace(workload))
        surplus = sorted(pods, key=is_ready)[: max(0, len(pods) - workload.replicas)]
        for pod in surplus:
            self.sim.terminate(pod)

    def _replace(self, workload: Workload) -> None:
        workload.coming -= 1
        if workload.name in self.all and len(self.pods(workload)) < workload.replicas:
            self._create_pod(workload)

    def _create_pod(self, workload: Workload, *, ready: bool = False) -> None:
        self._numbers += 1
        owner = {
            "apiVersion": "batch/v1" if workload.kind == "Job" else "apps/v1",
            "kind": workload.kind,
            "name": workload.name,
            "uid": workload.uid,
            "controller": True,
        }
        name = f"{workload.name}-{self._numbers}"
        status = [{"type": "Ready", "status": "True"}] if ready else []
        node = self._find_node(workload)
        self.sim.create_pod(name, node, owners=[owner], conditions=status if node else [], **workload.template)
        pod = self.sim.pods[f"{workload.namespace}/{name}"]
        if not node:
            self.sim.later(SCHEDULER_LOOKS_AGAIN_SECONDS, lambda: self._schedule(pod, workload))
        elif not ready:
            self.sim.later(self._wait(1), lambda: self._begin(pod))

    def _schedule(self, pod: Json, workload: Workload) -> None:
        if not self._is_alive(pod):
            return
        node = self._find_node(workload)
        if node:
            pod["spec"]["nodeName"] = node
            self.sim.touch_pod(key(pod))
            self.sim.later(self._wait(1), lambda: self._begin(pod))
        else:
            self.sim.later(SCHEDULER_LOOKS_AGAIN_SECONDS, lambda: self._schedule(pod, workload))

    def _begin(self, pod: Json) -> None:
        if self._is_alive(pod):
            self.sim.set_ready(pod, ready=True)

    def _find_node(self, workload: Workload) -> str:
        if workload.home in self.sim.nodes:
            return workload.home
        fitting = [name for name, node in self.sim.nodes.items() if not is_bad(node)]
        return self._chance.choice(fitting) if fitting else ""

    def _is_alive(self, pod: Json) -> bool:
        return self.sim.pods.get(key(pod)) is pod and "deletionTimestamp" not in pod["metadata"]

    def _stop(self, pod: Json) -> tuple[float, float]:
        allowed = float(pod["spec"].get("terminationGracePeriodSeconds", 30))
        return allowed, min(allowed, self._wait(2))

    def _wait(self, what: int) -> float:
        return round(self._chance.uniform(0.1, self._longest[what]), 2)


def key(pod: Json) -> str:
    """``namespace/name``."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def is_ready(pod: Json) -> bool:
    """Whether its condition Ready is True."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def is_bad(node: Json) -> bool:
    """Whether the scheduler puts nothing here."""
    return any(taint["effect"] == "NoExecute" and taint.get("value") != "980" for taint in node["spec"]["taints"])
