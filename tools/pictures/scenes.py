"""The scenes of the pictures, each a function that runs commands and returns pictures by name."""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path

from localcluster import LocalCluster
from pictures.charts import draw_dashboard
from pictures.drawing import draw
from pictures.prometheus import charts, free_port, prometheus
from pictures.slo import timeline
from pictures.terminal import record
from taintwarden_demo.play import start_demo
from taintwarden_demo.scenario import POLICY, make_scenario
from taintwarden_demo.timeline import NoOutput
from taintwarden_demo.world import set_value

TAINTWARDEN = Path(sys.executable).with_name("taintwarden")
PODS_WAIT = 10
"""Exit code of a plan in which pods still wait at its end, so that a user has to act."""
FIRST_SECONDS = 8
"""Seconds until Prometheus has enough samples for a rate."""
QUIET_SECONDS, INCIDENT_SECONDS = 8, 22
SHOWN = (
    "Pods that have to leave, by policy",
    "Eviction calls by outcome",
    "Due pods that a limit delays",
    "Evicting nodes",
    "Guards",
    "Zones",
)
"""Panels of the dashboard in the picture."""
SOURCE = (
    "Drawn from the data of a Prometheus that scraped the operator, by the queries of the dashboard. Not a screenshot."
)
Pictures = Iterator[tuple[str, str]]


async def demo() -> Pictures:
    """Draw the demo while pods of zone a wait for their budget, and at the end."""
    *frames, last = await record([str(TAINTWARDEN), "demo"], {})
    middle = max(frames, key=lambda frame: (frame.count("blocked"), frame.count("evicted")))
    verdict = last[last.index("┏") :] if "┏" in last else last
    return iter([("demo", draw("demo", "make demo", middle)), ("verdict", draw("verdict", "make demo", verdict))])


async def plan() -> Pictures:
    """Draw a plan for a degraded zone."""
    arguments = ["plan", "--zone", "zone-a", "--taint", "sla=890:NoExecute"]
    async with _cluster() as (kubeconfig, _):
        screen = (await record([str(TAINTWARDEN), *arguments], {"KUBECONFIG": kubeconfig}, expected=PODS_WAIT))[-1]
    return iter([("plan", draw("plan", " ".join(["taintwarden", *arguments]), screen))])


async def sweep() -> Pictures:
    """Draw the number of pods that would leave at each value."""
    arguments = ["plan", "--sweep", "sla=990..880"]
    async with _cluster() as (kubeconfig, _):
        screen = (await record([str(TAINTWARDEN), *arguments], {"KUBECONFIG": kubeconfig}, expected=PODS_WAIT))[-1]
    return iter([("sweep", draw("sweep", " ".join(["taintwarden", *arguments]), screen))])


async def status() -> Pictures:
    """Draw the status of a policy while pods wait for their deadlines, a budget and their workload."""
    arguments = ["status", POLICY]
    async with _cluster(seconds=180) as (kubeconfig, cluster):
        await _degrade(cluster, "a1", "c1", "c2")
        looks = range(24)
        frames = [(await record([str(TAINTWARDEN), *arguments], {"KUBECONFIG": kubeconfig}))[-1] for _ in looks]
    screen = max(frames, key=lambda frame: (frame.count("udget"), frame.count("Waiting"), len(frame)))
    return iter([("status", draw("status", " ".join(["taintwarden", *arguments]), screen))])


async def incident() -> Pictures:
    """Draw dashboard and history of an incident: wrong values trip the guard, are corrected, and one node degrades."""
    arguments = ["history", "--since", "5m"]
    port = free_port()
    async with _cluster(port, seconds=180) as (kubeconfig, cluster), _scraped(port) as server:
        await asyncio.sleep(FIRST_SECONDS)
        begin = time.time()
        await asyncio.sleep(QUIET_SECONDS)
        nodes = make_scenario().nodes
        for node in nodes:
            set_value(cluster, node.name, "0")
        await asyncio.sleep(INCIDENT_SECONDS)
        for node in nodes:
            set_value(cluster, node.name, node.sla)
        await asyncio.sleep(QUIET_SECONDS)
        set_value(cluster, "a1", "890")
        await asyncio.sleep(INCIDENT_SECONDS)
        drawn = await charts(server, list(SHOWN), begin, end := time.time())
        screen = (await record([str(TAINTWARDEN), *arguments], {"KUBECONFIG": kubeconfig}))[-1]
    dashboard = draw_dashboard("Taintwarden", SOURCE, drawn, begin, end)
    timeline = draw("history", " ".join(["taintwarden", *arguments]), screen)
    return iter([("dashboard", dashboard), ("history", timeline)])


async def slo() -> Pictures:
    """Draw the timeline of the tutorial about SLOs."""
    return iter([("slo", timeline())])


async def _degrade(cluster: LocalCluster, *nodes: str) -> None:
    await asyncio.sleep(4)
    for node in nodes:
        set_value(cluster, node, "890")


@contextlib.asynccontextmanager
async def _cluster(http_port: int = 0, seconds: float = 60) -> AsyncIterator[tuple[str, LocalCluster]]:
    """Run the demo's cluster before its scenario starts, with an enforced policy, for ``seconds`` at most."""
    with tempfile.TemporaryDirectory(prefix="taintwarden-pictures-") as folder:
        async with start_demo(make_scenario(), Path(folder), http_port=http_port) as demo, asyncio.timeout(seconds):
            while not demo.observer.is_enforcing:
                await demo.tick(NoOutput())
            yield str(demo.kubeconfig), demo.cluster


@contextlib.asynccontextmanager
async def _scraped(port: int) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="taintwarden-pictures-") as folder:
        async with prometheus(Path(folder), f"127.0.0.1:{port}") as server:
            yield server


SCENES: dict[str, Callable[[], Coroutine[None, None, Pictures]]] = {
    "demo": demo,
    "plan": plan,
    "sweep": sweep,
    "status": status,
    "incident": incident,
    "slo": slo,
}
