"""Nodes, objects and views for the tests of the publisher."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from taintwarden_publisher.deciding import Change, DecisionInput
from taintwarden_publisher.nodes import Node
from taintwarden_publisher.spec import PublisherSpec, read_spec

Json = dict[str, Any]
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
OLD = NOW - timedelta(days=1)
STEPS = (0, 900, 940, 960, 980)


def body(name: str = "sla", **spec: Any) -> Json:
    """A TaintPublisher as the API server stores it, without defaults."""
    given = {"key": "sla", "url": "http://prometheus:9090", "query": "up", "steps": list(STEPS)} | spec
    given = {field: value for field, value in given.items() if value is not None}
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintPublisher",
        "metadata": {"name": name, "generation": 1, "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": given,
    }


def spec(**fields: Any) -> PublisherSpec:
    found, fault = read_spec(body(**{"minDwellSeconds": 0, "maxChangedNodes": "100%"} | fields))
    assert found is not None, fault
    return found


def taint(value: str, key: str = "sla", effect: str = "NoExecute", **more: str) -> Json:
    return {"key": key, "value": value, "effect": effect, **more}


def record(value: str, *, publisher: str = "sla", at: datetime = OLD, effects: Iterable[str] = ("NoExecute",)) -> str:
    return json.dumps(
        {"publisher": publisher, "effects": list(effects), "value": value, "from": 1.0, "at": at.isoformat()}
    )


def node_object(
    name: str,
    *taints: Json,
    record: str = "",
    labels: Mapping[str, str] | None = None,
    created: datetime = OLD,
    addresses: Iterable[str] = (),
) -> Json:
    annotations = {"published.taintwarden.io/sla": record} if record else {}
    return {
        "metadata": {
            "name": name,
            "resourceVersion": "7",
            "labels": dict(labels or {}),
            "annotations": annotations,
            "creationTimestamp": created.isoformat(),
        },
        "spec": {"taints": list(taints)},
        "status": {"addresses": [{"type": "InternalIP", "address": one} for one in addresses]},
    }


def node(name: str, *taints: Json, **more: Any) -> Node:
    return msgspec.convert(node_object(name, *taints, **more), Node)


def owned(name: str, value: str, **more: Any) -> Node:
    """A node with a taint that the publisher wrote a day ago."""
    return node(name, taint(value), record=record(value), **more)


def view(
    nodes: Iterable[Node],
    values: Mapping[str, float],
    stale: Iterable[str] = (),
    recent: Iterable[str] = (),
    **fields: Any,
) -> DecisionInput:
    return DecisionInput("sla", spec(**fields), tuple(nodes), values, frozenset(stale), NOW, frozenset(recent))


def after(node: Node, change: Change) -> Node:
    """The node as the API server stores it once the change is written."""
    annotations = dict(node.metadata.annotations)
    annotations.pop("published.taintwarden.io/sla", None)
    if change.record is not None:
        annotations["published.taintwarden.io/sla"] = change.record.text()
    metadata = msgspec.structs.replace(node.metadata, annotations=annotations)
    return msgspec.structs.replace(
        node, metadata=metadata, spec=msgspec.structs.replace(node.spec, taints=change.taints)
    )
