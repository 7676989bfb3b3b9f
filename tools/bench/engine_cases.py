"""Cases of the engine alone, run in separate processes so that memory can be measured. Times are CPU times.

python -m bench.engine_cases CASE SCALE
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from uuid import UUID

from bench import population
from bench.cluster import enveloped, message, pod_message
from bench.step_cases import NO_LIMITS, paused, reclaims
from bench.usage import MIB, memory
from taintwarden.controller.clock import system_clock
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.decoding.times import moment
from taintwarden.controller.handlers.stream_handlers import PodHandler
from taintwarden.engine import commands, events
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.machine import Machine
from taintwarden.engine.model import Instant, Node, Pod, PodClass, Taint, Toleration, Tolerations
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy, TaintSelector
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.wire.resources import PODS
from taintwarden.telemetry.metrics import Metrics

START = 1_800_000_000.0
OUTAGE = Taint("bench.example/outage", "1")
POLICY = Policy(name="bench", taints=(TaintSelector("*"),), limits=NO_LIMITS)
PODS_PER_NODE = 30
MONTH_SECONDS = 30 * 86_400
BOUND_AT = round(moment(population.STARTED_AT))
IN_FLIGHT = 32
Result = dict[str, float]


def now(seconds: float = 0.0) -> Instant:
    return Instant(START + seconds, seconds)


def node(index: int, version: int, *taints: Taint) -> Node:
    return Node(
        f"node-{index}", f"uid-{index}", {"zone": f"zone-{index % 3}"}, tuple((t, None) for t in taints), version
    )


def classes(seconds: int | None = None) -> list[PodClass]:
    """Return a class for each workload. With ``seconds``, each tolerates the outage for this time."""
    interner = Interner()
    timed = () if seconds is None else (Toleration(OUTAGE.key, "Exists", toleration_seconds=seconds),)
    return [
        interner.pod_class(
            population.namespace_name(workload % population.NAMESPACES),
            {"app": f"app-{workload}"},
            Tolerations((*timed, *tolerations_of(workload))),
        )
        for workload in range(population.WORKLOADS)
    ]


def tolerations_of(workload: int) -> list[Toleration]:
    raw = population.TOLERATION_SETS[workload % len(population.TOLERATION_SETS)]
    return [Toleration(t.get("key", ""), t["operator"], t.get("value", ""), t.get("effect", "")) for t in raw]


def machine_with(pods: int, per_node: int, seconds: int | None = None) -> Machine:
    """Return the machine of a leader that knows all nodes and pods. ``seconds``: see ``classes``."""
    machine = Machine(max_in_flight=IN_FLIGHT)
    kinds = classes(seconds)
    machine.step(events.PoliciesChanged((POLICY,)), now())
    for index in range(pods // per_node):
        machine.step(events.NodeSeen(node(index, 1)), now())
    for index in range(pods):
        on = f"node-{index % (pods // per_node)}"
        pod = Pod(str(UUID(int=index)), f"pod-{index}", on, kinds[index % len(kinds)], START - 3600, 1)
        machine.step(events.PodSeen(pod), now())
    machine.step(events.NodesReached(10**9), now())
    machine.step(events.Synced(), now())
    machine.step(events.LeadershipChanged(leading=True), now())
    while machine.wake_after(now()) == 0:
        machine.step(events.Tick(), now())
    return machine


def shared_verdicts(scale: float) -> Result:
    """Count the comparisons of toleration lists with a taint in a wave over 30,000 pods."""
    pods = round(30_000 * scale)
    machine = machine_with(pods, PODS_PER_NODE)
    before = machine.view.evaluations
    began = time.process_time()
    for index in range(pods // PODS_PER_NODE):
        machine.step(events.NodeSeen(node(index, 2, OUTAGE)), now(10))
    seconds = time.process_time() - began
    assert sum(1 for _ in machine.view.all_claims()) == pods
    judgements = machine.view.evaluations - before
    return {"pods": pods, "judgements": judgements, "cpu_seconds": seconds, "us_per_pod": seconds / pods * 1e6}


def node_change(scale: float) -> Result:
    """Measure a step for a node with 100 pods whose taint is added or removed."""
    per_node, times = 100, round(2_000 * scale)
    machine = machine_with(per_node, per_node)
    began = time.process_time()
    for turn in range(times):
        machine.step(events.NodeSeen(node(0, turn + 2, *((OUTAGE,) if turn % 2 == 0 else ()))), now(turn))
    seconds = time.process_time() - began
    return {"steps_per_second": times / seconds, "ms_per_step": seconds / times * 1e3}


def deadlines(scale: float) -> Result:
    """Measure 150,000 pods that tolerate a taint for five minutes and then are due at the same time."""
    pods, wait_seconds = round(150_000 * scale), 300
    machine = machine_with(pods, PODS_PER_NODE, wait_seconds)
    gc.collect()
    before = memory().rss_mib
    for index in range(pods // PODS_PER_NODE):
        machine.step(events.NodeSeen(node(index, 2, OUTAGE)), now(10))
    assert sum(1 for _ in machine.view.all_claims()) == pods
    gc.collect()
    grown = memory().rss_mib - before
    at = now(11 + wait_seconds)
    for spoke_at in (now(8 + wait_seconds), at):  # the view of the nodes is fresh
        machine.step(events.NodesReached(10**9), spoke_at)
    issued, longest, began = 0, 0.0, time.process_time()
    while issued < pods:
        step_began = time.process_time()
        found = machine.step(events.Tick(), at)
        longest = max(longest, time.process_time() - step_began)
        evictions = [command for command in found if isinstance(command, commands.Evict)]
        issued += len(evictions)
        for command in evictions:
            machine.step(events.Settled(command.pod.uid, Outcome.ACCEPTED), at)
            machine.step(events.PodGone(command.pod.uid, command.pod.node), at)
    seconds = time.process_time() - began
    return {
        "pods": pods,
        "mib": grown,
        "bytes_per_deadline": grown * MIB / pods,
        "drain_cpu_seconds": seconds,
        "us_per_pod": seconds / pods * 1e6,
        "longest_step_ms": longest * 1e3,
    }


def token_bucket(scale: float) -> Result:
    """Measure an admission by a token bucket whose rate never refuses."""
    times = round(1_000_000 * scale)
    bucket = TokenBucket(1e9, 10, 0.0)
    began = time.process_time()
    for turn in range(times):
        if bucket.available_at(turn) <= turn:
            bucket.take(turn)
    seconds = time.process_time() - began
    return {"ns_per_admission": seconds / times * 1e9}


class Pages:
    """A fake client of a stream. It returns lists page by page, and a watch without events."""

    def __init__(self, pods: int):
        self.pods = pods
        self.templates = [template(workload) for workload in range(population.WORKLOADS)]
        self.cpu_seconds = 0.0
        """CPU time for creating the pages, which does not count."""

    async def request(self, _method: str, _path: str, *, params: Mapping[str, str], accept: str, **_: int) -> bytes:
        del accept
        began = time.process_time()
        first = int(params.get("continue", "0"))
        end = min(first + int(params["limit"]), self.pods)
        items = [item(self.templates, index, self.pods // PODS_PER_NODE) for index in range(first, end)]
        head = {2: "1", 3: str(end) if end < self.pods else ""}
        body = enveloped(message({1: head, 2: items}))
        self.cpu_seconds += time.process_time() - began
        return body

    @asynccontextmanager
    async def stream(self, *_: object, **_options: object) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield


def feed(scale: float) -> Result:
    """Measure time and memory for 150,000 pods in protobuf that pass stream, decoders and machine."""
    return asyncio.run(list_pods(round(150_000 * scale)))


async def list_pods(pods: int) -> Result:
    pages = Pages(pods)
    machine = Machine()
    for index in range(pods // PODS_PER_NODE):
        machine.step(events.NodeSeen(node_named(index)), now())
    handler = PodHandler("pods", lambda event: machine.step(event, now()), Metrics(), Decoder(system_clock))
    before_mib, began = memory().rss_mib, time.process_time()
    stream = Stream(pages, PODS, handler)  # type: ignore[arg-type]
    running = asyncio.create_task(stream.run())
    await stream.listed.wait()
    seconds = time.process_time() - began - pages.cpu_seconds
    running.cancel()
    gc.collect()
    used = memory()
    known = machine.view.pod_count
    assert known == pods, f"{known} of {pods}"
    return {
        "pods": pods,
        "bytes_each": len(pages.templates[0]),
        "cpu_seconds": seconds,
        "us_per_pod": seconds / pods * 1e6,
        "mib": used.rss_mib - before_mib,
        "bytes_per_pod": (used.rss_mib - before_mib) * MIB / pods,
        "process_mib": used.rss_mib,
    }


def node_named(index: int) -> Node:
    return Node(population.node_name(index), f"uid-{index}", {}, (), 1)


def template(workload: int) -> bytes:
    """Return a workload's first pod in protobuf. Names, UIDs, nodes and times of the others have the same length."""
    namespace, body, status = population.pod(workload, 0, population.node_name(0))
    uid = {"uid": str(UUID(int=0)), "namespace": namespace, "resourceVersion": "1"}
    managed = [{"manager": "kubelet", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields(body)}]
    created = {"creationTimestamp": population.STARTED_AT, "managedFields": managed}
    return pod_message({**body, "metadata": body["metadata"] | uid | created, "status": status})


def fields(value: object) -> dict[str, object]:
    """Return managed fields as the API server stores them. They are more than half of every object."""
    if isinstance(value, list):
        return {f"k:{number}": fields(each) for number, each in enumerate(value)}
    return {f"f:{name}": fields(each) for name, each in value.items()} if isinstance(value, dict) else {}


def item(templates: list[bytes], index: int, nodes: int) -> bytes:
    """Return a pod with its own name, UID, node and time."""
    workload = population.workload_of(index)
    return (
        templates[workload]
        .replace(population.pod_name(workload, 0).encode(), population.pod_name(workload, index).encode())
        .replace(str(UUID(int=0)).encode(), str(UUID(int=index)).encode())
        .replace(population.node_name(0).encode(), population.node_name(index % nodes).encode())
        .replace(message({1: BOUND_AT}), message({1: BOUND_AT + index * 13 % MONTH_SECONDS}))
    )


CASES: dict[str, Callable[[float], Result]] = {
    case.__name__: case for case in (shared_verdicts, node_change, deadlines, token_bucket, feed, paused, reclaims)
}

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[1]](float(sys.argv[2]))))
