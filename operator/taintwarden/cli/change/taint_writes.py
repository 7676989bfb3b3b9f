"""Sets taints of nodes, each only if the node has not changed since it was read."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from taintwarden.kube.wire.resources import NODES
from taintwarden.rehearsal.repairing import Repair
from taintwarden.rehearsal.session import ClusterError, Session

FIELD_MANAGER = "taintwarden-repair"


class _Meta(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str


class _Spec(msgspec.Struct):
    taints: list[dict[str, Any]] = []


class _Node(msgspec.Struct):
    """A node with its taints as they are stored: those that stay must not change."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


async def set_taints(session: Session, wanted: Sequence[Repair]) -> list[str]:
    """Set each value. Returns what went wrong; a failure does not stop the others."""
    failures = []
    for one in wanted:
        try:
            await _set(session, one)
        except ClusterError as error:
            failures.append(f"node {one.node}: {error}")
    return failures


async def _set(session: Session, wanted: Repair) -> None:
    path = f"{NODES.path}/{quote(wanted.node, safe='')}"
    node = await session.read(path, _Node, "nodes")
    if node is None:
        msg = "it does not exist any more"
        raise ClusterError(msg)
    taints, is_set = [], False
    for taint in node.spec.taints:
        if (taint.get("key"), taint.get("effect")) != (wanted.key, wanted.effect):
            taints.append(taint)
        elif taint.get("value", "") == wanted.current:
            taints.append({"key": wanted.key, "value": wanted.value, "effect": wanted.effect})
            is_set = True
    if not is_set:
        msg = f"its taint {wanted.key}:{wanted.effect} was changed meanwhile: look again"
        raise ClusterError(msg)
    metadata = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
    await session.patch(path, {"metadata": metadata, "spec": {"taints": taints}}, "nodes", FIELD_MANAGER)
