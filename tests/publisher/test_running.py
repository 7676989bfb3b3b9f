"""The process as a pod runs it, from its start to its end by SIGTERM."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from controlplane.api_server import LOOPBACK, free_port
from definitions import define
from localcluster import LocalCluster
from patience import until
from publisher.answering import Answers, vector
from publisher.scene import body
from taintwarden_publisher import handlers

SECONDS = 60
"""Seconds to wait for what takes a few seconds on a machine that is not busy."""
NAMELESS = """\
import getpass, sys
def getuser():
    raise OSError("no name")
getpass.getuser = getuser
from taintwarden_cli.entry import main
sys.exit(main())
"""
"""Code that runs the publisher as a user without a name, as in a pod."""


class Started:
    """A process, its probes and its output."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, cluster: LocalCluster) -> None:
        self.process = process
        self.url = url
        self.cluster = cluster

    async def wait_ready(self, session: aiohttp.ClientSession) -> None:
        for _ in range(SECONDS * 10):
            assert self.process.returncode is None
            try:
                async with session.get(f"{self.url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.1)
        pytest.fail("not ready")

    async def wait_published(self) -> None:
        taints = lambda: self.cluster.store.get("nodes", "a1")["spec"].get("taints", ())  # noqa: E731
        await until(lambda: any(one["key"] == "sla" for one in taints()), "its taint")

    async def stop(self) -> tuple[int, list[dict[str, Any]]]:
        """The exit code, and the output of the process."""
        self.process.send_signal(signal.SIGTERM)
        written, _ = await asyncio.wait_for(self.process.communicate(), SECONDS)
        assert self.process.returncode is not None
        return self.process.returncode, [json.loads(line) for line in written.decode().splitlines()]


@asynccontextmanager
async def started(prometheus: Answers, tmp_path: Path) -> AsyncIterator[Started]:
    """Start the process in a cluster with an object that publishes."""
    cluster = LocalCluster(bookmark_seconds=1.0)
    cluster.create("nodes", {"metadata": {"name": "a1"}})
    define(cluster, "taintpublishers", "taintevictionpolicies")
    prometheus.says(vector({"a1": 985}))
    fields = {"mode": "Publish", "maxChangedNodes": "100%", "intervalSeconds": 1, "url": prometheus.url}
    cluster.create(
        "taintpublishers", body(**fields) | {"metadata": {"name": "sla", "finalizers": [handlers.FINALIZER]}}
    )
    async with cluster.serve() as server:
        port = free_port()
        flags = ["--kubeconfig", str(server.write_kubeconfig(tmp_path / "kubeconfig"))]
        flags += ["--http-host", LOOPBACK, "--http-port", str(port)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", NAMELESS, "publisher", *flags),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            yield Started(process, f"http://{LOOPBACK}:{port}", cluster)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()


async def test_a_user_without_a_name_publishes_and_ends_in_order(prometheus, session, tmp_path):
    async with started(prometheus, tmp_path) as one:
        await one.wait_ready(session)
        await one.wait_published()
        code, lines = await one.stop()
        assert [line["event"] for line in lines] == ["process-started", "taint-published", "process-stopped"]
        assert code == 0
