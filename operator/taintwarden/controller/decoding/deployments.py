"""Decoders of Deployments and the ReplicaSets that they control, for ``eviction.replaceFirst``."""

import re

from taintwarden.engine.limit_settings import ALL_PERCENT
from taintwarden.engine.model import Deployment, Revision
from taintwarden.kube.calls.evictor import RESTARTED_AT
from taintwarden.kube.wire.kinds import DeploymentObject, WorkloadObject

MAX_RESTARTED_AT_LENGTH = 64
"""Maximum characters kept of ``restartedAt``. A time has 25, but a tenant may write 256 KiB into the annotation."""
_PERCENT = re.compile(r"([0-9]{1,9})%")
"""Pattern of a percentage. API servers store any number of digits, and Python converts no more than 4,300."""
DEFAULT_SHARE = "25%"
"""Default of ``maxSurge`` and ``maxUnavailable``."""


def deployment(obj: DeploymentObject) -> Deployment:
    """Decode a Deployment. ``can_replace`` is True if a restart starts a new pod before it removes the only one."""
    meta = obj.metadata
    return Deployment(
        meta.namespace,
        meta.name,
        meta.uid,
        meta.resource_version,
        not why_not_replaced(obj),
        _restarted_at(obj.spec.template.metadata.annotations.get(RESTARTED_AT)),
    )


def why_not_replaced(obj: DeploymentObject) -> str:
    """Return why a restart would not start a new pod before it removes the only one; empty if it would."""
    spec, status, strategy = obj.spec, obj.status, obj.spec.strategy
    if spec.replicas != 1:
        return f"has {spec.replicas} replicas"
    if spec.paused:
        return "is paused"
    surges = strategy.type in ("", "RollingUpdate") and _is_one(strategy.rolling_update.max_surge, is_rounded_up=True)
    if not surges or _is_one(strategy.rolling_update.max_unavailable, is_rounded_up=False):
        return "has a strategy that removes its pod first"
    if status.observed_generation < obj.metadata.generation or (status.replicas, status.updated_replicas) != (1, 1):
        return "has a rollout in progress"
    return "" if status.available_replicas == 1 else "has no available pod"


def revision(obj: WorkloadObject) -> Revision | None:
    """Return the UID and restart time of the Deployment that controls a ReplicaSet; None if none does."""
    owner = obj.controller()
    if owner is None or owner.kind != "Deployment":
        return None
    return Revision(owner.uid, _restarted_at(obj.template_annotation(RESTARTED_AT)))


def _is_one(given: int | str | None, *, is_rounded_up: bool) -> bool:
    """Return True if an IntOrString (default 25%) amounts to at least one pod of a Deployment with one replica."""
    share = DEFAULT_SHARE if given is None else given
    if isinstance(share, int):
        return share >= 1
    percent = _PERCENT.fullmatch(share)
    return percent is not None and int(percent[1]) >= (1 if is_rounded_up else ALL_PERCENT)


def _restarted_at(text: str | None) -> str:
    return (text or "")[:MAX_RESTARTED_AT_LENGTH]
