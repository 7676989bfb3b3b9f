"""What the operator says of a stored policy in its status; read from files, too, so of any shape."""

from collections.abc import Mapping
from typing import Any


def conditions(stored: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions in ``status``; none where there is no readable one."""
    status = stored.get("status")
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def limited_by(stored: Mapping[str, Any]) -> str:
    """The limit that holds most of its due pods; empty where none does."""
    status = stored.get("status")
    return str(status.get("limitedBy") or "") if isinstance(status, Mapping) else ""


def would_be_due(stored: Mapping[str, Any]) -> str:
    """What a paused policy would do, as the operator says it: ``paused, 12 pods would be due``."""
    told = [one for one in conditions(stored) if (one.get("type"), one.get("reason")) == ("Progressing", "Paused")]
    return str(told[0].get("message")) if told else "paused"


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
