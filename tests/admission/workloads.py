"""Objects and requests as the API server sends them to the webhook."""

import json
from typing import Any

Json = dict[str, Any]

ANNOTATION = "taintwarden.io/tolerations"
PATHS = {
    ("", "Pod"): (),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
"""Path of the pod in each kind that is reviewed."""

REQUEST: Json = {
    "uid": "u",
    "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
    "name": "web",
    "namespace": "shop",
    "operation": "CREATE",
    "userInfo": {"username": "kim"},
    "object": {"metadata": {"name": "web"}},
    "oldObject": None,
    "dryRun": False,
}
"""The fields of an AdmissionRequest that the webhook reads."""


def review(**request: Any) -> Json:
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": REQUEST | request}


def extended(*tolerations: Json) -> str:
    return json.dumps(list(tolerations))


def gt(value: str = "950", key: str = "sla", **more: Any) -> Json:
    return {"key": key, "operator": "Gt", "value": value, **more}


def exists(key: str = "sla", **more: Any) -> Json:
    return {"key": key, "operator": "Exists", **more}


def pod(annotation: str | None = None, *native: Json, labels: Json | None = None, **spec: Any) -> Json:
    meta: Json = {"name": "web", "namespace": "shop", "labels": labels or {}}
    if annotation is not None:
        meta["annotations"] = {ANNOTATION: annotation}
    spec |= {"tolerations": list(native)} if native else {}
    return {"metadata": meta, "spec": {"containers": [{"name": "main", "image": "x"}], **spec}}


def inside(path: tuple[str, ...], template: Json) -> Json:
    """A workload with this template, or the pod itself."""
    found = template
    for name in reversed(path):
        found = {name: found}
    return found if not path else {"metadata": {"name": "web", "namespace": "shop"}, **found}


def controlled(obj: Json) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}
