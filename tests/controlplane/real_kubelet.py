"""The real kubelet of one node, with a container runtime in its memory: for what a kubelet decides, not runs."""

import os
from pathlib import Path
from typing import Self

from controlplane.api_server import free_port
from controlplane.binaries import ROOT, MissingBinariesError
from controlplane.control_plane import ControlPlane
from controlplane.processes import Process

BINARY = ROOT / ".cache" / "kubelet" / "kubemark"
READY_SECONDS = 60


class RealKubelet:
    """Runs kubemark as the kubelet of a node that exists.

    A restart keeps the pods: the new process reads them from the API server, and its runtime has no containers.

    Args:
        ground: the control plane.
        node: the name of the node.

    """

    def __init__(self, ground: ControlPlane, node: str) -> None:
        if not os.access(BINARY, os.X_OK):
            raise MissingBinariesError(f"no kubelet: {BINARY} is missing. Run `make control-plane` (needs Go).")
        self._ground = ground
        self._node = node
        folder = Path(ground.folder) / f"kubelet-{node}"
        folder.mkdir()
        flags = {
            "morph": "kubelet",
            "name": node,
            "kubeconfig": ground.admin_kubeconfig,
            "kubelet-port": free_port(),
            "kubelet-read-only-port": free_port(),
            "use-host-image-service": "false",
            "cert-dir": folder,
            "v": 2,
        }
        command = [BINARY, *(f"--{name}={value}" for name, value in flags.items())]
        self.process = Process("kubelet", command, folder / "log", {"TMPDIR": str(folder)})

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def restart(self) -> None:
        """End it and start it again; pods are admitted again within seconds."""
        self.process.stop()
        self._start()

    def _start(self) -> None:
        """Ready is when it has begun to look at pods, in this run of it."""
        before = self._starts()
        self.process.start()
        self.process.wait_ready(lambda: self._starts() > before, READY_SECONDS)

    def _starts(self) -> int:
        log = self.process.log
        return log.read_text(errors="replace").count("Starting kubelet main sync loop") if log.exists() else 0
