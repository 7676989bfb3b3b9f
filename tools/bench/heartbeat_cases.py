"""What the heartbeat of a node costs, from the bytes of its watch to the machine, where nothing changes."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from bench.limit_cases import NONE
from taintwarden.controller.clock import system_clock
from taintwarden.controller.decoding import Decoder
from taintwarden.controller.stream_handlers import NodeHandler
from taintwarden.engine.machine import Event, Machine, events
from taintwarden.engine.model import Instant, MonotonicTime, Policy, SourceKind, TaintSelector, ValueSource, WallTime
from taintwarden.kube.watch.frames import FrameDecoder as Frames
from taintwarden.kube.wire.resources import NODES
from taintwarden.telemetry.metrics import Metrics

NODES_REPORTING, ROUNDS = 200, 60
"""The fastest round counts: the others had to share the machine."""
PLAIN = Policy(name="bench", taints=(TaintSelector("*"),), limits=NONE)
READING = Policy(
    name="bench",
    taints=(
        TaintSelector("kubelet", source=ValueSource(SourceKind.NODE_INFO, "kubeletVersion")),
        TaintSelector("gpu", source=ValueSource(SourceKind.CONDITION, "GPUHealthy")),
    ),
    limits=NONE,
)
Result = dict[str, float]
CONDITIONS = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    "GPUHealthy": ("True", "GPUIsHealthy", "all GPUs answer"),
}
INFO = {
    "machineID": (1, "0f343b0931126a20f133d67c2b018a3b"),
    "systemUUID": (2, "5f343b09-3112-6a20-f133-d67c2b018a3b"),
    "bootID": (3, "7c4e7e20-55c9-4a0a-9c3d-3d1c5a7a8f43"),
    "kernelVersion": (4, "6.8.0-1042-gke"),
    "osImage": (5, "Ubuntu 24.04.3 LTS"),
    "containerRuntimeVersion": (6, "containerd://2.1.4"),
    "kubeletVersion": (7, "v1.36.1"),
    "kubeProxyVersion": (8, "v1.36.1"),
    "operatingSystem": (9, "linux"),
    "architecture": (10, "amd64"),
}
LABELS = {f"label.example/{number}": f"value-{number}" for number in range(20)}
ANNOTATIONS = {f"annotation.example/{number}": f"value-{number}" * 4 for number in range(8)}
IMAGES = [f"registry.example.com/team/image-{number}@sha256:{number:064x}" for number in range(40)]
STARTED_AT, TRANSITION = 1_767_225_600, "2026-01-01T00:00:00Z"


def heartbeats_protobuf(scale: float) -> Result:
    """As the operator receives them."""
    return _heartbeats(protobuf_frame, PLAIN, scale)


def heartbeats_protobuf_read(scale: float) -> Result:
    """The same, where a policy reads a field and a condition of each."""
    return _heartbeats(protobuf_frame, READING, scale)


def heartbeats_json(scale: float) -> Result:
    """From a server that writes no protobuf."""
    return _heartbeats(json_frame, PLAIN, scale)


def heartbeats_json_read(scale: float) -> Result:
    """The same, where a policy reads a field and a condition of each."""
    return _heartbeats(json_frame, READING, scale)


def _heartbeats(encode: Callable[[int, int], bytes], policy: Policy, scale: float) -> Result:
    """One report of each node in each round. Only times and the version differ."""
    machine, version, rounds = Machine(), 0, max(1, round(ROUNDS * scale))
    decoder, frames = Decoder(system_clock), Frames(NODES)
    handler = NodeHandler("nodes", lambda event: _step(machine, event), Metrics(), decoder)
    decoder.follow([policy])
    _step(machine, events.PoliciesChanged((policy,)))
    best = float("inf")
    for turn in range(rounds + 1):
        chunk = b"".join(encode(index, version + index) for index in range(NODES_REPORTING))
        version += NODES_REPORTING
        began = time.process_time()
        for raw in frames.split(chunk)[0]:
            handler.seen(frames.frame(raw)[1])  # type: ignore[arg-type]
        if turn:  # the first brings them
            best = min(best, time.process_time() - began)
    assert len(machine.view.nodes) == NODES_REPORTING
    return {"us_per_heartbeat": best / NODES_REPORTING * 1e6, "bytes_each": len(chunk) / NODES_REPORTING}


def _step(machine: Machine, event: Event) -> None:
    machine.step(event, Instant(WallTime(0.0), MonotonicTime(0.0)))


def json_frame(index: int, version: int) -> bytes:
    """As a line of a watch."""
    conditions = [
        {
            "type": kind,
            "status": status,
            "lastHeartbeatTime": TRANSITION,
            "lastTransitionTime": TRANSITION,
            "reason": reason,
            "message": message,
        }
        for kind, (status, reason, message) in CONDITIONS.items()
    ]
    metadata = {"name": f"node-{index}", "uid": f"uid-{index}", "resourceVersion": str(version)}
    node = {
        "metadata": {**metadata, "labels": LABELS, "annotations": ANNOTATIONS},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "conditions": conditions,
            "nodeInfo": {name: value for name, (_, value) in INFO.items()},
            "images": [{"names": [one], "sizeBytes": 100_000_000} for one in IMAGES],
        },
    }
    return json.dumps({"type": "MODIFIED", "object": node}).encode() + b"\n"


def protobuf_frame(index: int, version: int) -> bytes:
    """With its length before it."""
    now, since = {1: STARTED_AT + version}, {1: STARTED_AT}
    conditions = [
        {1: kind, 2: status, 3: now, 4: since, 5: reason, 6: message}
        for kind, (status, reason, message) in CONDITIONS.items()
    ]
    metadata = {1: f"node-{index}", 5: f"uid-{index}", 6: str(version)}
    texts = {11: _entries(LABELS), 12: _entries(ANNOTATIONS)}
    images = [{1: one, 2: 100_000_000} for one in IMAGES]
    status = {4: conditions, 7: dict(INFO.values()), 8: images}
    node = _message({1: metadata | texts, 2: {1: "10.0.0.0/24"}, 3: status})
    envelope = b"k8s\0" + _message({1: {1: "v1", 2: "Node"}, 2: node})
    frame = _message({1: "MODIFIED", 2: {1: envelope}})
    return len(frame).to_bytes(4, "big") + frame


def _entries(texts: Mapping[str, str]) -> list[Any]:
    return [{1: key, 2: value} for key, value in texts.items()]


def _message(fields: Mapping[int, Any]) -> bytes:
    listed = ((number, value if isinstance(value, list) else [value]) for number, value in fields.items())
    return b"".join(_field(number, one) for number, values in listed for one in values)


def _field(number: int, value: Any) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    raw = value.encode() if isinstance(value, str) else _message(value) if isinstance(value, Mapping) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
