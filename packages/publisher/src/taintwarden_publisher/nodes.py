"""Structs with the parts of a node that a publisher reads."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import field

Taint = Mapping[str, Any]
"""A taint as the API server stores it, including fields that are not known here."""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """``metadata`` of a node."""

    name: str
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    creation_timestamp: datetime = datetime(1970, 1, 1, tzinfo=UTC)


class NodeSpec(msgspec.Struct, frozen=True):
    """``spec`` of a node."""

    taints: tuple[Taint, ...] = ()


class Address(msgspec.Struct, frozen=True):
    """``status.addresses[]``."""

    address: str = ""


class NodeStatus(msgspec.Struct, frozen=True):
    """``status`` of a node."""

    addresses: tuple[Address, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.metadata.name

    def taints(self, key: str) -> Mapping[str, str]:
        """Return the values of the node's taints with this key, by effect."""
        return {one.get("effect", ""): one.get("value", "") for one in self.spec.taints if one.get("key") == key}
