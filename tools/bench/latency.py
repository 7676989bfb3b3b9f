"""Measurement of latencies: from a taint on one node until the API server accepts the eviction of its only pod."""

import asyncio
import sys
import time
from statistics import quantiles
from typing import Any

from bench import population
from bench.audit import code, is_removal, moment
from bench.bulk import Bulk
from bench.cluster import ControlPlane, Process, Store, set_taints
from bench.subjects import Subject
from bench.usage import settle

SAMPLES, PAUSE_SECONDS, READY_SECONDS = 200, 0.25, 300


def measure(store: Store, subject: Subject, heartbeat_nodes: int) -> dict[str, Any]:
    """Return percentiles while this number of nodes sends heartbeats, and how late those were on a slow machine."""
    with store.open() as control_plane:
        command = [sys.executable, "-m", "bench.heartbeats", control_plane.admin_kubeconfig, str(heartbeat_nodes)]
        process = Process("heartbeats", command, control_plane.folder / "heartbeats.log")
        process.start()
        try:
            process.wait_ready(lambda: "late" in process.log.read_text(), READY_SECONDS)
            with subject.start(control_plane) as running:
                settle({"subject": running.process.pid or 0})
                taken = asyncio.run(taint_one_by_one(control_plane))
        finally:
            process.stop()
        ranks = [rank * 1e3 for rank in quantiles(taken, n=100, method="inclusive")]
        late = float(process.log.read_text().split()[-1])
        return {"evicted": len(taken), "p50_ms": ranks[49], "p99_ms": ranks[98], "heartbeats_late_seconds": late}


async def taint_one_by_one(control_plane: ControlPlane) -> list[float]:
    """Taint the first nodes. Returns the seconds from each request until the eviction of the node's pod."""
    tainted = {}
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:
        for index in range(SAMPLES):
            tainted[population.pod_name(population.workload_of(index), index)] = time.time()
            await set_taints(bulk, index, [population.TAINT])
            await asyncio.sleep(PAUSE_SECONDS)
        await asyncio.sleep(SAMPLES * PAUSE_SECONDS / 10)  # for the last ones, and for the audit log
    removals = [entry for entry in control_plane.audit() if is_removal(entry) and code(entry) < 300]
    return [moment(entry) - tainted[entry["objectRef"]["name"]] for entry in removals]
