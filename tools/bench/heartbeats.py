"""A client that writes what kubelets write: the Lease of each node every 10 s, and its status every 5 minutes.

python -m bench.heartbeats KUBECONFIG NODES
"""

import asyncio
import itertools
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.bulk import MERGE_PATCH, STRATEGIC_PATCH, Bulk, for_each
from bench.population import node_name

TURNS, TURN_SECONDS, STATUS_ROUNDS, CONCURRENCY = 100, 0.1, 30, 16
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


async def run(kubeconfig: Path, nodes: int) -> None:
    async with Bulk.open(kubeconfig) as bulk:

        async def create(index: int) -> None:
            await bulk.must("POST", LEASES, {"metadata": {"name": node_name(index)}})

        async def beat(index: int) -> None:
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            await bulk.must("PATCH", f"{LEASES}/{node_name(index)}", {"spec": {"renewTime": now}}, MERGE_PATCH)
            if (turn - index) % (TURNS * STATUS_ROUNDS) == 0:
                status = {"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": f"{now[:19]}Z"}]}}
                await bulk.must("PATCH", f"/api/v1/nodes/{node_name(index)}/status", status, STRATEGIC_PATCH)

        await for_each(range(nodes), create, CONCURRENCY)
        began_at = time.monotonic()
        for turn in itertools.count():
            await for_each(range(turn % TURNS, nodes, TURNS), beat, CONCURRENCY)
            late_seconds = time.monotonic() - began_at - (turn + 1) * TURN_SECONDS
            print(f"late by {max(0.0, late_seconds):.1f}", flush=True)
            await asyncio.sleep(-late_seconds)


asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2])))
