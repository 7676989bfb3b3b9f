"""What a watch of pods costs its API server, by the encoding it asks for, while the status of pods changes."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.bulk import MERGE_PATCH, Bulk, for_each
from bench.cluster import ControlPlane, Store
from bench.usage import CpuMeter, settle

CONCURRENCY = 8
PODS = "/api/v1/pods"
ENCODINGS = {
    "no watch": "",
    "protobuf": "application/vnd.kubernetes.protobuf;stream=watch",
    "JSON": "application/json",
}


@dataclass(frozen=True)
class Watched:
    """One subject. CPU is per update, and includes the update itself."""

    subject: str
    updates: int
    seconds: float
    kib_per_update: float
    """What the watch brought."""
    api_server_ms_per_update: float
    etcd_ms_per_update: float


@contextmanager
def measuring(store: Store) -> Iterator[Callable[[str], Watched]]:
    """How to measure one watch, or none. All on one API server: what a watch adds is less than what a start changes."""
    with store.open() as control_plane:
        yield lambda subject: asyncio.run(_update_and_watch(control_plane, subject))


async def _update_and_watch(control_plane: ControlPlane, subject: str) -> Watched:
    """Update every pod once."""
    pids = {"api-server": control_plane.api_server.pid or 0, "etcd": control_plane.etcd.pid or 0}
    now = asyncio.get_running_loop().time
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:
        pods = [pod["metadata"] async for pod in bulk.items(PODS)]
        version = (await bulk.get(f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
        watch = asyncio.create_task(_watch(bulk, version, ENCODINGS[subject]))
        await asyncio.to_thread(settle, pids)
        patch = {"status": {"message": f"since {version}"}}

        async def update(pod: dict[str, str]) -> None:
            path = f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}/status"
            await bulk.must("PATCH", path, patch, MERGE_PATCH)

        meter, began = CpuMeter(pids), now()
        await for_each(pods, update, CONCURRENCY)
        seconds, used = now() - began, meter.read()
        await asyncio.sleep(1)  # the last events arrive
        watch.cancel()
        [read] = await asyncio.gather(watch)
    return Watched(
        subject=subject,
        updates=len(pods),
        seconds=seconds,
        kib_per_update=read / len(pods) / 1024,
        api_server_ms_per_update=used["api-server"] / len(pods) * 1e3,
        etcd_ms_per_update=used["etcd"] / len(pods) * 1e3,
    )


async def _watch(bulk: Bulk, version: str, accept: str) -> int:
    """The bytes that came until it is cancelled."""
    read = 0
    try:
        if accept:
            async for chunk in bulk.stream(f"{PODS}?watch=true&resourceVersion={version}", accept):
                read += len(chunk)
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        pass
    return read
