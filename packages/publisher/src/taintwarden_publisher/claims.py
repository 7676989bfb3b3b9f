"""Conflicts about a taint key: with another TaintPublisher, or with a policy that derives taints of the key. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from taintwarden.api.types import POLICY_KIND
from taintwarden_publisher.spec import KIND


class KeyClaim(msgspec.Struct, frozen=True, order=True):
    """A claim of a TaintPublisher to a key. The smallest claim wins: the oldest object, then the first by name."""

    created: str
    name: str
    key: str


def claim(body: Mapping[str, Any]) -> KeyClaim:
    """Return the claim of a TaintPublisher."""
    metadata, spec = body.get("metadata", {}), body.get("spec", {})
    return KeyClaim(metadata.get("creationTimestamp", ""), metadata.get("name", ""), spec.get("key", ""))


def source_keys(body: Mapping[str, Any]) -> list[str]:
    """Return the keys of taints that a policy derives from fields of the node."""
    taints = body.get("spec", {}).get("taints") or ()
    return [taint.get("key", "") for taint in taints if taint.get("from") is not None]


def conflict(own: KeyClaim, others: Iterable[KeyClaim], sources: Mapping[str, Iterable[str]]) -> str:
    """Return why ``own`` loses its key, as a sentence; empty if it does not. ``sources``: names of policies by key."""
    first = min((other for other in others if other.key == own.key), default=own)
    if first < own:
        return f"{KIND} {first.name} has the key {own.key} already: choose another key, or delete one of the two"
    if policies := sorted(sources.get(own.key, ())):
        return f"{POLICY_KIND} {policies[0]} reads the key {own.key} from the node itself: choose another key"
    return ""
