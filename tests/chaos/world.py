"""The world that the operator acts on: nodes whose values change all the time, workloads that are kept full, budgets.

No controller of Kubernetes is needed except the one for budgets, so that a fault affects only the operator and the
server. The world retries each write until the API server has confirmed it.
"""

import heapq
import itertools
import json
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import urllib3

from controlplane import ApiError, Cluster, Json
from controlplane.cluster import IMAGE, condition, now

SLA, STRICT, MAINTENANCE = "sla", "strict", "maintenance"
GOOD, POOR, BAD = "980", "940", "890"
"""Values: all pods may stay; those that want more than 950 have to leave; those that want more than 900, too."""
REPLICAS = 10
ZONES = 3
LABEL = "chaos"
TICK_SECONDS = 0.15
LOOK_SECONDS = 1.0
FRESH_SECONDS = 6.0
RETRY_SECONDS = 0.5
WRITERS = 6
MOST_BAD = 0.12
"""Maximum share of bad nodes: far from the share at which a zone counts as Degraded."""

ANSWERS = "taintwarden.io/tolerations"
KINDS: tuple[tuple[str, tuple[Json, ...]], ...] = (
    ("patient", ({"key": SLA, "operator": "Gt", "value": "950", "effect": "NoExecute", "violationGraceSeconds": 6},)),
    ("quick", ({"key": SLA, "operator": "Gt", "value": "950", "effect": "NoExecute", "violationGraceSeconds": 1},)),
    ("modest", ({"key": SLA, "operator": "Gt", "value": "900", "effect": "NoExecute"},)),
    ("tolerant", ()),
)
"""Comparisons in the annotation of each workload's pods. A tolerant one has only the native Exists."""


@dataclass(frozen=True)
class Scale:
    nodes: int = 100
    pods: int = 1000

    @property
    def workloads(self) -> int:
        return self.pods // REPLICAS


@dataclass
class Workload:
    name: str
    namespace: str
    uid: str = ""
    kind: int = 0
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)


def policies() -> list[Json]:
    """The policies in force: one that acts all the time, one whose guard holds back a mistake."""
    calm = {"bounce": {"maxBackoffSeconds": 0}}
    wide = {"maxPercent": 100}
    return [
        _policy(
            "values",
            [{"key": SLA, "valueType": "Integer"}, {"key": MAINTENANCE}],
            {"violationGraceSeconds": 3},
            {"evictionsPerSecond": 10, "burst": 10, "guard": wide, **calm},
        ),
        _policy(
            "guarded",
            [{"key": STRICT, "valueType": "Integer"}],
            {"violationGraceSeconds": 2},
            {
                "guard": {"maxPods": 15, "minPods": 15, "maxPercent": 1, "windowSeconds": 60},
                **calm,
            },
        ),
    ]


def _policy(name: str, taints: list[Json], timing: Json, limits: Json) -> Json:
    spec = {"taints": taints, "timing": timing, "limits": limits}
    kind = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


class World:
    """`build` it once; for each run `begin` and `freeze`."""

    def __init__(self, client: Cluster, scale: Scale) -> None:
        self._client = client
        self._scale = scale
        self._random = random.Random(0)
        self.nodes = [f"node-{index:03}" for index in range(scale.nodes)]
        self._indices = itertools.count(scale.nodes)
        self.namespaces = [f"team-{index}" for index in range(8)]
        self.workloads: dict[str, Workload] = {}
        self._values: dict[str, dict[str, str]] = {node: {SLA: GOOD, STRICT: GOOD} for node in self.nodes}
        self._ends: list[tuple[float, int, str, str, str | None]] = []
        self._numbers = itertools.count()
        self._fresh: dict[str, tuple[str, float]] = {}
        self._terminating: dict[str, float] = {}
        self._changing = threading.Event()
        self._mistaken = threading.Event()
        self._busy = threading.Lock()
        """Held while nodes are written: two writes of one node must not overtake each other."""
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(WRITERS, "world")
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._change, self._keep)]
        self.changes = 0

    def __enter__(self) -> Self:
        self._build()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)
        self._pool.shutdown(cancel_futures=True)

    # -- building

    def _build(self) -> None:
        for body in policies():
            self._client.create("taintevictionpolicies", body)
        list(self._pool.map(self._client.create_namespace, self.namespaces))
        list(self._pool.map(self._create_node, range(self._scale.nodes), self.nodes))
        for index in range(self._scale.workloads):
            self._create_workload(index, self.namespaces[index % len(self.namespaces)], f"w{index:03}")
        places = [
            (name, self.nodes[(index * REPLICAS + number) % len(self.nodes)])
            for index, name in enumerate(self.workloads)
            for number in range(REPLICAS)
        ]
        list(self._pool.map(lambda place: self._create_pod(*place), places))

    def _create_node(self, index: int, name: str) -> None:
        labels = {"topology.kubernetes.io/region": "test", "topology.kubernetes.io/zone": f"zone-{index % ZONES}"}
        self._client.create("nodes", {"metadata": {"name": name, "labels": labels}})
        self._write(name)

    def _create_workload(self, index: int, namespace: str, name: str) -> None:
        selector = {"app": name}
        template = {
            "metadata": {"labels": selector},
            "spec": {"containers": [{"name": "main", "image": IMAGE}], "automountServiceAccountToken": False},
        }
        spec = {"replicas": REPLICAS, "selector": {"matchLabels": selector}, "template": template}
        made = self._client.create("replicasets", {"metadata": {"name": name}, "spec": spec}, namespace)
        self.workloads[name] = Workload(name, namespace, made["metadata"]["uid"], index % len(KINDS))
        if index % 3 == 0:
            budget = {"minAvailable": REPLICAS - 2, "selector": {"matchLabels": selector}}
            self._client.create("poddisruptionbudgets", {"metadata": {"name": name}, "spec": budget}, namespace)

    def _create_pod(self, workload: str, node: str) -> None:
        of = self.workloads[workload]
        _, compared = KINDS[of.kind]
        name = f"{workload}-{next(of.numbers)}-{self._random.randrange(16**6):06x}"
        tolerations: list[Json] = [{"key": SLA, "operator": "Exists", "effect": "NoExecute"}]
        tolerations.append({"key": STRICT, "operator": "Exists", "effect": "NoExecute"})
        annotations = {}
        written = list(compared)
        if of.kind == 0:
            tolerations.append(
                {"key": MAINTENANCE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
            )
        if of.kind == 3:
            written.append({"key": STRICT, "operator": "Gt", "value": "950", "effect": "NoExecute"})
        if written:
            annotations[ANSWERS] = json.dumps(written)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": workload, "uid": of.uid, "controller": True}
        body: Json = {
            "metadata": {
                "name": name,
                "labels": {"app": workload, LABEL: "yes"},
                "annotations": annotations,
                "ownerReferences": [owner],
            },
            "spec": {
                "containers": [{"name": "main", "image": IMAGE}],
                "terminationGracePeriodSeconds": 30,
                "tolerations": tolerations,
                "automountServiceAccountToken": False,
                "nodeName": node,
            },
        }
        with self._lock:
            self._fresh[name] = workload, time.monotonic()
        self._client.create("pods", body, of.namespace)
        self._report(name, of.namespace)

    def _report(self, name: str, namespace: str) -> None:
        """Report as a kubelet would that the pod runs and is Ready."""
        conditions = [condition("PodScheduled"), condition("Ready"), condition("ContainersReady")]
        status = {"phase": "Running", "startTime": now(), "conditions": conditions}
        self._persist(
            lambda: self._client.patch(
                "pods", name, {"status": status}, namespace, subresource="status", kind="strategic"
            )
        )

    # -- changing

    def begin(self, seed: int) -> None:
        """Values change from now on, in the order that the seed says."""
        self._random.seed(seed)
        self._changing.set()

    def mistake(self) -> None:
        """Write a wrong value on every node. The guard of its policy has to hold most of the pods."""
        self._mistaken.set()

    def freeze(self) -> None:
        """Stop changing values. The mistake is repaired; bad nodes stay bad."""
        self._changing.clear()
        self._mistaken.clear()
        with self._busy:
            self._ends = []
            for node in self.nodes:
                if self._values[node][STRICT] != GOOD:
                    self._set(node, STRICT, GOOD)

    def recover(self) -> None:
        """Give every node a good value."""
        with self._busy:
            for node in self.nodes:
                if self._values[node] != {SLA: GOOD, STRICT: GOOD}:
                    self._values[node] = {SLA: GOOD, STRICT: GOOD}
                    self._write(node)

    def rewrite(self) -> None:
        """Write every node as it should be: after the store has forgotten something."""
        with self._busy:
            list(self._pool.map(self._write, self.nodes))

    def exchange_node(self) -> None:
        """Delete a node with its pods, and create one with a name that no node has had."""
        with self._busy:
            place = self._random.randrange(len(self.nodes))
            gone, index = self.nodes[place], next(self._indices)
            new = self.nodes[place] = f"node-{index:03}"
            self._ends = [one for one in self._ends if one[2] != gone]
            heapq.heapify(self._ends)
            self._values = {new if node == gone else node: values for node, values in self._values.items()}
            self._values[new] = {SLA: GOOD, STRICT: GOOD}
            self._persist(lambda: self._client.delete("nodes", gone))
            self._create_node(index, new)
        query = {"fieldSelector": f"spec.nodeName={gone}"}
        for pod in self._client.request("GET", "/api/v1/pods", query=query)["items"]:
            self._pool.submit(self._end, pod["metadata"])

    def exchange_namespace(self) -> None:
        """Delete a namespace with everything in it, and create the same in one with a name that none has had."""
        gone, new = self.namespaces[0], f"team-{next(self._indices)}"
        names = self.abandon(gone)
        self.namespaces = [*self.namespaces[1:], new]
        self._client.create_namespace(new)
        for name in names:
            self._create_workload(int(name[1:]), new, f"w{next(self._indices)}")

    def abandon(self, namespace: str) -> list[str]:
        """Delete a namespace with everything in it; returns the names of its workloads."""
        names = [name for name, of in self.workloads.items() if of.namespace == namespace]
        for name in names:
            del self.workloads[name]
        self._persist(lambda: self._client.delete("namespaces", namespace))
        for resource in ("replicasets", "poddisruptionbudgets", "serviceaccounts", "pods"):
            self._persist(partial(self._client.delete_all, resource, namespace))
        self._persist(lambda: self._finalize(namespace))
        return names

    def _finalize(self, namespace: str) -> None:
        body = self._client.get("namespaces", namespace) | {"spec": {"finalizers": []}}
        self._client.request("PUT", f"/api/v1/namespaces/{namespace}/finalize", body)

    def settle(self, namespace: str, names: Iterable[str]) -> None:
        """Create a namespace with new workloads. Their pods are created at the next reconcile."""
        self._client.create_namespace(namespace)
        for name in names:
            self._create_workload(int(name[1:]), namespace, name)

    def _change(self) -> None:
        while not self._stopping.wait(TICK_SECONDS):
            if not self._changing.is_set():
                continue
            try:
                with self._busy:
                    self._tick()
            except Exception as error:  # noqa: BLE001 - an outage; the next tick tries again
                _explain(error)

    def _tick(self) -> None:
        while self._ends and self._ends[0][0] <= time.monotonic():
            _, _, node, key, value = heapq.heappop(self._ends)
            self._set(node, key, value)
        if self._mistaken.is_set():
            self._mistaken.clear()
            for node in self.nodes:
                self._set(node, STRICT, POOR)
        draw, node = self._random.random(), self._random.choice(self.nodes)
        if draw < 0.30 and self._bad(SLA) < MOST_BAD * len(self.nodes) and self._values[node][SLA] not in (POOR, BAD):
            short = self._random.random() < 0.35
            stays = self._random.uniform(0.3, 4) if short else self._random.uniform(6, 20)
            self._set(node, SLA, self._random.choice((POOR, POOR, BAD)))
            self._later(stays, node, SLA, GOOD)
        elif draw < 0.45 and self._values[node][SLA] not in (POOR, BAD):
            self._set(node, SLA, str(self._random.randrange(955, 999)))
        elif draw < 0.47 and self._bad(MAINTENANCE) < 2:
            self._set(node, MAINTENANCE, "now")
            self._later(self._random.uniform(2, 12), node, MAINTENANCE, None)
        elif draw < 0.48 and self._bad(STRICT) < 1:
            self._set(node, STRICT, POOR)
            self._later(self._random.uniform(1, 4), node, STRICT, GOOD)

    def _bad(self, key: str) -> int:
        return sum(values.get(key) in (POOR, BAD, "now") for values in self._values.values())

    def _later(self, seconds: float, node: str, key: str, value: str | None) -> None:
        heapq.heappush(self._ends, (time.monotonic() + seconds, next(self._numbers), node, key, value))

    def _set(self, node: str, key: str, value: str | None) -> None:
        if value is None:
            self._values[node].pop(key, None)
        else:
            self._values[node][key] = value
        self._write(node)

    def _write(self, node: str) -> None:
        taints = [{"key": key, "value": value, "effect": "NoExecute"} for key, value in self._values[node].items()]
        self._persist(lambda: self._client.patch("nodes", node, {"spec": {"taints": taints}}))
        self.changes += 1

    def _persist(self, do: Callable[[], Any]) -> None:
        """Until the server has confirmed it, or the object does not exist any more."""
        while not self._stopping.is_set():
            try:
                do()
                return
            except ApiError as error:
                if error.status == 404:
                    return
                if error.status < 500 and error.status != 429:
                    raise
            except urllib3.exceptions.HTTPError:
                pass
            time.sleep(
                RETRY_SECONDS
            )  # the server is the one that is disturbed: the world has to become what it should be

    # -- keeping workloads full

    def _keep(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - an outage; the next look tries again
                _explain(error)

    def _look(self) -> None:
        query = {"labelSelector": f"{LABEL}=yes", "resourceVersion": "0"}
        pods = self._client.request("GET", "/api/v1/pods", query=query)["items"]
        here, moment = {pod["metadata"]["name"] for pod in pods}, time.monotonic()
        live: Counter[str] = Counter()
        for pod in pods:
            metadata = pod["metadata"]
            if "deletionTimestamp" in metadata:
                first = self._terminating.setdefault(metadata["uid"], moment)
                if moment - first >= LOOK_SECONDS / 2:
                    self._pool.submit(self._end, metadata)
            else:
                live[metadata["labels"]["app"]] += 1
                if pod["status"].get("phase") == "Pending" and metadata["name"] not in self._fresh:
                    self._pool.submit(self._report, metadata["name"], metadata["namespace"])
        with self._lock:
            for name, (workload, at) in list(self._fresh.items()):
                if name in here or moment - at > FRESH_SECONDS:
                    del self._fresh[name]
                else:
                    live[workload] += 1
        for name in list(self.workloads):
            for _ in range(REPLICAS - live[name]):
                self._pool.submit(self._replace, name)

    def _end(self, metadata: Json) -> None:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        try:
            self._client.request("DELETE", path, body)
        except (ApiError, urllib3.exceptions.HTTPError):
            return  # the next look sees it again

    def _replace(self, workload: str) -> None:
        good = [
            node
            for node, values in self._values.items()
            if values[SLA] not in (POOR, BAD) and values[STRICT] not in (POOR, BAD) and MAINTENANCE not in values
        ]
        if workload not in self.workloads:
            return
        try:
            self._create_pod(workload, self._random.choice(good or self.nodes))
        except (ApiError, urllib3.exceptions.HTTPError) as error:
            _explain(error)


def _explain(error: Exception) -> None:
    if not isinstance(error, ApiError | urllib3.exceptions.HTTPError):
        traceback.print_exception(error)
