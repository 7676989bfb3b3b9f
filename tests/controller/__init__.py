"""Helpers for tests of the controller: a clock that tests advance, objects of the API, and values of the engine."""

from typing import Any

import msgspec

from taintwarden.engine.evaluate import TaintVerdict, VerdictKind
from taintwarden.engine.model import Instant, Pod, PodClass, Taint, Toleration, Tolerations
from taintwarden.engine.policy import Policy, TaintSelector
from taintwarden.kube.wire.kinds import BudgetObject, Identity, NamespaceObject, NodeObject, PodObject, WorkloadObject

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z


class Clock:
    """The wall clock and the monotonic one, which only ``advance`` moves."""

    def __init__(self, wall: float = NOW, monotonic: float = 1_000.0) -> None:
        self.wall = wall
        self.monotonic = monotonic

    def __call__(self) -> Instant:
        return Instant(self.wall, self.monotonic)

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds


def pod_object(name: str = "web-1", **more: Any) -> PodObject:
    """A running pod on n1 as the API server sends it."""
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2023-11-14T22:00:00Z",
    }
    value = {
        "metadata": metadata | more.pop("metadata", {}),
        "spec": {"nodeName": "n1"} | more.pop("spec", {}),
        "status": {"phase": "Running"} | more.pop("status", {}),
    }
    assert not more
    return msgspec.convert(value, PodObject)


def node_object(name: str = "n1", taints: Any = (), **metadata: Any) -> NodeObject:
    value = {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "5"} | metadata,
        "spec": {"taints": list(taints)},
    }
    return msgspec.convert(value, NodeObject)


def deliver(handler: Any, *changes: Any) -> None:
    """Pass changes to a handler: objects, and the identities of deleted ones."""
    for one in changes:
        if isinstance(one, Identity):
            assert handler.lost(one)
        else:
            handler.seen(one)


def deletion(obj: Any) -> Identity:
    """The identity that a stream delivers when the object is deleted."""
    node = getattr(getattr(obj, "spec", None), "node_name", "")
    parts = {name: getattr(obj.metadata, name, "") for name in ("name", "namespace", "uid", "resource_version")}
    return Identity(**parts, node_name=node)


def namespace_object(name: str, **labels: str) -> NamespaceObject:
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, NamespaceObject)


def workload_object(uid: str = "uid-web", status: Any = None, **spec: Any) -> WorkloadObject:
    value = {
        "metadata": {"namespace": "shop", "uid": uid, "resourceVersion": "7"},
        "spec": spec,
        "status": status or {},
    }
    return msgspec.convert(value, WorkloadObject)


def budget_object(name: str = "web", status: Any = None, generation: int = 1, **spec: Any) -> BudgetObject:
    """A PodDisruptionBudget that selects ``app: web``, with the status of generation 1."""
    value = {
        "metadata": {"name": name, "namespace": "shop", "generation": generation},
        "spec": {"selector": {"matchLabels": {"app": "web"}}} | spec,
        "status": {"observedGeneration": 1} | (status or {}),
    }
    return msgspec.convert(value, BudgetObject)


GT_950 = Toleration(key="sla", operator="Gt", value="950")


def pod(name: str = "web-1", tolerations: Any = (GT_950,)) -> Pod:
    shared = PodClass("shop", {}, Tolerations(tuple(tolerations)))
    return Pod(f"uid-{name}", name, "n1", shared, NOW - 100, 7)


def policy(name: str = "sla", **more: Any) -> Policy:
    return Policy(name=name, taints=(TaintSelector("sla"),), **more)


def verdict(value: str = "940", in_policy: Policy | None = None, **more: Any) -> TaintVerdict:
    """The verdict about a pod with the tolerations of :func:`pod`."""
    fields = {"kind": VerdictKind.VIOLATED, "tolerations": Tolerations((GT_950,))} | more
    return TaintVerdict(Taint("sla", value), in_policy or policy(), **fields)
