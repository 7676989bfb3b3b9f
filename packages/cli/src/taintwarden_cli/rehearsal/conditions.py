"""What the operator reports in the status of a stored policy. It may come from a file, so it may have any shape."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from taintwarden.api.status import LimitStatus, NextPod, ReclaimStatus
from taintwarden.engine.model import Pod

T = TypeVar("T")


def conditions(stored: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions in ``status`` that can be read; empty if there are none."""
    status = stored.get("status")
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def limits_of(stored: Mapping[str, Any]) -> list[LimitStatus]:
    """The limits that delay its due pods, the most pods first."""
    return _read(stored, "limits", LimitStatus)


def next_pod(stored: Mapping[str, Any], pod: Pod) -> NextPod | None:
    """What the operator reports of one pod, if it is one of the next to leave."""
    found = _read(stored, "nextPods", NextPod)
    return next(
        (one for one in found if (one.namespace, one.name, one.node) == (pod.namespace, pod.name, pod.node)), None
    )


def _read(stored: Mapping[str, Any], field: str, kind: type[T]) -> list[T]:
    status = stored.get("status")
    listed = status.get(field) if isinstance(status, Mapping) else None
    try:
        return msgspec.convert(listed or [], list[kind])  # type: ignore[valid-type] # a variable
    except msgspec.ValidationError:
        return []


def node_end(stored: Mapping[str, Any], node: str) -> ReclaimStatus | None:
    """What the operator reports of the end of a node, if the policy reclaims it."""
    return next((one for one in _read(stored, "reclaims", ReclaimStatus) if one.node == node), None)


def would_be_due(stored: Mapping[str, Any]) -> str:
    """What a paused policy would do, as the operator reports it: ``paused, 12 pods would be due``."""
    told = [one for one in conditions(stored) if (one.get("type"), one.get("reason")) == ("Progressing", "Paused")]
    return str(told[0].get("message")) if told else "paused"


def guard_says(stored: Mapping[str, Any]) -> str:
    """What a tripped guard counts and which nodes are bad, as the operator reports it; empty if it has not tripped."""
    told = [one for one in conditions(stored) if (one.get("type"), one.get("status")) == ("GuardTripped", "True")]
    return str(told[0].get("message") or "") if told else ""


def cut_off(stored: Mapping[str, Any]) -> str:
    """What the operator says of a policy while it receives no changes of some objects; empty if it does."""
    told = [one for one in conditions(stored) if (one.get("type"), one.get("reason")) == ("Progressing", "Blind")]
    return str(told[0].get("message")) if told else ""


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
