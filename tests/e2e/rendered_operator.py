"""The container of a rendered Deployment as a process: its arguments, its environment, its probes, and nothing else.

What a pod brings besides stands in here: the token of its service account as a kubeconfig, ports of its own, since all
processes share this machine's network, and a file system that cannot be written.
"""

import re
import sys
import uuid
from pathlib import Path
from typing import Any, Self

from controlplane import Process, Target
from controlplane.api_server import LOOPBACK, free_port
from controlplane.binaries import ROOT
from controlplane.health import is_healthy
from controlplane.kubeconfig import write_kubeconfig
from controlplane.operator_process import BYTECODE, EXECUTABLE, READY_SECONDS, STOP_SECONDS, parse_line

Json = dict[str, Any]
READ_ONLY = ROOT / "tests" / "deploy" / "read_only"
POD_NAME = "taintwarden-0"
TOKEN_SECONDS = 3600


class RenderedOperator:
    """Start it with `with`; it is ready then, by the Deployment's own probe."""

    def __init__(self, deployment: Json, kubeconfig: Path, folder: Path) -> None:
        self.environment = environment(deployment)
        template = deployment["spec"]["template"]["spec"]
        [self._container] = template["containers"]
        self._ports = {port["name"]: free_port() for port in self._container["ports"]}
        pod = self.environment | {f"TAINTWARDEN_{name.upper()}_PORT": str(port) for name, port in self._ports.items()}
        machine = BYTECODE | {
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": str(READ_ONLY),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": str(Path(sys.executable).parent),
        }
        variables = [f"{name}={value}" for name, value in (pod | machine).items()]
        command = ["/usr/bin/env", "-i", *variables, EXECUTABLE, *self._container["args"]]
        self.process = Process("rendered", command, folder / "rendered.log", patience_seconds=STOP_SECONDS)

    @classmethod
    def on(cls, target: Target, deployment: Json, folder: Path) -> Self:
        """With a token of the service account that the Deployment names, as its kubelet would mount it."""
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        path = {"name": account, "subresource": "token"}
        body: Json = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        token = target.client.create("serviceaccounts", body, deployment["metadata"]["namespace"], **path)
        kubeconfig = write_kubeconfig(
            folder / "pod.kubeconfig", target.server, target.ca, token=token["status"]["token"]
        )
        return cls(deployment, kubeconfig, folder)

    def __enter__(self) -> Self:
        self.process.start()
        try:
            self.process.wait_ready(lambda: self.answers("readinessProbe"), READY_SECONDS)
        except BaseException:
            self.process.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def answers(self, probe: str) -> bool:
        """Whether one of the Deployment's probes gets its 200."""
        asked = self._container[probe]["httpGet"]
        return is_healthy(f"http://{LOOPBACK}:{self._ports[asked['port']]}{asked['path']}")

    def logs(self) -> list[Json]:
        return [parse_line(line) for line in self.process.log.read_text().splitlines() if line]

    def complaints(self) -> list[Json]:
        """Log lines about rights that are missing, files that could not be written, and faults."""
        words = ("forbidden", "Read-only", "task-failed", "Traceback", "not-saved", "not-written")
        return [line for line in self.logs() if any(word in str(line) for word in words)]


def environment(deployment: Json) -> dict[str, str]:
    """The variables of the container, with what the kubelet fills in."""
    template = deployment["spec"]["template"]
    namespace = deployment["metadata"]["namespace"]
    fields = {"metadata.name": POD_NAME, "metadata.namespace": namespace, "metadata.uid": str(uuid.uuid4())}
    found = {}
    for one in template["spec"]["containers"][0]["env"]:
        assert re.fullmatch(r"[A-Z_]+", one["name"])
        found[one["name"]] = one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
    return found
