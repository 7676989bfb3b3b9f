"""A cluster for `doctor`, described shortly, and what a check says about it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from cli.world import NOON, Json, node, pod
from taintwarden.engine.model import Gates
from taintwarden.kube.wire.kinds import NamespaceObject, NodeObject
from taintwarden_cli.doctor.check import Diagnosis, ReportedFinding
from taintwarden_cli.doctor.doctor_snapshot import DoctorSnapshot, WebhookConfiguration
from taintwarden_cli.doctor.examining import diagnose, select_checks
from taintwarden_cli.doctor.inventory import Inventory
from taintwarden_cli.rehearsal.snapshot import FullBudget
from taintwarden_cli.rehearsal.sources import WORKLOADS
from taintwarden_devices.objects import DeviceClaimObject, SliceObject, TaintRuleObject
from taintwarden_placement.admission.annotated_objects import TEMPLATES

KINDS = {listing.kind: listing for listing in WORKLOADS.values()}
Taking: dict[str, tuple[str, type[Any]]] = {
    "Node": ("nodes", NodeObject),
    "Namespace": ("namespaces", NamespaceObject),
    "PodDisruptionBudget": ("budgets", FullBudget),
    "MutatingWebhookConfiguration": ("mutating", WebhookConfiguration),
    "ValidatingWebhookConfiguration": ("validating", WebhookConfiguration),
    "TaintEvictionPolicy": ("policies", dict),
    "TolerationProfile": ("profiles", dict),
    "ResourceSlice": ("slices", SliceObject),
    "ResourceClaim": ("device_claims", DeviceClaimObject),
    "DeviceTaintRule": ("taint_rules", TaintRuleObject),
}


def workload(kind: str = "Deployment", name: str = "web", template: Json | None = None, **more: Any) -> Json:
    """One with a template; `spec` and `metadata` add fields."""
    inner = {"metadata": {"labels": {"app": name}}, "spec": {}}
    for part, fields in (template or {}).items():
        inner[part] = inner[part] | fields
    body: Any = inner
    for step in reversed(TEMPLATES[KINDS[kind].group, kind].split(".")):
        body = {step: body}
    metadata = {"name": name, "namespace": "shop", "uid": f"{kind}-{name}"} | more.pop("metadata", {})
    return {"kind": kind, "metadata": metadata, **more, "spec": body["spec"] | more.get("spec", {})}


def controlled(kind: str, name: str) -> list[Json]:
    api = KINDS[kind].group
    return [{"apiVersion": f"{api}/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}]


def replicas(count: int, *tolerations: Json, name: str = "web", on: Sequence[str] = ("n1",), **more: Any) -> list[Json]:
    """A Deployment's pods, its ReplicaSet and itself."""
    labels = {"labels": {"app": name, **more.pop("labels", {})}}
    made = []
    for number in range(count):
        metadata = {"name": f"{name}-{number}", "uid": f"{name}-{number}", **labels}
        metadata["ownerReferences"] = controlled("ReplicaSet", f"{name}-1")
        spec = {"nodeName": on[number % len(on)], **more.get("spec", {})}
        made.append(pod(*tolerations, extended=more.get("extended"), metadata=metadata, spec=spec))
    annotations = made[0]["metadata"]["annotations"] if made else {}
    template = {
        "metadata": {**labels, "annotations": annotations},
        "spec": {"tolerations": list(tolerations), **more.get("spec", {})},
    }
    owner = {"ownerReferences": controlled("Deployment", name)}
    return [
        *made,
        workload("ReplicaSet", f"{name}-1", template, metadata=owner),
        workload("Deployment", name, template),
    ]


def named(name: str, *taints: Json, **labels: str) -> Json:
    """A node."""
    made = node(*taints, labels=labels)
    made["metadata"] |= {"name": name, "uid": name}
    return made


def snapshot(*objects: Json | list[Json], now: float = NOON, **more: Any) -> DoctorSnapshot:
    inventory, found = Inventory(now), DoctorSnapshot(now, server="https://test", namespace="taintwarden-system")
    for one in (each for part in objects for each in (part if isinstance(part, list) else [part])):
        kind = one["kind"]
        if kind == "Pod":
            inventory.add_pods([json.dumps(one).encode()])
        elif kind in KINDS:
            inventory.add_workloads(KINDS[kind], [json.dumps(one).encode()])
        else:
            field, wanted = Taking[kind]
            setattr(found, field, [*getattr(found, field), msgspec.convert(one, wanted)])
    found.add_inventory(inventory)
    for field, value in more.items():
        setattr(found, field, value)
    return found


def diagnosed(*objects: Json | list[Json], gates: Gates | None = None, **more: Any) -> Diagnosis:
    return diagnose(snapshot(*objects, **more), select_checks(()), gates or Gates())


Ask = Callable[..., list[ReportedFinding]]


def asking(check: str) -> Ask:
    """A function that returns the findings of this check in a cluster with these objects."""

    def ask(*objects: Json | list[Json], gates: Gates | None = None, **more: Any) -> list[ReportedFinding]:
        return diagnose(snapshot(*objects, **more), select_checks([check]), gates or Gates()).findings

    return ask


def subjects(found: list[ReportedFinding]) -> list[str]:
    return [str(one.subject) for one in found]
