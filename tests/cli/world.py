"""A pod on a node, described shortly, and what `explain` says about it."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from taintwarden.engine.model import Gates
from taintwarden_cli.explain.explaining import explain
from taintwarden_cli.explain.explanation import PodExplanation, TaintExplanation
from taintwarden_cli.rehearsal.files import snapshot_from_files
from taintwarden_cli.rehearsal.manifests import Document
from taintwarden_cli.rehearsal.snapshot import Snapshot

Json = dict[str, Any]

NOON = datetime.fromisoformat("2026-01-31T12:00:00Z").timestamp()


def toleration(operator: str, value: str = "", key: str = "sla", **more: Any) -> Json:
    return {"key": key, "operator": operator, "value": value, "effect": "NoExecute"} | more


def taint(value: str = "940", key: str = "sla", effect: str = "NoExecute", **more: Any) -> Json:
    return {"key": key, "value": value, "effect": effect} | more


def history(*values: tuple[str, float], name: str = "sla:NoExecute") -> str:
    """The node's annotation: values and how many seconds before noon each began."""
    return json.dumps({name: {"values": [[NOON - ago, [value]] for value, ago in values]}})


def pod(*tolerations: Json, extended: Any = None, annotations: Json | None = None, **more: Any) -> Json:
    annotations = dict(annotations or {})
    if extended is not None:
        annotations["taintwarden.io/tolerations"] = json.dumps(extended)
    metadata = {"name": "web", "namespace": "shop", "uid": "pod-1", "annotations": annotations}
    metadata |= {"creationTimestamp": "2026-01-31T09:00:00Z", "labels": {"app": "web"}} | more.pop("metadata", {})
    spec = {"nodeName": "n1", "tolerations": list(tolerations)} | more.pop("spec", {})
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]} | more.pop("status", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def node(*taints: Json, recorded: str = "", labels: Json | None = None) -> Json:
    annotations = {"taintwarden.io/taint-history": recorded} if recorded else {}
    metadata = {"name": "n1", "uid": "node-1", "annotations": annotations, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}}


def policy(name: str = "sla", key: str = "sla", created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Json:
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": {"name": name, "uid": f"policy-{name}", "creationTimestamp": created},
        "spec": {"taints": [{"key": key}]} | spec,
    }


def kept_from_enforcing(policy: Json, generation: int = 1) -> Json:
    """The policy, at its first generation, as an operator with --dry-run reports it at this one."""
    condition = {"type": "Enforcing", "status": "False", "reason": "DryRun", "observedGeneration": generation}
    condition |= {"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    metadata = {**policy["metadata"], "generation": 1}
    return {**policy, "metadata": metadata, "status": {"conditions": [condition]}}


def profile(name: str, *tolerations: Json, space: str = "shop", **labels: str) -> Json:
    """A TolerationProfile for the pods with these labels."""
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TolerationProfile",
        "metadata": {"name": name, "namespace": space},
        "spec": {"podSelector": {"matchLabels": labels}, "tolerations": list(tolerations)},
    }


def namespace(**labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}


def budget(name: str = "web", allowed: int = 0, **spec: Any) -> Json:
    status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}} | spec,
        "status": status,
    }


def snapshot(*objects: Json, now: float = NOON) -> Snapshot:
    documents = [Document("world.yaml", index, 1, one) for index, one in enumerate(objects, 1)]
    return snapshot_from_files(documents, "shop", "web", now)


def explained(*objects: Json, now: float = NOON, gates: Gates | None = None) -> PodExplanation:
    return explain(snapshot(*objects, now=now), gates or Gates())


def only_taint(*objects: Json, **more: Any) -> TaintExplanation:
    (found,) = explained(*objects, **more).taints
    return found


def reasons(found: TaintExplanation) -> dict[str, str]:
    return {one.policy: one.reason for one in found.other_policies}


def answers(found: TaintExplanation) -> Sequence[tuple[str, str, str]]:
    return [(one.text, one.source, one.answer) for one in found.tolerations]
