"""How long commands take in a large cluster: those that ask for one object, and those that need everything."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import population
from bench.bulk import Bulk
from bench.cluster import BYTECODE, EXECUTABLE, POLICY, ControlPlane, Operator, Store, set_taints
from bench.usage import CpuMeter, settle

READY_SECONDS = 300
NEEDING_EVERYTHING = (("plan",), ("doctor",))


@dataclass(frozen=True)
class Answer:
    """One command. Its peak of memory, and what it cost the API server."""

    pods: int
    exit_code: int
    seconds: float
    cpu_seconds: float
    api_server_cpu_seconds: float
    peak_mib: float


Ask = Callable[[tuple[str, ...]], Answer]


@contextmanager
def measuring(store: Store) -> Iterator[tuple[list[tuple[str, ...]], Ask]]:
    """The commands, and how to measure one. The operator leads, and the pods of one node have to leave in an hour."""
    with store.open() as control_plane:
        spec = POLICY["spec"] | {"timing": {"violationGraceSeconds": 3600}}
        control_plane.client.apply(POLICY | {"spec": spec})
        with Operator(control_plane.operator_kubeconfig(), control_plane.folder) as operator:
            operator.wait_leading(READY_SECONDS)
            pod = asyncio.run(_taint_first_node(control_plane))
            pids = {"operator": operator.process.pid or 0, "api-server": control_plane.api_server.pid or 0}
            settle(pids)
            commands = [("status",), ("explain", "pod", pod), ("explain", "node", population.node_name(0))]
            yield [*commands, *NEEDING_EVERYTHING], lambda words: _ask(control_plane, store.shape.pods, words)


async def _taint_first_node(control_plane: ControlPlane) -> str:
    """The name of one of its pods."""
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:
        await set_taints(bulk, 0, [population.PROBE_TAINT])
        found = await bulk.get(f"/api/v1/pods?fieldSelector=spec.nodeName={population.node_name(0)}&limit=1")
    meta = found["items"][0]["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


def _ask(control_plane: ControlPlane, pods: int, words: tuple[str, ...]) -> Answer:
    server = control_plane.api_server.pid or 0
    settle({"api-server": server})
    command = [EXECUTABLE, *words, f"--kubeconfig={control_plane.admin_kubeconfig}"]
    meter, began = CpuMeter({"api-server": server}), time.monotonic()
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere, env=os.environ | BYTECODE)
        _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    return Answer(
        pods,
        os.waitstatus_to_exitcode(status),
        seconds,
        used.ru_utime + used.ru_stime,
        meter.read()["api-server"],
        used.ru_maxrss / 1024,
    )
