"""Nodes for pods: how long the scheduler extender takes for 1,000 nodes, and what it costs kube-scheduler."""

import asyncio
import gc
import json
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

import aiohttp
import msgspec

from bench.bulk import MERGE_PATCH, STRATEGIC_PATCH, Bulk, for_each
from bench.cluster import CONCURRENCY, ControlPlane, Extender, wait_until
from bench.usage import CpuMeter, memory, settle
from e2e import extender_scenes  # after bench.cluster, which says where it is
from taintwarden.controller.clock import system_clock
from taintwarden.controller.decoding import Decoder
from taintwarden.engine.model import Gates
from taintwarden.engine.profile_selection import Profiles
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden.placement.scheduling.decisions import Decisions, NodeReader
from taintwarden.placement.scheduling.demands import Demands
from taintwarden.placement.scheduling.extender import Args, SchedulerExtender
from taintwarden.placement.scheduling.node_changes import NodeChanges

NODES, QUICK_NODES = 1_000, 100
REQUESTS, QUICK_REQUESTS = 1_000, 100
PODS, QUICK_PODS = 1_000, 100
SHAPES = 20
"""Different workloads: the pods of one ask for the same."""
NAMESPACE = "placements"
PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
SERVER_NAME = f"{extender_scenes.NAME}.{extender_scenes.NAMESPACE}.svc"
SLA, KUBELET = "example.com/sla", "example.com/kubelet"
PLACED_SECONDS = 300.0


@dataclass(frozen=True)
class Subject:
    """What pods ask for. `is_fresh`: nothing is known from the pods before, as after a change of every node."""

    name: str
    tolerates: bool = False
    prefers: bool = False
    is_fresh: bool = False


SUBJECTS = (
    Subject("pods without anything of ours"),
    Subject("tolerations", tolerates=True),
    Subject("tolerations and node affinity", tolerates=True, prefers=True),
    Subject("the same, every pod another workload", tolerates=True, prefers=True, is_fresh=True),
)


@dataclass(frozen=True)
class Answers:
    """Milliseconds of one pod, both requests.

    Of the clock from sending the first until the second answer is read, which other load of the machine lengthens; and
    of the CPU from a body to the body of its answer, in this process.
    """

    requests: int
    nodes: int
    median_ms: float
    p90_ms: float
    p99_ms: float
    slowest_ms: float
    cpu_median_ms: float
    cpu_p99_ms: float
    process_cpu_ms: float
    """Of the extender's process, on average: TLS and HTTP included."""
    peak_mib: float


@dataclass(frozen=True)
class Scheduled:
    """How fast kube-scheduler binds waiting pods."""

    pods: int
    nodes: int
    pods_per_second: float
    scheduler_cpu_seconds: float
    extender_cpu_seconds: float


@dataclass(frozen=True)
class Scheduler:
    """A kube-scheduler with or without the extender, and what the pods ask for."""

    name: str
    asks: bool
    subject: Subject


SCHEDULERS = (
    Scheduler("kube-scheduler alone", asks=False, subject=SUBJECTS[0]),
    Scheduler("with the extender, pods without anything of ours", asks=True, subject=SUBJECTS[0]),
    Scheduler("with the extender, tolerations and node affinity", asks=True, subject=SUBJECTS[2]),
)


def node(index: int) -> dict[str, Any]:
    """A value of its own for each node, and ten versions of kubelets."""
    labels = {KUBELET: f"v1.{25 + index % 10}.{index % 7}", "kubernetes.io/hostname": f"node-{index}"}
    return {"metadata": {"name": f"node-{index}", "labels": labels}}


def taints(index: int) -> list[dict[str, str]]:
    return [
        {"key": SLA, "value": str(index % 1_000), "effect": "NoSchedule"},
        {"key": "example.com/cni", "value": f"v3.{index % 30}.0", "effect": "PreferNoSchedule"},
    ]


def stored(index: int) -> dict[str, Any]:
    return {**node(index), "spec": {"taints": taints(index)}}


def pod(number: int, subject: Subject) -> dict[str, Any]:
    shape = number if subject.is_fresh else number % SHAPES
    annotations: dict[str, str] = {}
    if subject.tolerates:
        above = {"key": SLA, "operator": "Gt", "value": str(shape % 500), "effect": "NoSchedule"}
        newer = {"key": "example.com/cni", "operator": "SemverGt", "value": f"3.{shape % 20}.0"}
        annotations["taintwarden.io/tolerations"] = json.dumps([above, newer])
    if subject.prefers:
        requirement = {"key": KUBELET, "operator": "SemverGt", "values": [f"1.26.{shape}"]}
        term = {"matchExpressions": [requirement]}
        required = {"nodeSelectorTerms": [term]}
        preferred = [{"weight": 10, "preference": term}]
        annotations["taintwarden.io/node-affinity"] = json.dumps(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            }
        )
    exists = [{"key": key, "operator": "Exists"} for key in (SLA, "example.com/cni")]
    spec = {
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
        "tolerations": exists,
        "automountServiceAccountToken": False,
    }
    return {"metadata": {"name": f"web-{number}", "annotations": annotations}, "spec": spec}


@dataclass
class Ground:
    """A control plane with nodes, and an extender that knows them."""

    control_plane: ControlPlane
    extender: Extender
    entry: dict[str, Any]
    nodes: int

    @classmethod
    @contextmanager
    def open(cls, nodes: int) -> Iterator["Ground"]:
        with ControlPlane() as control_plane:
            extender_scenes.installed(control_plane)
            control_plane.client.create_namespace(NAMESPACE)
            asyncio.run(cls._populate(control_plane, nodes))
            with extender_scenes.serving(control_plane, control_plane.folder) as (extender, entry):
                yield cls(control_plane, extender, entry, nodes)

    @staticmethod
    async def _populate(control_plane: ControlPlane, nodes: int) -> None:
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "250"}
        ready = [{"type": "Ready", "status": "True", "reason": "Bench"}]
        status = {"conditions": ready, "capacity": capacity, "allocatable": capacity}
        async with Bulk.open(control_plane.admin_kubeconfig) as bulk:

            async def create(index: int) -> None:
                path = f"/api/v1/nodes/node-{index}"
                await bulk.must("POST", "/api/v1/nodes", node(index))
                await bulk.must("PATCH", f"{path}/status", {"status": status}, STRATEGIC_PATCH)
                # Admission adds not-ready to a new node.
                await bulk.must("PATCH", path, {"spec": {"taints": taints(index)}}, MERGE_PATCH)

            await for_each(range(nodes), create, CONCURRENCY)

    def pids(self) -> dict[str, int]:
        return {"extender": self.extender.process.pid or 0}


def measure(ground: Ground, subject: Subject, requests: int) -> Answers:
    """Ask about so many pods, one after the other, as a scheduler does."""
    settle(ground.pids())
    meter = CpuMeter(ground.pids())
    milliseconds = asyncio.run(ask(ground, subject, requests))
    cpu = meter.read()["extender"]
    computed = asyncio.run(compute(ground.nodes, subject, requests))
    tenths, hundredths = quantiles(milliseconds, n=10), quantiles(milliseconds, n=100)
    return Answers(
        requests=requests,
        nodes=ground.nodes,
        median_ms=tenths[4],
        p90_ms=tenths[8],
        p99_ms=hundredths[98],
        slowest_ms=max(milliseconds),
        cpu_median_ms=quantiles(computed, n=2)[0],
        cpu_p99_ms=quantiles(computed, n=100)[98],
        process_cpu_ms=cpu / requests * 1000,
        peak_mib=memory(ground.pids()["extender"]).peak_mib,
    )


async def compute(nodes: int, subject: Subject, requests: int) -> list[float]:
    """Milliseconds of CPU of each pod, by what the extender is made of."""
    reader = NodeReader()
    known = {f"node-{index}": reader(msgspec.convert(stored(index), NodeObject)) for index in range(nodes)}
    demands = Demands(Decoder(system_clock), Profiles(), {}, {})
    node_changes = NodeChanges(lambda: system_clock().monotonic)
    extender = SchedulerExtender(
        known, demands, Decisions(Gates()), node_changes, lambda _reason, _nodes: None, shows_values=True
    )
    decoder, encoder = msgspec.json.Decoder(Args), msgspec.json.Encoder()
    names, found = list(known), []
    gc.collect()
    gc.freeze()  # as the process does when it knows everything
    for number in range(requests):
        given = {"Pod": pod(number, subject), "NodeNames": names}
        body = json.dumps(given).encode()
        began = time.thread_time()
        result = await extender.filter(decoder.decode(body))
        encoder.encode(result)
        taken = time.thread_time() - began
        body = json.dumps({**given, "NodeNames": result.node_names}).encode()
        began = time.thread_time()
        encoder.encode(extender.prioritize(decoder.decode(body)))
        found.append((taken + time.thread_time() - began) * 1000)
    return found


async def ask(ground: Ground, subject: Subject, requests: int) -> list[float]:
    names = [f"node-{index}" for index in range(ground.nodes)]
    tls = ssl.create_default_context(cafile=ground.entry["tlsConfig"]["caFile"])
    connector = aiohttp.TCPConnector(ssl=tls)
    found = []
    async with aiohttp.ClientSession(connector=connector) as session:

        async def post(verb: str, args: dict[str, Any]) -> Any:
            url = f"{ground.entry['urlPrefix']}/{verb}"
            async with session.post(url, data=json.dumps(args), server_hostname=SERVER_NAME) as response:
                return await response.json()

        for number in range(requests):
            body = pod(number, subject)
            began = time.perf_counter()
            result = await post("filter", {"Pod": body, "NodeNames": names})
            await post("prioritize", {"Pod": body, "NodeNames": result["NodeNames"]})
            found.append((time.perf_counter() - began) * 1000)
    return found


def schedule(ground: Ground, scheduler: Scheduler, pods: int) -> Scheduled:
    """Let pods wait, start the scheduler, and wait until all are bound."""
    asyncio.run(create_pods(ground, scheduler.subject, pods))
    settle(ground.pids())
    entries = [ground.entry] if scheduler.asks else []
    configuration = extender_scenes.configuration(*entries)
    process = ground.control_plane.start_configured_scheduler(f"scheduler-{time.monotonic_ns()}", configuration)
    try:
        meter = CpuMeter(ground.pids() | {"scheduler": process.pid or 0})
        began = time.perf_counter()
        wait_until(lambda: not is_waiting(ground), PLACED_SECONDS, "all pods to be placed")
        seconds, cpu = time.perf_counter() - began, meter.read()
    finally:
        process.stop()
    ground.control_plane.client.delete_all("pods", NAMESPACE)
    return Scheduled(pods, ground.nodes, pods / seconds, cpu["scheduler"], cpu["extender"])


def is_waiting(ground: Ground) -> bool:
    """Whether a pod has no node."""
    query = {"fieldSelector": "spec.nodeName=", "limit": "1"}
    return bool(ground.control_plane.client.request("GET", PATH, query=query)["items"])


async def create_pods(ground: Ground, subject: Subject, pods: int) -> None:
    async with Bulk.open(ground.control_plane.admin_kubeconfig) as bulk:

        async def create(number: int) -> None:
            await bulk.must("POST", PATH, pod(number, subject))

        await for_each(range(pods), create, CONCURRENCY)


@contextmanager
def measuring(*, quick: bool) -> Iterator[tuple[Callable[[Subject], Answers], Callable[[Scheduler], Scheduled]]]:
    """Measure subjects one after the other on the same control plane."""
    requests, pods = (QUICK_REQUESTS, QUICK_PODS) if quick else (REQUESTS, PODS)
    with Ground.open(QUICK_NODES if quick else NODES) as ground:
        yield lambda subject: measure(ground, subject, requests), lambda one: schedule(ground, one, pods)
