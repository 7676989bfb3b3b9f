"""The least that a start can cost: a process that transfers all lists, page by page, and ends.

    python -m bench.transfer KUBECONFIG [parse] [stream] [stay]

With "parse" it also has the protobuf library parse each page, and forgets what it found. With "stream" it transfers no
lists but the initial events of watches (KEP-3157, WatchList). With "stay" it does not end.
It writes its CPU seconds and its peak memory as JSON; seconds are from its first request.
"""

import asyncio
import json
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from bench.bulk import Bulk
from bench.usage import memory

PATHS = {
    "/api/v1/nodes": "core.v1.Node",
    "/api/v1/pods": "core.v1.Pod",
    "/api/v1/namespaces": "core.v1.Namespace",
    "/apis/apps/v1/replicasets": "apps.v1.ReplicaSet",
}
"""Of what the operator lists, the collections that are not empty, and their messages."""
ACCEPT = "application/vnd.kubernetes.protobuf"
LIMIT = 2_000
"""The API server serves few large pages faster than many small ones; with more objects than this it gets slower."""
INITIAL_EVENTS = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
LAST_INITIAL_EVENT = b"k8s.io/initial-events-end"
HEAD_BYTES = 500
CONTINUE = re.compile(rb"\x12.\d+\x1a[\x80-\xff]?.([\w.=-]+)", re.DOTALL)
"""The token in the head of a list, after the resourceVersion."""


async def transfer(bulk: Bulk, path: str, parse: Any) -> None:
    token = ""
    while True:
        body = await bulk.read(f"{path}?limit={LIMIT}&continue={token}", ACCEPT)
        if parse is not None:
            parse(body[4:])
        found = CONTINUE.search(body[:HEAD_BYTES])
        if found is None:
            return
        token = found[1].decode()


async def stream(bulk: Bulk, path: str) -> None:
    """A frame may lie in two chunks, but the mark of the last one is short: 100 bytes of the chunk before suffice."""
    end = b""
    async for chunk in bulk.stream(f"{path}?{INITIAL_EVENTS}", f"{ACCEPT};stream=watch"):
        end = end[-100:] + chunk
        if LAST_INITIAL_EVENT in end:
            return


async def run(kubeconfig: Path, *, parses: bool, streams: bool) -> None:
    messages: Any = {}
    if parses:
        from taintwarden.kube.wire.protobuf_kinds import MESSAGES as messages  # noqa: PLC0415, N811 - imports cost CPU
    async with Bulk.open(kubeconfig) as bulk, asyncio.TaskGroup() as group:
        for path, kind in PATHS.items():
            if streams:
                group.create_task(stream(bulk, path))
                continue
            found = messages.get(f"runtime.Unknown.{kind}List")
            group.create_task(transfer(bulk, path, found and found.FromString))


if __name__ == "__main__":
    began = time.monotonic()
    asyncio.run(run(Path(sys.argv[1]), parses="parse" in sys.argv, streams="stream" in sys.argv))
    seconds = time.monotonic() - began
    found = {"cpu_seconds": time.process_time(), "seconds": seconds, "peak_mib": memory().peak_mib}
    print(json.dumps(found), flush=True)
    if "stay" in sys.argv:
        signal.pause()
