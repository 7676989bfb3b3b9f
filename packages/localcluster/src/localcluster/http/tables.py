"""Tables of pods and nodes for `kubectl get`, which itself shows the names and ages of objects of other kinds.

Rules: `kubernetes/pkg/printers/internalversion`. Forbidden here: everything except display.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from localcluster.kinds.pods import is_ready
from localcluster.kinds.resource import Object, Resource
from localcluster.store.entries import Entry

CONTENT_TYPE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def wants_table(accept: str, resource: Resource) -> bool:
    """True if a client prefers a table, and there is one for this kind."""
    return accept.partition(",")[0].strip() == CONTENT_TYPE and resource.plural in _COLUMNS


def table(resource: Resource, entries: Sequence[Entry], metadata: Object, now: datetime) -> Object:
    """Return a `meta.k8s.io/v1` Table. Each row contains the object's metadata."""
    shown, wide = _COLUMNS[resource.plural]
    columns = [_column(name, 0) for name in shown] + [_column(name, 1) for name in wide]
    values = [entry.decoded() for entry in entries]
    cells = _pod if resource.plural == "pods" else _node
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": [{"cells": cells(value, now), "object": _metadata_only(value)} for value in values],
    }


_COLUMNS = {
    "pods": (("Name", "Ready", "Status", "Restarts", "Age"), ("IP", "Node", "Nominated Node", "Readiness Gates")),
    "nodes": (("Name", "Status", "Roles", "Age", "Version"), ()),
}


def _column(name: str, priority: int) -> Object:
    form = "name" if name == "Name" else ""
    return {"name": name, "type": "string", "format": form, "description": "", "priority": priority}


def _metadata_only(value: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]}


def _pod(value: Object, now: datetime) -> list[Any]:
    spec, status, meta = value["spec"], value.get("status") or {}, value["metadata"]
    containers = len(spec.get("containers") or ())
    ready = containers if is_ready(value) else 0
    phase = "Terminating" if meta.get("deletionTimestamp") else status.get("phase", "Unknown")
    node = spec.get("nodeName") or "<none>"
    return [meta["name"], f"{ready}/{containers}", phase, "0", _age(meta, now), "<none>", node, "<none>", "<none>"]


def _node(value: Object, now: datetime) -> list[Any]:
    status, meta = value.get("status") or {}, value["metadata"]
    state = "Ready" if is_ready(value) else "NotReady"
    if value["spec"].get("unschedulable"):
        state += ",SchedulingDisabled"
    version = (status.get("nodeInfo") or {}).get("kubeletVersion", "")
    return [meta["name"], state, "<none>", _age(meta, now), version]


def _age(meta: Object, now: datetime) -> str:
    """Return the age of an object in seconds, minutes, hours or days."""
    seconds = max(int((now - datetime.fromisoformat(meta["creationTimestamp"])).total_seconds()), 0)
    for unit, length, least in (("d", 86400, 2), ("h", 3600, 3), ("m", 60, 2)):
        if seconds >= length * least:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
