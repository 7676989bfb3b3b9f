"""What devices cost, from the bytes of the API to the machine: 5,000 slices of 8 devices, 20,000 claims, their pods."""

import json
import resource
import time
from collections.abc import Callable
from typing import Any

from bench.limit_cases import NONE
from taintwarden.controller.device_handlers import DeviceClaimHandler, SliceHandler, TaintRuleHandler
from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import Event, Machine, events
from taintwarden.engine.model import (
    DeviceTaintSelector,
    Instant,
    MonotonicTime,
    Node,
    Owner,
    Pod,
    Policy,
    Timing,
    Tolerations,
    WallTime,
)
from taintwarden.kube.watch.frames import FrameDecoder as Frames
from taintwarden.kube.wire.resources import DEVICE_CLAIMS, SLICES, TAINT_RULES
from taintwarden.telemetry.metrics import Metrics

SLICES_NUMBER, DEVICES, CLAIMS = 5_000, 8, 20_000
DRIVER, KEY, AT = "gpu.example.com", "gpu.example.com/health", "2026-01-01T00:00:00Z"
POLICY = Policy(
    name="bench",
    devices=(DeviceTaintSelector(KEY),),
    timing=Timing(violation_grace_seconds=10**6),
    limits=NONE,
)
Result = dict[str, float]


def devices(scale: float) -> Result:
    """Everything is listed; each slice is written with the same content, and with another value of a taint."""
    pods = _Population(round(CLAIMS * scale))
    slices = [pods.slice(number) for number in range(pods.nodes)]
    claims = [pods.claim(number) for number in range(pods.claims)]
    some = range(min(500, pods.nodes))
    others = [pods.slice(number, "900") for number in some]
    before = _mebibytes()
    listed = _seconds(lambda: pods.list_all(slices, claims))
    memory = _mebibytes() - before
    same = _seconds(lambda: [pods.see_slice(slices[number]) for number in some])
    changed = _seconds(lambda: [pods.see_slice(frame) for frame in others])
    return {
        "list_seconds": listed,
        "memory_mebibytes": memory,
        "us_per_slice_same": same / len(some) * 1e6,
        "us_per_slice_changed": changed / len(some) * 1e6,
        "rule_for_all_seconds": _seconds(pods.rule),
    }


def _seconds(work: Callable[[], object]) -> float:
    """Of CPU time."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _Population:
    """Nodes with one slice and four pods each."""

    def __init__(self, claims: int) -> None:
        self._machine = Machine()
        self.claims = claims
        self.nodes = max(1, claims * SLICES_NUMBER // CLAIMS)
        parts, drivers = (self._step, Metrics()), frozenset((DRIVER,))
        self._slices = SliceHandler(SLICES.name, *parts, drivers)
        self._claim_handler = DeviceClaimHandler(DEVICE_CLAIMS.name, *parts, drivers)
        self._rules = TaintRuleHandler(TAINT_RULES.name, *parts)
        self._slice_frames, self._claim_frames = Frames(SLICES), Frames(DEVICE_CLAIMS)
        self._rule_frames = Frames(TAINT_RULES)
        shared = Interner().pod_class("shop", {}, Tolerations(), owner=Owner("Job", "train", "uid-train"))
        for event in (events.PoliciesChanged((POLICY,)), events.LeadershipChanged(leading=True), events.Synced()):
            self._step(event)
        for number in range(self.nodes):
            self._step(events.NodeSeen(Node(f"n{number}", f"u{number}", {}, (), number + 1)))
        for number in range(claims):
            pod = Pod(f"pod-{number}", f"pod-{number}", f"n{number % self.nodes}", shared, 0.0, number + 1)
            self._step(events.PodSeen(pod))

    def list_all(self, slices: list[bytes], claims: list[bytes]) -> None:
        """From the bytes on."""
        for frame in slices:
            self.see_slice(frame)
        for frame in claims:
            _, found = self._claim_frames.frame(frame)
            self._claim_handler.seen(found)  # type: ignore[arg-type]
        self._step(events.DevicesKnown(known=True))
        self._wake()

    def see_slice(self, frame: bytes) -> None:
        """From the bytes on."""
        _, found = self._slice_frames.frame(frame)
        self._slices.seen(found)  # type: ignore[arg-type]
        self._wake()

    def slice(self, number: int, value: str = "990") -> bytes:
        """A slice of a node, the first of whose devices has a taint."""
        devices: list[dict[str, Any]] = [{"name": f"gpu-{index}"} for index in range(DEVICES)]
        devices[0]["taints"] = [{"key": KEY, "value": value, "effect": "NoExecute", "timeAdded": AT}]
        pool = {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1}
        return _frame(
            {"metadata": {"name": f"n{number}"}, "spec": {"driver": DRIVER, "pool": pool, "devices": devices}}
        )

    def claim(self, number: int) -> bytes:
        """A claim for one device of a node, reserved for a pod there."""
        node, device = f"n{number % self.nodes}", f"gpu-{number // self.nodes % DEVICES}"
        result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
        reserved = [{"resource": "pods", "name": f"pod-{number}", "uid": f"pod-{number}"}]
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
        return _frame({"metadata": {"name": f"c{number}", "namespace": "shop"}, "status": status})

    def rule(self) -> None:
        spec = {"deviceSelector": {}, "taint": {"key": KEY, "value": "all", "effect": "NoExecute", "timeAdded": AT}}
        _, found = self._rule_frames.frame(_frame({"metadata": {"name": "all"}, "spec": spec}))
        self._rules.seen(found)  # type: ignore[arg-type]
        self._wake()

    def _step(self, event: Event) -> None:
        self._machine.step(event, _now())

    def _wake(self) -> None:
        while self._machine.wake_after(_now()) == 0.0:
            self._machine.step(events.Woke(), _now())


def _frame(body: dict[str, Any]) -> bytes:
    return json.dumps({"type": "MODIFIED", "object": body}).encode()


def _now() -> Instant:
    return Instant(WallTime(1.8e9), MonotonicTime(1_000.0))
