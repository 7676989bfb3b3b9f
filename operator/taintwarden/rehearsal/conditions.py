"""What the operator says of a stored policy in its conditions; read from files, too, so of any shape."""

from collections.abc import Mapping
from typing import Any


def conditions(stored: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions in ``status``; none where there is no readable one."""
    status = stored.get("status")
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def is_kept_from_enforcing(stored: Mapping[str, Any]) -> bool:
    """Whether this version of a policy in mode Enforce only rehearses, since the operator runs with --dry-run."""
    spec, metadata = stored.get("spec"), stored.get("metadata")
    if not isinstance(spec, Mapping) or not isinstance(metadata, Mapping) or spec.get("mode", "Enforce") != "Enforce":
        return False
    return any(
        (one.get("type"), one.get("status"), one.get("reason")) == ("Enforcing", "False", "DryRun")
        and one.get("observedGeneration") == metadata.get("generation")
        for one in conditions(stored)
    )
