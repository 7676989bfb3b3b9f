"""Measurement of a start in a large cluster: until all objects are known, and until the first eviction."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench import population
from bench.audit import removals
from bench.bulk import Bulk
from bench.cluster import POLICY, ControlPlane, Operator, Process, Store, set_taints
from bench.subjects import CONTROLLERS, FAST_CLIENT, HEARTBEATS, has_synced
from bench.usage import CpuMeter, cpu_seconds, memory, settle

POLL_SECONDS = 0.05
LIMIT_SECONDS = 300


@dataclass(frozen=True)
class Start:
    """Result of one start. CPU and ``rss_mib`` are measured at readiness, ``settled_mib`` once the process is idle."""

    subject: str
    pods: int
    seconds: float
    cpu_seconds: float
    api_server_cpu_seconds: float
    """CPU time of the API server during the start."""
    others_cpu_seconds: float
    """CPU time of etcd and all other processes in the meantime, which shows a noisy run."""
    rss_mib: float
    settled_mib: float
    peak_mib: float
    reaction_seconds: float | None
    """Seconds from a taint on one node after the start to the first eviction, as proof of readiness."""


@dataclass(frozen=True)
class Started:
    process: Process
    is_ready: Callable[[], bool]
    acts: bool = True
    """True if the subject evicts pods."""


@contextmanager
def taintwarden(control_plane: ControlPlane) -> Iterator[Started]:
    operator = Operator(
        control_plane.operator_kubeconfig(), control_plane.folder, args=["--max-evictions-per-second=0"]
    )
    operator.start(wait_ready=False)
    try:
        yield Started(operator.process, operator.is_ready)
    finally:
        operator.process.stop()


@contextmanager
def built_in(control_plane: ControlPlane) -> Iterator[Started]:
    """Start kube-controller-manager with a fast client, since its default client is slower."""
    process = control_plane.start_controller_manager(CONTROLLERS, [*HEARTBEATS, *FAST_CLIENT])
    try:
        yield Started(process, lambda: has_synced(process))
    finally:
        process.stop()


@contextmanager
def transfer(control_plane: ControlPlane) -> Iterator[Started]:
    """Start a process that only transfers the same lists: the lower bound of the cost of a start."""
    command = [sys.executable, "-m", "bench.transfer", control_plane.operator_kubeconfig()]
    process = Process("transfer", command, control_plane.folder / "transfer.log")
    process.start()
    try:
        yield Started(process, lambda: "cpu_seconds" in process.log.read_text(), acts=False)
    finally:
        process.stop()


STARTS = {"taintwarden": taintwarden, "built-in": built_in, "bare transfer": transfer}


def measure(store: Store, subject: str) -> Start:
    with store.open() as control_plane:
        control_plane.client.apply(POLICY)
        server = control_plane.api_server.pid or 0
        settle({"api-server": server})
        meter = CpuMeter({"api-server": server})
        began_at = time.monotonic()
        with STARTS[subject](control_plane) as started:
            pid = started.process.pid or 0
            wait_for(started.is_ready)
            seconds, cpu, used = time.monotonic() - began_at, cpu_seconds(pid), memory(pid)
            around = meter.read()
            settle({"subject": pid})
            settled = memory(pid)
            reaction_seconds = asyncio.run(react(control_plane)) if started.acts else None
            return Start(
                subject=subject,
                pods=store.shape.pods,
                seconds=seconds,
                cpu_seconds=cpu,
                api_server_cpu_seconds=around["api-server"],
                others_cpu_seconds=around["others"] - cpu,
                rss_mib=used.rss_mib,
                settled_mib=settled.rss_mib,
                peak_mib=memory(pid).peak_mib,
                reaction_seconds=reaction_seconds,
            )


async def react(control_plane: ControlPlane) -> float:
    """Taint the first node and wait for the first eviction. Returns the seconds."""
    began_at = time.time()
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:
        await set_taints(bulk, 0, [population.PROBE_TAINT])
    wait_for(lambda: bool(removals(control_plane)))
    return removals(control_plane)[0] - began_at


def wait_for(is_done: Callable[[], bool]) -> None:
    """Wait with a shorter interval than tests do, since the time is the result."""
    give_up_at = time.monotonic() + LIMIT_SECONDS
    while not is_done():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"not ready after {LIMIT_SECONDS} s")
        time.sleep(POLL_SECONDS)
