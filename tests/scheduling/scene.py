"""Pods as schedulers send them, and nodes as the extender knows them."""

import json
from typing import Any

import msgspec

from taintwarden.controller.clock import system_clock
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.engine.model import Gates, MonotonicTime, Profile, Taint
from taintwarden.engine.profile_selection import Profiles
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden_placement.scheduling.demands import Demands, UnboundPod
from taintwarden_placement.scheduling.extender import SchedulerExtender
from taintwarden_placement.scheduling.node_changes import NodeChanges
from taintwarden_placement.scheduling.node_filters import NodeFacts, NodeFilters, NodeReader

READ = NodeReader()
ABOVE = {"key": "sla", "operator": "Gt", "value": "950", "effect": "NoSchedule"}
EXISTS = {"key": "sla", "operator": "Exists"}
NEWER = {"key": "kubelet", "operator": "SemverGt", "values": ["1.31.99"]}


def terms(*expressions: Any) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}


def required(*expressions: Any) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms(*expressions)}


def preferred(weight: int, *expressions: Any) -> dict[str, Any]:
    preference = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}


def pod_json(
    *, tolerations: Any = None, affinity: Any = None, native: Any = (EXISTS,), **labels: str
) -> dict[str, Any]:
    given = {"tolerations": tolerations, "node-affinity": affinity}
    texts = {
        f"taintwarden.io/{name}": value if isinstance(value, str) else json.dumps(value)
        for name, value in given.items()
        if value is not None
    }
    metadata = {"name": "web", "namespace": "shop", "labels": labels, "annotations": texts}
    return {"metadata": metadata, "spec": {"tolerations": list(native)}}


def pod(**parts: Any) -> UnboundPod:
    return msgspec.convert(pod_json(**parts), UnboundPod)


def node(*taints: Taint, **labels: str) -> NodeFacts:
    written = [{"key": one.key, "value": one.value, "effect": one.effect} for one in taints]
    return READ(msgspec.convert({"metadata": {"labels": labels}, "spec": {"taints": written}}, NodeObject))


def sla(value: int | str, effect: str = "NoSchedule") -> Taint:
    return Taint("sla", str(value), effect)


class Scene:
    """An extender and what it knows."""

    def __init__(self, gates: Gates | None = None, *, shows_values: bool = True, **bounds: int) -> None:
        self.nodes: dict[str, NodeFacts] = {}
        self.profiles = Profiles()
        self.counted: list[tuple[str, int]] = []
        self.demands = Demands(Decoder(system_clock), self.profiles)
        self.filters = NodeFilters(gates or Gates(), **bounds)
        self.now = 100.0
        self.node_changes = NodeChanges(lambda: MonotonicTime(self.now))
        self.extender = SchedulerExtender(
            self.nodes.get, self.demands, self.filters, self.node_changes, self._count, shows_values=shows_values
        )

    def _count(self, reason: str, nodes: int) -> None:
        self.counted.append((reason, nodes))

    def profile(self, profile: Profile) -> None:
        self.profiles.put(profile.namespace, profile.name, profile)
