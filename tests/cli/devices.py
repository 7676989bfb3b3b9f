"""Objects about devices, described shortly, and a cluster that serves them."""

from typing import Any

from cli.world import Json, policy
from localcluster import LocalCluster

DRIVER, KEY = "gpu.example.com", "gpu.example.com/xid"
GPU_0, GPU_1 = f"{DRIVER}/n1/gpu-0", f"{DRIVER}/n1/gpu-1"
KINDS = {"ResourceSlice": "Cluster", "ResourceClaim": "Namespaced", "DeviceTaintRule": "Cluster"}
API = "resource.k8s.io/v1"


def serve(cluster: LocalCluster, *kinds: str) -> None:
    """Serve these kinds, all of them if none is named."""
    for kind in kinds or KINDS:
        plural = f"{kind.lower()}s"
        names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
        schema: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        if kind == "ResourceSlice":
            version["selectableFields"] = [{"jsonPath": ".spec.nodeName"}]
        spec = {"group": "resource.k8s.io", "scope": KINDS[kind], "names": names, "versions": [version]}
        cluster.create(
            "customresourcedefinitions",
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.resource.k8s.io"},
                "spec": spec,
            },
        )


def sick(value: str = "79", effect: str = "NoSchedule", key: str = KEY, **more: Any) -> Json:
    """A taint of a device."""
    return {"key": key, "value": value, "effect": effect, **more}


def slice_of(pool: str = "n1", **devices: list[Json]) -> Json:
    """The devices of a node, each with its taints."""
    made = [{"name": name.replace("_", "-"), "taints": taints} for name, taints in devices.items()]
    place = {"name": pool, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": place, "nodeName": pool, "devices": made}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"slice-{pool}"}, "spec": spec}


def claim(*tolerations: Json, device: str = GPU_0, uids: tuple[str, ...] = ("pod-1",), name: str = "web") -> Json:
    """A claim for these pods."""
    driver, pool, device = device.split("/")
    result = {"request": "gpu", "driver": driver, "pool": pool, "device": device, "tolerations": list(tolerations)}
    consumers = [{"resource": "pods", "name": uid, "uid": uid} for uid in uids]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {},
        "status": status,
    }


def rule(name: str = "bad", taint: Json | None = None, **selector: str) -> Json:
    """A DeviceTaintRule; without a selector it selects every device."""
    spec = {"deviceSelector": selector, "taint": taint or sick("1", "NoExecute")}
    return {"apiVersion": API, "kind": "DeviceTaintRule", "metadata": {"name": name}, "spec": spec}


def for_devices(*effects: str, name: str = "gpu", value_type: str | None = None, **spec: Any) -> Json:
    """A policy that selects taints of devices alone."""
    selector = {"key": KEY, "effects": list(effects or ("NoExecute", "NoSchedule"))}
    made = policy(name, devices=[selector | ({"valueType": value_type} if value_type else {})], **spec)
    del made["spec"]["taints"]
    return made
