"""The part of a node that a publisher reads."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import field

Taint = Mapping[str, Any]
"""As the API server has it: fields that are not known here stay."""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """Of a node."""

    name: str
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    creation_timestamp: datetime = datetime(1970, 1, 1, tzinfo=UTC)


class NodeSpec(msgspec.Struct, frozen=True):
    """Of a node."""

    taints: tuple[Taint, ...] = ()


class Address(msgspec.Struct, frozen=True):
    """One way to reach a node."""

    address: str = ""


class NodeStatus(msgspec.Struct, frozen=True):
    """Of a node."""

    addresses: tuple[Address, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    def taints(self, key: str) -> Mapping[str, str]:
        """The values of its taints with this key, by effect."""
        return {one.get("effect", ""): one.get("value", "") for one in self.spec.taints if one.get("key") == key}
