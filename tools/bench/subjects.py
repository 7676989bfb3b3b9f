"""The measured subjects. Each is started as users would start it, and is ready when it could evict at once."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from bench.cluster import POLICY, ControlPlane, Operator, Process, wait_until

READY_SECONDS = 300
CONTROLLERS = "taint-eviction-controller,node-lifecycle-controller"
# No kubelet renews a heartbeat here: without this, every node would be unreachable after 50 seconds.
HEARTBEATS = ["--node-monitor-grace-period=48h", "--node-startup-grace-period=48h"]
FAST_CLIENT = ["--kube-api-qps=1000", "--kube-api-burst=1000"]


@dataclass
class Running:
    """A running subject. `begin` starts the evictions of a subject that does not watch taints."""

    process: Process
    begin: Callable[[], None] = lambda: None


Start = Callable[[ControlPlane], AbstractContextManager[Running]]


@dataclass(frozen=True)
class Subject:
    name: str
    start: Start


@contextmanager
def taintwarden(control_plane: ControlPlane) -> Iterator[Running]:
    """Run Taintwarden without limits, with the shipped ClusterRole."""
    control_plane.client.apply(POLICY)
    with Operator(
        control_plane.operator_kubeconfig(), control_plane.folder, args=["--max-evictions-per-second=0"]
    ) as operator:
        operator.wait_leading(READY_SECONDS)
        yield Running(operator.process)


def built_in(*client: str) -> Start:
    """Return a function that runs kube-controller-manager with the controllers for taint eviction only."""

    @contextmanager
    def start(control_plane: ControlPlane) -> Iterator[Running]:
        process = control_plane.start_controller_manager(CONTROLLERS, [*HEARTBEATS, *client])
        try:
            wait_until(lambda: has_synced(process), READY_SECONDS, "the built-in controller to sync")
            yield Running(process)
        finally:
            process.stop()

    return start


def has_synced(process: Process) -> bool:
    """True if the log reports that all caches are synced. The node lifecycle controller waits last."""
    log = process.log.read_text()
    waiting, synced = (log.count(words) for words in ("Waiting for caches to sync", "Caches are synced"))
    return "Starting node controller" in log and waiting == synced


def floor(concurrency: int) -> Start:
    """Return a function that runs a client which only posts evictions of pods listed beforehand."""

    @contextmanager
    def start(control_plane: ControlPlane) -> Iterator[Running]:
        kubeconfig = control_plane.operator_kubeconfig()
        command = [sys.executable, "-m", "bench.floor", kubeconfig, str(concurrency)]
        process = Process("floor", command, control_plane.folder / "floor.log")
        process.start()
        try:
            process.wait_ready(lambda: "ready" in process.log.read_text(), READY_SECONDS)
            running = Running(process, lambda: os.kill(process.pid or 0, signal.SIGUSR1))
            yield running
        finally:
            process.stop()

    return start
