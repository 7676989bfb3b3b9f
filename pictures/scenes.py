"""What is shown: the demo in its middle and its verdict, a plan, and the status of a policy whose pods have to wait."""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path

from localcluster import LocalCluster
from pictures.drawing import draw
from pictures.terminal import record
from taintwarden_demo.play import set_stage
from taintwarden_demo.scenario import POLICY, tell_story
from taintwarden_demo.timeline import Nothing
from taintwarden_demo.world import set_value

TAINTWARDEN = Path(sys.executable).with_name("taintwarden")
PERSON = 10
"""The exit code that asks for a person; a plan in which pods wait at its end has it."""
Pictures = Iterator[tuple[str, str]]


async def demo() -> Pictures:
    """While pods of zone a wait for their budget, and at the end."""
    *frames, last = await record([str(TAINTWARDEN), "demo"], {})
    middle = max(frames, key=lambda frame: (frame.count("blocked"), frame.count("evicted")))
    verdict = last[last.index("┏") :] if "┏" in last else last
    return iter([("demo", draw("demo", "make demo", middle)), ("verdict", draw("verdict", "make demo", verdict))])


async def plan() -> Pictures:
    """Who leaves when a zone degrades."""
    arguments = ["plan", "--zone", "zone-a", "--taint", "sla=890:NoExecute"]
    async with _cluster() as (kubeconfig, _):
        screen = (await record([str(TAINTWARDEN), *arguments], {"KUBECONFIG": kubeconfig}, expected=PERSON))[-1]
    return iter([("plan", draw("plan", " ".join(["taintwarden", *arguments]), screen))])


async def status() -> Pictures:
    """The same zone, degraded in earnest: pods wait for their deadlines, for a budget and for their workload."""
    arguments = ["status", POLICY, "--watch", "--interval", "0.5"]
    async with _cluster() as (kubeconfig, cluster):
        watching = record([str(TAINTWARDEN), *arguments], {"KUBECONFIG": kubeconfig}, seconds=20)
        degrading = _degrade(cluster, "a1", "c1", "c2")
        frames, _ = await asyncio.gather(watching, degrading)
    screen = max(frames, key=lambda frame: (frame.count("udget"), frame.count("Waiting"), len(frame)))
    return iter([("status", draw("status", " ".join(["taintwarden", *arguments]), screen))])


async def _degrade(cluster: LocalCluster, *nodes: str) -> None:
    await asyncio.sleep(4)
    for node in nodes:
        set_value(cluster, node, "890")


@contextlib.asynccontextmanager
async def _cluster() -> AsyncIterator[tuple[str, LocalCluster]]:
    """The demo's cluster before its story begins, with the operator enforcing."""
    with tempfile.TemporaryDirectory(prefix="taintwarden-pictures-") as folder:
        async with set_stage(tell_story(), Path(folder)) as stage, asyncio.timeout(60):
            while not stage.observer.enforcing:
                await stage.tick(Nothing())
            yield str(stage.kubeconfig), stage.cluster


SCENES: dict[str, Callable[[], Coroutine[None, None, Pictures]]] = {"demo": demo, "plan": plan, "status": status}
