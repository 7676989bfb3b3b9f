"""The objects of the world as the API server stores them: what operators and judges read."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from simulated.world import objects as world

Json = dict[str, Any]
DRIVER = "gpu.example.com"
_START = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(seconds: float) -> str:
    """A time as the API server stores it: whole seconds, cut off."""
    return (_START + timedelta(seconds=int(seconds // 1))).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def tolerations(entries: Iterable[world.Toleration]) -> list[Json]:
    names = (("key", "key"), ("operator", "operator"), ("value", "value"), ("effect", "effect"))
    found = []
    for one in entries:
        entry: Json = {name: getattr(one, field) for name, field in names if getattr(one, field)}
        entry |= {"values": list(one.values)} if one.values else {}
        entry |= {"tolerationSeconds": one.seconds} if one.seconds is not None else {}
        found.append(entry | ({"violationGraceSeconds": one.grace} if one.grace is not None else {}))
    return found


def taint(one: world.Taint) -> Json:
    added = {} if one.added is None else {"timeAdded": rfc3339(one.added)}
    return {"key": one.key, "value": one.value, "effect": one.effect} | added


def node(node: world.Node) -> Json:
    taints = [taint(one) for one in node.taints]
    annotations = {"taintwarden.io/taint-history": node.history} if node.history else {}
    metadata = {
        "name": node.name,
        "uid": node.uid,
        "labels": dict(node.labels),
        "annotations": annotations,
        "resourceVersion": str(node.version),
    }
    found: Json = {"metadata": metadata, "spec": {"taints": taints}}
    if node.drained is not None:
        condition = dict(zip(("status", "reason", "message"), node.drained, strict=True))
        found["status"] = {"conditions": [{"type": "taintwarden.io/Drained"} | condition]}
    return found


def pod(pod: world.Pod) -> Json:
    annotations = dict(pod.marks)
    if pod.extended is not None:
        annotations["taintwarden.io/tolerations"] = msgspec.json.encode(tolerations(pod.extended)).decode()
    metadata: Json = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "resourceVersion": str(pod.version),
        "creationTimestamp": rfc3339(pod.created_at),
        "labels": dict(pod.labels),
        "annotations": annotations,
    }
    if pod.stopping_until is not None:
        metadata["deletionTimestamp"] = rfc3339(pod.stopping_until)
    if pod.owner is not None:
        owner = {"apiVersion": pod.owner.api_version, "kind": pod.owner.kind, "name": pod.owner.name}
        metadata["ownerReferences"] = [owner | {"uid": pod.owner.uid, "controller": True}]
    spec = {
        "nodeName": pod.node,
        "tolerations": tolerations(pod.native),
        "priority": pod.priority,
        "terminationGracePeriodSeconds": pod.grace,
    }
    conditions = [{"type": "Ready", "status": str(pod.ready)}]
    if pod.node:
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(pod.bound_at)}
        conditions.append(bound)
    status = {"phase": "Running" if pod.running else "Pending", "conditions": conditions}
    return {"metadata": metadata, "spec": spec, "status": status}


def budget(budget: world.Budget) -> Json:
    metadata = {"name": budget.name, "namespace": budget.namespace, "generation": budget.generation}
    spec: Json = {"selector": {"matchLabels": {"app": budget.app}}}
    if budget.always_allow:
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    status = {
        "observedGeneration": budget.observed,
        "disruptionsAllowed": budget.allowed,
        "currentHealthy": budget.healthy,
        "desiredHealthy": budget.desired,
    }
    return {"metadata": metadata | {"resourceVersion": str(budget.version)}, "spec": spec, "status": status}


def policy(policy: world.Policy) -> Json:
    annotations = {} if policy.reset is None else {"taintwarden.io/guard-reset": policy.reset}
    metadata = {
        "name": policy.name,
        "uid": policy.uid,
        "generation": policy.generation,
        "creationTimestamp": rfc3339(policy.created_at),
        "annotations": annotations,
    }
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": metadata,
        "spec": policy.spec | ({"mode": "Enforce", "paused": True} if policy.spec.get("mode") == "Paused" else {}),
        "status": {name: one for name, one in (("guard", policy.guard), ("places", policy.places)) if one is not None},
    }


def profile(profile: world.Profile) -> Json:
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TolerationProfile",
        "metadata": {"name": profile.name, "namespace": profile.namespace, "uid": profile.uid},
        "spec": {
            "podSelector": {"matchLabels": dict(profile.selector)},
            "tolerations": tolerations(profile.tolerations),
        },
    }


def device_slice(found: world.DeviceSlice) -> Json:
    pool = {"name": found.pool, "generation": found.generation, "resourceSliceCount": found.slices}
    devices = [{"name": name, "taints": [taint(one) for one in taints]} for name, taints in found.devices.items()]
    return {"metadata": {"name": found.name}, "spec": {"driver": DRIVER, "pool": pool, "devices": devices}}


def device_claim(claim: world.DeviceClaim) -> Json:
    tolerated = tolerations(claim.tolerations)
    results = []
    for one in claim.devices:
        pool, _, device = one.partition("/")
        results.append({"driver": DRIVER, "pool": pool, "device": device, "tolerations": tolerated})
    reserved = [{"resource": "pods", "name": uid, "uid": uid} for uid in claim.pods]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return {"metadata": {"name": claim.name, "namespace": claim.namespace}, "status": status}


def taint_rule(rule: world.TaintRule) -> Json:
    selector = {"driver": DRIVER, "pool": rule.pool, "device": rule.device}
    named = {name: value for name, value in selector.items() if value is not None}
    return {"metadata": {"name": rule.name}, "spec": {"deviceSelector": named, "taint": taint(rule.taint)}}
