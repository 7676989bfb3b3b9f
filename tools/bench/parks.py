"""A cluster with devices on the real API server: what a start costs with a policy for them and without, and a rewrite.

5,000 slices of 8 devices, 20,000 claims, and a pod for each. Pods are bound and claims allocated by us: schedulers are
not measured here.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench import population
from bench.audit import removals
from bench.bulk import MERGE_PATCH, Bulk, for_each
from bench.cluster import CONCURRENCY, POLICY, ControlPlane, Store
from bench.population import Json, Shape
from bench.sync import taintwarden, wait_for
from bench.usage import cpu_seconds, memory, settle

PARK, QUICK_PARK = Shape(5_000, 20_000), Shape(250, 1_000)
DEVICES = 8
DRIVER, KEY = "gpu.example.com", "gpu.example.com/health"
WITHOUT, WITH = "no policy for devices", "a policy for devices"
SUBJECTS = (WITHOUT, WITH)
REWRITES = 5_000
API = "/apis/resource.k8s.io/v1"


@dataclass(frozen=True)
class Park:
    """One start. The cost of a rewrite is that of a slice whose driver writes it again without a change of a taint."""

    subject: str
    claims: int
    seconds: float
    cpu_seconds: float
    settled_mib: float
    peak_mib: float
    ms_per_rewrite: float
    reaction_seconds: float | None
    """From the taint of a device to its pod gone; None: nothing follows devices."""


@contextmanager
def measuring(store: Store) -> Iterator[ControlPlane]:
    """A control plane whose pods have devices."""
    with store.open() as control_plane:
        asyncio.run(equip(control_plane, store.shape))
        yield control_plane


async def equip(control_plane: ControlPlane, shape: Shape) -> None:
    """Slices for all nodes and an allocated claim for each pod."""
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:

        async def publish(index: int) -> None:
            await bulk.must("POST", f"{API}/resourceslices", slice_of(index))

        async def claim(pod: Json) -> None:
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            path = f"{API}/namespaces/{namespace}/resourceclaims"
            request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
            await bulk.must("POST", path, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
            await bulk.must("PATCH", f"{path}/{name}/status", {"status": allocation(pod, shape)}, MERGE_PATCH)

        await for_each(range(shape.nodes), publish, CONCURRENCY)
        await for_each([pod async for pod in bulk.items("/api/v1/pods")], claim, CONCURRENCY)


def slice_of(index: int, taint: Json | None = None) -> Json:
    name, first = population.node_name(index), {"name": "gpu-0"} | ({"taints": [taint]} if taint else {})
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [first, *({"name": f"gpu-{number}"} for number in range(1, DEVICES))],
        },
    }


def allocation(pod: Json, shape: Shape) -> Json:
    """The pods of a node have its first devices."""
    node, number = pod["spec"]["nodeName"], int(pod["metadata"]["name"].rpartition("-")[2])
    device = f"gpu-{number // shape.nodes % DEVICES}"
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    consumer = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    return {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}


def measure(control_plane: ControlPlane, shape: Shape, subject: str) -> Park:
    devices = {"devices": [{"key": KEY, "effects": ["NoExecute"]}]} if subject == WITH else {}
    control_plane.client.apply(POLICY | {"spec": POLICY["spec"] | devices})
    settle({"api-server": control_plane.api_server.pid or 0})
    began_at = time.monotonic()
    with taintwarden(control_plane) as started:
        pid = started.process.pid or 0
        wait_for(lambda: started.is_ready() and (subject == WITHOUT or is_known(control_plane)))
        seconds = time.monotonic() - began_at
        settle({"subject": pid})
        used, settled = cpu_seconds(pid), memory(pid)
        asyncio.run(rewrite(control_plane, shape))
        settle({"subject": pid})
        rewriting = cpu_seconds(pid) - used
        return Park(
            subject=subject,
            claims=shape.pods,
            seconds=seconds,
            cpu_seconds=used,
            settled_mib=settled.rss_mib,
            peak_mib=settled.peak_mib,
            ms_per_rewrite=rewriting / REWRITES * 1e3,
            reaction_seconds=asyncio.run(react(control_plane)) if subject == WITH else None,
        )


def is_known(control_plane: ControlPlane) -> bool:
    found = control_plane.client.get("taintevictionpolicies", POLICY["metadata"]["name"])
    conditions = found.get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("DevicesKnown", "True") for one in conditions)


async def rewrite(control_plane: ControlPlane, shape: Shape) -> None:
    """Drivers write an attribute of slices."""
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:

        async def write(number: int) -> None:
            path = f"{API}/resourceslices/{population.node_name(number % shape.nodes)}"
            # The same text again would be no write, and no event.
            body = {"metadata": {"annotations": {"written": str(time.time_ns())}}}
            await bulk.must("PATCH", path, body, MERGE_PATCH)

        await for_each(range(REWRITES), write, CONCURRENCY)


async def react(control_plane: ControlPlane) -> float:
    """Taint the first device of a node, of another one in each round, and wait for its pod to go."""
    before = len(removals(control_plane))
    began_at = time.time()
    spec = slice_of(before, {"key": KEY, "value": "lost", "effect": "NoExecute"})["spec"]
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:
        await bulk.must("PATCH", f"{API}/resourceslices/{population.node_name(before)}", {"spec": spec}, MERGE_PATCH)
    wait_for(lambda: len(removals(control_plane)) > before)
    return removals(control_plane)[before] - began_at
