"""A client that only transfers all lists, page by page: the lower bound of the cost of a start.

    python -m bench.transfer KUBECONFIG

It prints its CPU seconds as JSON, and runs until it is terminated.
"""

import asyncio
import json
import re
import signal
import sys
import time
from pathlib import Path

from bench.bulk import Bulk

PATHS = ("/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces", "/apis/apps/v1/replicasets")
"""The non-empty collections that the operator lists."""
ACCEPT = "application/vnd.kubernetes.protobuf"
LIMIT = 2_000
"""Number of objects per page, with which the API server was fastest."""
HEAD_BYTES = 500
CONTINUE = re.compile(rb"\x12.\d+\x1a[\x80-\xff]?.([\w.=-]+)", re.DOTALL)
"""The continue token in the head of a list, after the resourceVersion."""


async def transfer(bulk: Bulk, path: str) -> None:
    token = ""
    while True:
        body = await bulk.read(f"{path}?limit={LIMIT}&continue={token}", ACCEPT)
        found = CONTINUE.search(body[:HEAD_BYTES])
        if found is None:
            return
        token = found[1].decode()


async def run(kubeconfig: Path) -> None:
    async with Bulk.open(kubeconfig) as bulk, asyncio.TaskGroup() as group:
        for path in PATHS:
            group.create_task(transfer(bulk, path))


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
    print(json.dumps({"cpu_seconds": time.process_time()}), flush=True)
    signal.pause()
