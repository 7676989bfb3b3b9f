"""The operator as users run it: a process with a kubeconfig, probed and measured over HTTP."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from controlplane.api_server import LOOPBACK, free_port
from controlplane.binaries import ROOT
from controlplane.health import is_healthy
from controlplane.processes import Process, ProcessFailedError
from controlplane.waiting import wait_until

EXECUTABLE = Path(os.environ.get("TAINTWARDEN") or Path(sys.executable).with_name("taintwarden"))
"""The command of this environment, unless the variable names that of another."""
# Without bytecode files each start compiles some thousand modules: three seconds of CPU that users do not spend.
BYTECODE = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "bytecode")}
READY_SECONDS = 60
LEAD_SECONDS = 60
STOP_SECONDS = 20


class Operator:
    """`taintwarden run` outside the cluster. Starts in seconds; the log continues over restarts."""

    COMMAND = "run"

    def __init__(
        self,
        kubeconfig: Path,
        folder: Path,
        *,
        args: Sequence[str] = (),
        name: str = "taintwarden",
        context: str = "",
        namespace: str = "taintwarden-system",
    ):
        port = free_port()
        self.url = f"http://{LOOPBACK}:{port}"
        selected = [f"--context={context}"] if context else []
        flags = [f"--kubeconfig={kubeconfig}", f"--http-host={LOOPBACK}", f"--http-port={port}"]
        command = [EXECUTABLE, self.COMMAND, *flags, f"--namespace={namespace}", *selected, *args]
        self.process = Process(name, command, folder / f"{name}.log", env=BYTECODE, patience_seconds=STOP_SECONDS)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.process.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def start(self, *, wait_ready: bool = True) -> None:
        """Start it and, by default, wait for /readyz. A second replica waits for the lease: do not wait."""
        self.process.start()
        if wait_ready:
            self.wait_ready()

    def wait_ready(self, timeout_seconds: float = READY_SECONDS) -> None:
        """Wait for /readyz to say 200. Raises ProcessFailedError with the end of the log."""
        self.process.wait_ready(self.is_ready, timeout_seconds)

    def is_ready(self) -> bool:
        return is_healthy(f"{self.url}/readyz")

    @property
    def leads(self) -> bool:
        return self.metric("taintwarden_leader") == 1

    def wait_leading(self, timeout_seconds: float = LEAD_SECONDS) -> None:
        """Wait until it leads; one that was killed before it keeps the lease for a while."""
        wait_until(lambda: self.leads, timeout_seconds, f"{self.process.name} to lead")

    def is_live(self) -> bool:
        return is_healthy(f"{self.url}/livez")

    def stop(self) -> None:
        """Terminate it as a kubelet would. Raises ProcessFailedError unless it ends in order, with 0."""
        code = self.process.stop()
        if code != 0:
            raise ProcessFailedError(f"{self.process.name} ended with {code} on SIGTERM\n{self.process.tail()}")

    def kill9(self) -> None:
        """Kill it with SIGKILL: the lease stays held until it expires."""
        self.process.kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def metrics(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """All samples by name, each with its labels: taintwarden_nodes -> [({}, 3.0)]."""
        response = urllib3.request("GET", f"{self.url}/metrics", retries=False, timeout=30)
        samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(response.data.decode()):
            for sample in family.samples:
                samples.setdefault(sample.name, []).append((sample.labels, sample.value))
        return samples

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name that carry these labels; 0 when there is none."""
        samples = self.metrics().get(name, [])
        return sum(value for found, value in samples if labels.items() <= found.items())

    def logs(self) -> list[dict[str, Any]]:
        """The log lines as structlog wrote them; what is not JSON (a traceback) comes as {"text": line}."""
        lines = self.process.log.read_text().splitlines() if self.process.log.exists() else []
        return [parse_line(line) for line in lines if line]


class Webhook(Operator):
    """`taintwarden webhook` outside the cluster, on a port that API servers call."""

    COMMAND = "webhook"

    def __init__(
        self, kubeconfig: Path, folder: Path, port: int, *, args: Sequence[str] = (), name: str = "webhook"
    ) -> None:
        super().__init__(kubeconfig, folder, args=[f"--webhook-port={port}", *args], name=name)


class Extender(Webhook):
    """`taintwarden scheduler-extender` outside the cluster, on a port that schedulers call."""

    COMMAND = "scheduler-extender"

    def __init__(self, kubeconfig: Path, folder: Path, port: int, *, args: Sequence[str] = ()) -> None:
        super().__init__(kubeconfig, folder, port, args=args, name="scheduler-extender")


class Publisher(Operator):
    """`taintwarden publisher` outside the cluster."""

    COMMAND = "publisher"

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        super().__init__(kubeconfig, folder, name="publisher")


def parse_line(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"text": line}
