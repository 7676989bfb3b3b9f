"""Who else has a key: another publisher, or a policy that reads it from elsewhere. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from taintwarden.api.types import POLICY_KIND
from taintwarden_publisher.spec import KIND


class Claim(msgspec.Struct, frozen=True, order=True):
    """A key of an object. The least of all claims to a key has it: the oldest object, then the first by name."""

    created: str
    name: str
    key: str


def claim(body: Mapping[str, Any]) -> Claim:
    """Of a TaintPublisher."""
    metadata, spec = body.get("metadata", {}), body.get("spec", {})
    return Claim(metadata.get("creationTimestamp", ""), metadata.get("name", ""), spec.get("key", ""))


def source_keys(body: Mapping[str, Any]) -> list[str]:
    """The keys that a policy reads from a fact of the node instead of a taint."""
    taints = body.get("spec", {}).get("taints") or ()
    return [one.get("key", "") for one in taints if one.get("from") is not None]


def taken(own: Claim, others: Iterable[Claim], sources: Mapping[str, Iterable[str]]) -> str:
    """Why the key is not one's own, in one sentence; empty if it is. ``sources``: names of policies by key."""
    first = min((one for one in others if one.key == own.key), default=own)
    if first < own:
        return f"{KIND} {first.name} has the key {own.key} already: choose another key, or delete one of the two"
    if policies := sorted(sources.get(own.key, ())):
        return f"{POLICY_KIND} {policies[0]} reads the key {own.key} from the node itself: choose another key"
    return ""
