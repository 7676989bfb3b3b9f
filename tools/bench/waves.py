"""Measurement of a wave: a NoExecute taint on every node, from the first write until the last pod is gone."""

import asyncio
import time
from dataclasses import dataclass

from bench import population
from bench.audit import refusals, removals
from bench.bulk import Bulk, for_each
from bench.cluster import ControlPlane, Store, set_taints
from bench.subjects import Running, Subject
from bench.usage import CpuMeter, memory, settle

TAINT_CONCURRENCY = 32
POLL_SECONDS = 0.5
LIMIT_SECONDS = 900
STALLED_SECONDS = 180
"""Seconds without an eviction after which the remaining pods count as lost.

At 20 qps, the built-in controller patches the status of all 900 pods before it deletes the first.
"""
FLUSH_SECONDS = 1.0
"""Seconds until the audit log contains the last answers."""
SHARES = (0.5, 0.99, 1.0)


@dataclass(frozen=True)
class Wave:
    """Result of one subject's wave.

    `seconds` is the time until the last eviction. `lost` is the number of pods that had to leave and stayed. `curve`
    has the seconds until each of SHARES was gone. `others_cpu_seconds` is the CPU time of all other processes in the
    meantime, which shows a noisy run.
    """

    subject: str
    pods: int
    gone: int
    lost: int
    refused: int
    seconds: float
    taint_seconds: float
    curve: dict[str, float]
    subject_cpu_seconds: float
    api_server_cpu_seconds: float
    etcd_cpu_seconds: float
    others_cpu_seconds: float
    rss_mib: float
    peak_mib: float


def measure(store: Store, subject: Subject) -> Wave:
    """Run one wave on a new copy of the data. After the time limit, the result shows how far it got."""
    with store.open() as control_plane, subject.start(control_plane) as running:
        processes = {"api": control_plane.api_server, "etcd": control_plane.etcd, "subject": running.process}
        pids = {name: process.pid or 0 for name, process in processes.items()}
        settle(pids)
        meter = CpuMeter(pids)
        began_at = time.time()
        taint_seconds = asyncio.run(taint_and_wait(control_plane, running, store.shape.nodes))
        cpu, used = meter.read(), memory(running.process.pid or 0)
        time.sleep(FLUSH_SECONDS)
        gone = [moment - began_at for moment in removals(control_plane)]
        return Wave(
            subject=subject.name,
            pods=store.shape.pods,
            gone=len(gone),
            lost=store.shape.pods - len(gone),
            refused=refusals(control_plane),
            seconds=gone[-1] if gone else 0.0,
            taint_seconds=taint_seconds,
            curve=curve(gone, store.shape.pods),
            subject_cpu_seconds=cpu["subject"],
            api_server_cpu_seconds=cpu["api"],
            etcd_cpu_seconds=cpu["etcd"],
            others_cpu_seconds=cpu["others"],
            rss_mib=used.rss_mib,
            peak_mib=used.peak_mib,
        )


async def taint_and_wait(control_plane: ControlPlane, running: Running, nodes: int) -> float:
    """Taint every node, then wait until no pod is left or no more pods leave. Returns the seconds for the taints."""
    began_at = moved_at = time.monotonic()
    left = -1
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:
        running.begin()
        await for_each(range(nodes), lambda index: set_taints(bulk, index, [population.TAINT]), TAINT_CONCURRENCY)
        taint_seconds = time.monotonic() - began_at
        while time.monotonic() < began_at + LIMIT_SECONDS:
            found = await bulk.get("/api/v1/pods?limit=1")
            before, left = left, len(found["items"]) + found["metadata"].get("remainingItemCount", 0)
            if left != before:
                moved_at = time.monotonic()
            if not left or time.monotonic() > moved_at + STALLED_SECONDS:
                break
            await asyncio.sleep(POLL_SECONDS)
    return taint_seconds


def curve(gone: list[float], pods: int) -> dict[str, float]:
    """Return the seconds until each share of the pods was gone, for the shares that were reached."""
    counts = [(share, int(share * pods)) for share in SHARES]
    return {f"{share:.0%}": gone[count - 1] for share, count in counts if count <= len(gone)}
