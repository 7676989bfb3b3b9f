"""One run of the demo from start to end: cluster, operator, scenario, result."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from localcluster import LocalCluster
from taintwarden_demo.definitions import shipped_definitions
from taintwarden_demo.judge import judge
from taintwarden_demo.observer import HOLD_SECONDS, Observer
from taintwarden_demo.operator_process import OperatorProcess, run_operator
from taintwarden_demo.replicas import Replicas
from taintwarden_demo.scenario import POLICY, TAINT, Scenario
from taintwarden_demo.summary import Report, report
from taintwarden_demo.timeline import Output
from taintwarden_demo.world import build_world, set_value

START_SECONDS = 60.0
TERMINATION_SECONDS = 1.0
TICK_SECONDS = 0.2


class DemoFailedError(Exception):
    """The demo cannot run. The message contains the reason and the end of the operator's log."""


class RunningDemo(msgspec.Struct):
    """A served cluster, with the operator and the other controllers running."""

    cluster: LocalCluster
    observer: Observer
    operator: OperatorProcess
    kubeconfig: Path
    scenario: Scenario

    async def tick(self, show: Output) -> None:
        """Wait for ``TICK_SECONDS``, and show the new lines.

        Raises:
            DemoFailedError: the operator ended.

        """
        await asyncio.sleep(TICK_SECONDS)
        show.refresh(self.observer)
        if self.operator.has_ended:
            msg = f"the operator ended; its last lines:\n{self.operator.last_log_lines()}"
            raise DemoFailedError(msg)


@asynccontextmanager
async def start_demo(scenario: Scenario, folder: Path, port: int = 0, http_port: int = 0) -> AsyncIterator[RunningDemo]:
    """Serve the cluster with all objects on ``port``, and run the operator with metrics on ``http_port``.

    Raises:
        MissingDefinitionsError: the CustomResourceDefinitions are missing.
        OSError: the port is in use.

    """
    cluster = LocalCluster(
        comparison_operators=True, kubelet=True, disruption=True, termination_seconds=TERMINATION_SECONDS
    )
    build_world(cluster, scenario, shipped_definitions())
    async with cluster.serve(port) as server:
        kubeconfig = server.write_kubeconfig(folder / "kubeconfig")
        observer, replicas = Observer(cluster.store, scenario), Replicas(cluster, scenario)
        try:
            async with run_operator(kubeconfig, folder / "operator.log", http_port) as operator:
                yield RunningDemo(cluster, observer, operator, kubeconfig, scenario)
        finally:
            replicas.stop()
            observer.close()


async def play(demo: RunningDemo, show: Output) -> Report:
    """Wait for the operator, run the scenario, and check the result.

    Raises:
        DemoFailedError: the operator does not start, or ends.

    """
    began = time.monotonic()
    await _wait_for_operator(demo, show)
    demo.observer.begin()
    for change in demo.scenario.changes:
        while demo.observer.seconds < change.at:
            await demo.tick(show)
        set_value(demo.cluster, change.node, change.value)
    scenario, facts = demo.scenario, demo.observer.facts
    while True:
        await demo.tick(show)
        checks = judge(scenario, facts)
        done = demo.observer.seconds >= scenario.ends_at and demo.observer.is_calm and all(one.ok for one in checks)
        if done or demo.observer.seconds >= scenario.gives_up_at:
            await asyncio.sleep(HOLD_SECONDS)
            show.refresh(demo.observer)
            return report(checks, time.monotonic() - began)


async def _wait_for_operator(demo: RunningDemo, show: Output) -> None:
    """Wait until the policy's status reports that it is enforced, as ``kubectl wait`` would."""
    scenario = demo.scenario
    nodes, pods = len(scenario.nodes), sum(len(one.nodes) for one in scenario.workloads)
    show.say(f"A cluster in this process: {nodes} nodes in 3 zones with taint {TAINT}=VALUE, {pods} pods:")
    for workload in scenario.workloads:
        show.say(f"  {len(workload.nodes)} {workload.name:<9} {workload.description}")
    show.say(f"Starting `taintwarden run`; waiting until policy {POLICY} is enforced.")
    try:
        async with asyncio.timeout(START_SECONDS):
            while not demo.observer.is_enforcing:
                await demo.tick(show)
    except TimeoutError:
        msg = f"policy {POLICY} was not enforced within {START_SECONDS:.0f} s; the operator's last lines:\n"
        raise DemoFailedError(msg + demo.operator.last_log_lines()) from None
