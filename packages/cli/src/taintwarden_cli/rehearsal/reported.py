"""What the operator reports in the status of a stored policy. It may come from a file, so it may have any shape."""

from collections.abc import Mapping
from typing import Any

import msgspec

from taintwarden.api.status import PolicyStatus


def status_of(stored: Mapping[str, Any]) -> PolicyStatus:
    """The status; an empty one if it cannot be read."""
    try:
        return msgspec.convert(stored.get("status") or {}, PolicyStatus)
    except msgspec.ValidationError:
        return PolicyStatus()


def is_kept_from_enforcing(stored: Mapping[str, Any]) -> bool:
    """Whether this version of a policy in mode Enforce evicts no pods because the operator runs with --dry-run."""
    spec, metadata = stored.get("spec"), stored.get("metadata")
    if not isinstance(spec, Mapping) or not isinstance(metadata, Mapping) or spec.get("mode", "Enforce") != "Enforce":
        return False
    enforcing = status_of(stored).condition("Enforcing")
    return (
        enforcing is not None
        and (enforcing.status, enforcing.reason) == ("False", "DryRun")
        and enforcing.observed_generation == metadata.get("generation")
    )
