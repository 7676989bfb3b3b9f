"""What the operator reports in the status of a stored policy. It may come from a file, so it may have any shape."""

from collections.abc import Mapping
from typing import Any


def conditions(stored: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions in ``status`` that can be read; empty if there are none."""
    status = stored.get("status")
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def limited_by(stored: Mapping[str, Any]) -> str:
    """The limit that delays most of its due pods; empty if none does."""
    status = stored.get("status")
    return str(status.get("limitedBy") or "") if isinstance(status, Mapping) else ""


def would_be_due(stored: Mapping[str, Any]) -> str:
    """What a paused policy would do, as the operator reports it: ``paused, 12 pods would be due``."""
    told = [one for one in conditions(stored) if (one.get("type"), one.get("reason")) == ("Progressing", "Paused")]
    return str(told[0].get("message")) if told else "paused"


def is_kept_from_enforcing(stored: Mapping[str, Any]) -> bool:
    """Whether this version of a policy in mode Enforce evicts no pods because the operator runs with --dry-run."""
    spec, metadata = stored.get("spec"), stored.get("metadata")
    if not isinstance(spec, Mapping) or not isinstance(metadata, Mapping) or spec.get("mode", "Enforce") != "Enforce":
        return False
    return any(
        (one.get("type"), one.get("status"), one.get("reason")) == ("Enforcing", "False", "DryRun")
        and one.get("observedGeneration") == metadata.get("generation")
        for one in conditions(stored)
    )
