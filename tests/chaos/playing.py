"""One run of one fault: warm up, break, repair, freeze, wait until every pod that has to leave has left, judge."""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.faults import FAULTS, Fault, Scene
from chaos.judge import Judge, Verdict
from chaos.judge.facts import Between
from chaos.judge.judge import Tolerance
from chaos.plane import SUBJECT, Plane
from chaos.replicas import Replicas
from chaos.world import Scale, World
from controlplane.network import Network

# Faults last for a time of the real world, in which programs of others run: no clock can be injected.
WARM_SECONDS = 5.0
"""Values change before the fault begins."""
QUIET_SECONDS = 5.0
"""No eviction may follow once all pods are settled."""
LOOK_SECONDS = 1.0
TICK_SECONDS = 0.5


@dataclass(frozen=True)
class Run:
    """One run and what the judge says."""

    fault: str
    seed: int
    scale: Scale
    verdict: Verdict
    seconds: float
    measured: str = ""

    @property
    def breaches(self) -> dict[str, int]:
        """The counts that should be zero and are not."""
        excused = FAULTS[self.fault].excused
        return {name: count for name, count in self.verdict.breaches().items() if name not in excused}


@contextmanager
def opened(scale: Scale, *, keep: bool = False) -> Iterator[Scene]:
    """A control plane with a world and two replicas of the operator, one of which leads."""
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        with ExitStack() as stack:
            plane = stack.enter_context(Plane(folder))
            plane.apply_crds()
            plane.apply_manifests()
            assert plane.ca is not None
            network = stack.enter_context(Network(plane.server, plane.ca, plane.server_certificate("chaos-proxy")))
            world = stack.enter_context(World(plane.client, scale))
            judge = Judge(plane.admin_kubeconfig, plane.folder / "audit.log", SUBJECT)
            stack.callback(judge.close)
            replicas = stack.enter_context(Replicas(plane, network))
            yield Scene(plane, network, replicas, world, judge, random.Random(0))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def play(scene: Scene, name: str, seed: int, scale: Scale) -> Run:
    """Play one fault and judge it."""
    fault = FAULTS[name]()
    scene.random.seed(seed)
    began = time.monotonic()
    scene.world.recover()
    fault.prepare(scene)
    begin = time.time()
    scene.world.begin(seed)
    time.sleep(WARM_SECONDS)  # the wave is in progress when the fault begins
    _break(scene, fault)
    fault.end(scene)
    time.sleep(fault.after_seconds)  # the world continues for this time after the fault
    scene.world.freeze()
    frozen = time.time()
    left = _settle(scene, frozen + fault.bound_seconds)
    settled = time.time()
    time.sleep(QUIET_SECONDS)  # nothing may happen any more
    end = time.time()
    unwell = [Between(begin, frozen + fault.bound_seconds)] if fault.hinders else []
    verdict = scene.judge.verdict(begin, end, Tolerance(fault.staleness_seconds, fault.in_flight, unwell))
    verdict.settled_seconds = settled - frozen
    verdict.calls_per_second = scene.replicas.most_calls_per_second(begin, end)
    for pod in left:
        verdict.count("lost", pod)
    fault.clear(scene)
    seconds = time.monotonic() - began
    return Run(name, seed, scale, verdict, seconds, fault.measured())


def _break(scene: Scene, fault: Fault) -> None:
    """The time in which the fault lasts, with a wrong value on every node in the middle."""
    began = time.monotonic()
    fault.start(scene)
    is_mistaken = False
    while (elapsed := time.monotonic() - began) < fault.seconds:
        fault.tick(scene, elapsed)
        if elapsed > fault.seconds / 2 and not is_mistaken:
            is_mistaken = True
            scene.world.mistake()
        time.sleep(TICK_SECONDS)  # the fault lasts in real time, and this is its pulse


def _settle(scene: Scene, until: float) -> list[str]:
    """Wait until no pod has to leave; the pods that are left at the end."""
    while left := scene.judge.must_leave():
        if time.time() > until:
            break
        time.sleep(LOOK_SECONDS)
    return left
