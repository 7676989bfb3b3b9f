"""A client that lists pods beforehand and then only posts evictions: the lower bound of the cost of a wave.

    python -m bench.floor KUBECONFIG CONCURRENCY

It prints "ready", waits for SIGUSR1, evicts, and runs until it is terminated.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

from bench.bulk import Bulk, for_each


async def run(kubeconfig: Path, concurrency: int) -> None:
    go = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, go.set)
    async with Bulk.open(kubeconfig, concurrency) as bulk:

        async def evict(pod: dict[str, Any]) -> None:
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod["name"], "namespace": pod["namespace"]},
                "deleteOptions": {"preconditions": {"uid": pod["uid"]}},
            }
            await bulk.must("POST", f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}/eviction", body)

        pods = [pod["metadata"] async for pod in bulk.items("/api/v1/pods")]
        print("ready", flush=True)
        await go.wait()
        await for_each(pods, evict, concurrency)
        await asyncio.Event().wait()  # its CPU and memory are still to be read


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2])))
