"""Tables, which `kubectl get` shows: columns and cells of each kind.

Columns of custom kinds are their `additionalPrinterColumns`. Rules: `kubernetes/pkg/printers/internalversion`.
Forbidden here: everything that is not display.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from localcluster.kinds.resource import Object, Resource
from localcluster.kubectl.jsonpath import value_at
from localcluster.store.entries import Entry

Cells = Callable[[Object, datetime], list[Any]]


def table(resource: Resource, entries: Sequence[Entry], revision: str, now: datetime) -> Object:
    """A `meta.k8s.io/v1` Table; each row carries the object's metadata."""
    columns, cells = _layout(resource)
    rows = []
    for entry in entries:
        value = entry.decoded()
        rows.append({"cells": cells(value, now), "object": metadata_only(entry)})
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": revision},
        "columnDefinitions": columns,
        "rows": rows,
    }


def metadata_only(entry: Entry) -> Object:
    """PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": entry.decoded()["metadata"],
    }


def age(moment: str | None, now: datetime) -> str:
    """How long ago, in at most two units, as kubectl writes it."""
    if not moment:
        return "<unknown>"
    seconds = int((now - datetime.fromisoformat(moment)).total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        rest = seconds % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    return f"{hours}h" if days < 2 else f"{days}d"


def _column(name: str, *, wide: bool = False, kind: str = "string") -> Object:
    form = "name" if name == "Name" else ""
    return {"name": name, "type": kind, "format": form, "description": "", "priority": 1 if wide else 0}


def _born(value: Object, now: datetime) -> str:
    return age(value["metadata"].get("creationTimestamp"), now)


def _pod(value: Object, now: datetime) -> list[Any]:
    spec, status = value.get("spec") or {}, value.get("status") or {}
    states = status.get("containerStatuses") or []
    ready = sum(bool(one.get("ready")) for one in states)
    if not states and any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ()):
        ready = len(spec.get("containers") or ())
    phase = status.get("reason") or status.get("phase", "Unknown")
    if value["metadata"].get("deletionTimestamp"):
        phase = "Terminating"
    restarts = str(sum(one.get("restartCount", 0) for one in states))
    node, nominated = spec.get("nodeName") or "<none>", status.get("nominatedNodeName") or "<none>"
    shown = f"{ready}/{len(spec.get('containers') or ())}"
    address = status.get("podIP") or "<none>"
    return [value["metadata"]["name"], shown, phase, restarts, _born(value, now), address, node, nominated, "<none>"]


def _node(value: Object, now: datetime) -> list[Any]:
    spec, status, meta = value.get("spec") or {}, value.get("status") or {}, value["metadata"]
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    state = {"True": "Ready"}.get(conditions.get("Ready", ""), "NotReady" if "Ready" in conditions else "Unknown")
    if spec.get("unschedulable"):
        state += ",SchedulingDisabled"
    mark = "node-role.kubernetes.io/"
    roles = ",".join(sorted(key.removeprefix(mark) for key in meta.get("labels") or {} if key.startswith(mark)))
    addresses = {one.get("type"): one.get("address") for one in status.get("addresses") or ()}
    info = status.get("nodeInfo") or {}
    return [
        meta["name"],
        state,
        roles or "<none>",
        _born(value, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or "<none>",
        addresses.get("ExternalIP") or "<none>",
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _event(value: Object, now: datetime) -> list[Any]:
    about = value.get("involvedObject") or {}
    series = value.get("series") or {}
    first = value.get("firstTimestamp") or value.get("eventTime")
    last = series.get("lastObservedTime") or value.get("lastTimestamp") or first
    seen = age(last, now)
    count = series.get("count") or value.get("count") or 1
    if count > 1:
        seen = f"{seen} (x{count} over {age(first, now)})"
    subject = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    return [seen, value.get("type", ""), value.get("reason", ""), subject, value.get("message", "")]


def _budget(value: Object, now: datetime) -> list[Any]:
    spec, status = value.get("spec") or {}, value.get("status") or {}
    bounds = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [value["metadata"]["name"], *bounds, status.get("disruptionsAllowed", 0), _born(value, now)]


def _workload(value: Object, now: datetime) -> list[Any]:
    status = value.get("status") or {}
    ready, wished = status.get("readyReplicas", 0), (value.get("spec") or {}).get("replicas", 0)
    return [value["metadata"]["name"], f"{ready}/{wished}", _born(value, now)]


def _plain(value: Object, now: datetime) -> list[Any]:
    return [value["metadata"]["name"], _born(value, now)]


_NAME, _AGE = _column("Name"), _column("Age")
_NODE_WIDE = ("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")
_POD_WIDE = ("IP", "Node", "Nominated Node", "Readiness Gates")
_LAYOUTS: dict[str, tuple[list[Object], Cells]] = {
    "pods": (
        [
            *[_column(name) for name in ("Name", "Ready", "Status", "Restarts", "Age")],
            *[_column(name, wide=True) for name in _POD_WIDE],
        ],
        _pod,
    ),
    "nodes": (
        [
            *[_column(name) for name in ("Name", "Status", "Roles", "Age", "Version")],
            *[_column(name, wide=True) for name in _NODE_WIDE],
        ],
        _node,
    ),
    "events": ([_column(name) for name in ("Last Seen", "Type", "Reason", "Object", "Message")], _event),
    "poddisruptionbudgets": (
        [
            _NAME,
            _column("Min Available"),
            _column("Max Unavailable"),
            _column("Allowed Disruptions", kind="integer"),
            _AGE,
        ],
        _budget,
    ),
    **{
        plural: ([_NAME, _column("Ready"), _AGE], _workload)
        for plural in ("deployments", "replicasets", "statefulsets", "replicationcontrollers")
    },
    "leases": (
        [_NAME, _column("Holder"), _AGE],
        lambda value, now: [
            value["metadata"]["name"],
            (value.get("spec") or {}).get("holderIdentity", ""),
            _born(value, now),
        ],
    ),
    "namespaces": (
        [_NAME, _column("Status"), _AGE],
        lambda value, now: [value["metadata"]["name"], (value.get("status") or {}).get("phase", ""), _born(value, now)],
    ),
}


def _layout(resource: Resource) -> tuple[list[Object], Cells]:
    if not resource.columns:
        return _LAYOUTS.get(resource.plural, ([_NAME, _AGE], _plain))
    declared = resource.columns
    columns = [_NAME] + [
        {"format": "", "description": "", "priority": 0, **{k: v for k, v in one.items() if k != "jsonPath"}}
        for one in declared
    ]

    def cells(value: Object, now: datetime) -> list[Any]:
        found = [(one["type"], value_at(value, one["jsonPath"])) for one in declared]
        return [value["metadata"]["name"]] + [age(item, now) if kind == "date" else item for kind, item in found]

    return columns, cells
