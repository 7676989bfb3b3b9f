"""Objects as kube-apiserver answers them in protobuf: those of a small cluster, read once and kept in a file."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench import population
from bench.bulk import Bulk
from bench.cluster import ControlPlane, Store
from bench.population import Shape
from taintwarden.kube.wire.formats import PROTOBUF
from taintwarden.kube.wire.protobuf_frames import MAGIC
from taintwarden.kube.wire.protobuf_kinds import MESSAGES
from taintwarden.kube.wire.resources import NAMESPACES, NODES, PODS, REPLICA_SETS, Resource

RECORDED: tuple[Resource[Any], ...] = (NODES, PODS, NAMESPACES, REPLICA_SETS)
SMALL = Shape(population.WORKLOADS, population.WORKLOADS)
"""One pod of each workload."""

Recording = Mapping[str, list[bytes]]
"""Encoded objects by the name of their resource, in the order of the list."""


def recording(folder: Path) -> Recording:
    """The recording in this folder, which is made if there is none."""
    path = folder / "recording.msgpack"
    if not path.exists():
        with Store(folder, SMALL).open() as control_plane:
            path.write_bytes(msgspec.msgpack.encode(asyncio.run(_record(control_plane))))
    return msgspec.msgpack.decode(path.read_bytes(), type=dict[str, list[bytes]])


async def _record(control_plane: ControlPlane) -> Recording:
    async with Bulk.open(control_plane.admin_kubeconfig) as bulk:
        return {
            resource.name: [_plain(resource, item) for item in _items(await bulk.read(resource.path, PROTOBUF))]
            for resource in RECORDED
        }


def _items(body: bytes) -> list[bytes]:
    """Lists of kube-apiserver without a limit have one page."""
    content = MESSAGES["runtime.Unknown"].FromString(body.removeprefix(MAGIC)).raw
    return list(MESSAGES["meta.v1.List"].FromString(content).items)


def _plain(resource: Resource[Any], item: bytes) -> bytes:
    """The object without managedFields, which are more than half of it.

    A client that decodes spends less on them than one that transfers: without them the comparison is stricter.
    """
    found = MESSAGES[resource.message].FromString(item)
    found.metadata.DiscardUnknownFields()
    return bytes(found.SerializeToString())
