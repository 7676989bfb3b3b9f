"""Reads the pods of a workload or of a node, with the objects that decide about them."""

import asyncio
from typing import Any
from urllib.parse import quote

import msgspec

from taintwarden.kube.wire.kinds import NodeObject
from taintwarden.kube.wire.resources import NODES, PODS
from taintwarden_cli.rehearsal.places import PlacedPod, selector_text
from taintwarden_cli.rehearsal.reading import Reader
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.rehearsal.sources import DEVICES, Source

WORKLOADS = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "ReplicaSet": "replicasets",
}


_LIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods without a node, too."""


class _Workload(msgspec.Struct):
    spec: dict[str, Any] = {}


async def read_workload(session: Session, kind: str, namespace: str, name: str, now: float) -> Snapshot:
    """The pods that a workload of one of ``WORKLOADS`` selects.

    Raises:
        ClusterError: the workload does not exist, or a required source cannot be read.

    """
    plural, space = WORKLOADS[kind], f"namespaces/{quote(namespace, safe='')}"
    path = f"/apis/apps/v1/{space}/{plural}/{quote(name, safe='')}"
    workload = await session.read(path, _Workload, plural)
    if workload is None:
        msg = f"there is no {kind} {namespace}/{name} in the cluster at {session.cluster}"
        raise ClusterError(msg)
    labels = selector_text(workload.spec.get("selector") or {})
    return await _read(session, f"/api/v1/{space}/pods", _LIVE, labels, now)


async def read_node(session: Session, name: str, now: float) -> Snapshot:
    """The pods of a node.

    Raises:
        ClusterError: the node does not exist, or a required source cannot be read.

    """
    node = await session.read(f"{NODES.path}/{quote(name, safe='')}", NodeObject, "nodes")
    if node is None:
        msg = f"there is no node {name} in the cluster at {session.cluster}"
        raise ClusterError(msg)
    found = await _read(session, PODS.path, f"spec.nodeName={name}", "", now)
    found.nodes = found.nodes or [node]  # without pods no node is read there
    return found


async def _read(session: Session, path: str, fields: str, labels: str, now: float) -> Snapshot:
    found = Snapshot(now)
    wanted = (Source.POLICIES, Source.PROFILES, Source.NAMESPACES, Source.BUDGETS, *DEVICES)
    await Reader(session, found).read(wanted)
    for source in (Source.POLICIES, Source.PROFILES):
        if source in found.problems:
            raise ClusterError(found.problems[source])
    pages = session.pages(path, PlacedPod, "pods", fields, labels)
    found.pods = [pod async for page in pages for pod in page]
    if any(pod.is_pending for pod in found.pods):
        found.nodes = [node async for page in session.pages(NODES.path, NodeObject, NODES.name) for node in page]
        return found
    names = sorted({pod.spec.node_name for pod in found.pods if pod.spec.node_name})
    read = (session.read(f"{NODES.path}/{quote(name, safe='')}", NodeObject, "nodes") for name in names)
    found.nodes = [node for node in await asyncio.gather(*read) if node is not None]
    return found


def around(snapshot: Snapshot, pod: PlacedPod) -> Snapshot:
    """The part of a snapshot that is relevant to one of its pods."""
    space = pod.metadata.namespace
    return msgspec.structs.replace(
        snapshot.of_pods((pod.metadata.uid,)),
        pods=[pod],
        nodes=[node for node in snapshot.nodes if pod.is_pending or node.metadata.name == pod.spec.node_name],
        namespaces=[one for one in snapshot.namespaces if one.metadata.name == space],
        budgets=[one for one in snapshot.budgets if one.metadata.namespace == space],
        profiles=[one for one in snapshot.profiles if (one.get("metadata") or {}).get("namespace") == space],
    )
