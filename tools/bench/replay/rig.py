"""The replay server and the operator beside it, and what the operator uses of the machine."""

import json
import os
import signal
import ssl
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cluster import Operator, Process, wait_until
from bench.population import Json, Shape
from bench.sync import wait_for
from bench.usage import CpuMeter, memory, settle
from controlplane.api_server import LOOPBACK, free_port  # after bench.cluster, which says where it is
from controlplane.certificates import Authority
from controlplane.kubeconfig import write_kubeconfig
from controlplane.operator_process import EXECUTABLE

READY_SECONDS = 300
STEPS = Path(__file__).with_name("steps.py")
POLICIES = "/apis/taintwarden.io/v1alpha1/taintevictionpolicies"


@dataclass
class Cost:
    """What a case cost the operator, and how busy the machine was with other work than the operator and the server."""

    cpu_seconds: float = 0.0
    seconds: float = 0.0
    peak_mib: float = 0.0
    server_cpu_seconds: float = 0.0
    others_cpu_seconds: float = 0.0
    load: float = 0.0


class Cluster:
    """A replayed cluster that is being served."""

    def __init__(self, recording: Path, folder: Path, shape: Shape):
        self.shape = shape
        self._folder = folder
        authority = Authority(folder)
        authority.server("serving", ("localhost",), (LOOPBACK,))
        port = free_port()
        self._url = f"https://{LOOPBACK}:{port}"
        self._tls = ssl.create_default_context(cafile=authority.pair.certificate)
        self.kubeconfig = write_kubeconfig(folder / "kubeconfig", self._url, authority.pair.certificate)
        command = [sys.executable, "-m", "bench.replay.server", recording, folder, port, shape.nodes, shape.pods]
        self.server = Process("replay", list(map(str, command)), folder / "server.log")

    @classmethod
    @contextmanager
    def serve(cls, recording: Path, shape: Shape, spec: Json) -> Iterator["Cluster"]:
        """A cluster with one policy. The folder has the recording."""
        with tempfile.TemporaryDirectory(prefix="taintwarden-bench-") as name:
            cluster = cls(recording, Path(name), shape)
            cluster.server.start()
            try:
                cluster.server.wait_ready(lambda: "ready" in cluster.server.log.read_text(), READY_SECONDS)
                policy = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy"}
                cluster.post(POLICIES, {**policy, "metadata": {"name": "bench"}, "spec": spec})
                yield cluster
            finally:
                cluster.server.stop()

    def command(self, name: str, **arguments: Any) -> Json:
        """Have something happen in the cluster, and wait until it has."""
        return self.post(f"/replay/{name}", arguments)

    def get(self, path: str) -> Json:
        return self._send(urllib.request.Request(self._url + path))

    def post(self, path: str, body: Json) -> Json:
        headers = {"Content-Type": "application/json"}
        return self._send(urllib.request.Request(self._url + path, json.dumps(body).encode(), headers))

    def _send(self, request: urllib.request.Request) -> Json:
        with urllib.request.urlopen(request, context=self._tls, timeout=READY_SECONDS) as response:
            found: Json = json.load(response)
            return found

    @contextmanager
    def operator(self, *args: str, is_timed: bool = False) -> Iterator["Subject"]:
        """An operator that has just been started. If it is timed, its steps are known."""
        subject = Subject(self, self._folder, args, is_timed=is_timed)
        subject.operator.start(wait_ready=False)
        try:
            yield subject
        finally:
            subject.operator.process.stop()

    @contextmanager
    def leader(self, *args: str, is_timed: bool = False) -> Iterator["Subject"]:
        """An operator that leads and has nothing left to do."""
        with self.operator(*args, is_timed=is_timed) as subject:
            subject.wait_ready()
            subject.operator.wait_leading(READY_SECONDS)
            settle({"operator": subject.pid})
            yield subject


class Subject:
    """The operator."""

    def __init__(self, cluster: Cluster, folder: Path, args: tuple[str, ...], *, is_timed: bool):
        self._server = cluster.server
        self.operator = Operator(cluster.kubeconfig, folder, args=args)
        self._steps = folder / "steps.json"
        if is_timed:
            python = EXECUTABLE.with_name("python")
            self.operator.process.command[:1] = [str(python), str(STEPS), str(self._steps)]

    @property
    def pid(self) -> int:
        return self.operator.process.pid or 0

    def wait_ready(self) -> None:
        wait_for(self.operator.is_ready)

    def settle(self) -> None:
        """Wait until it has nothing left to do."""
        settle({"operator": self.pid}, READY_SECONDS)

    @contextmanager
    def measured(self) -> Iterator[Cost]:
        """What the operator costs in the block: filled in at its end. The peak of memory is that of the block."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        cost, pids = Cost(), {"operator": self.pid, "server": self._server.pid or 0}
        meter, began = CpuMeter(pids), time.monotonic()
        yield cost
        used = meter.read()
        cost.cpu_seconds, cost.seconds = used["operator"], time.monotonic() - began
        cost.server_cpu_seconds, cost.others_cpu_seconds = used["server"], used["others"]
        cost.peak_mib, cost.load = memory(self.pid).peak_mib, os.getloadavg()[0]

    def rss_mib(self) -> float:
        return memory(self.pid).rss_mib

    def steps(self) -> Mapping[str, Any]:
        """What the steps of the event loop since the last call took, where they are timed."""
        self._steps.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        wait_until(self._steps.exists, READY_SECONDS, "the times of steps")
        found: dict[str, Any] = json.loads(self._steps.read_text())
        return found
