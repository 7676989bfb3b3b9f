"""The liveness of the operator, by its Lease and the times of its reports in statuses, compared with the clock."""

from asyncio import sleep as pause
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

import msgspec

from taintwarden.controller.words import wording
from taintwarden.engine.rfc3339 import read_time
from taintwarden.kube.calls.lease import LEASE_NAME, LEASE_SECONDS, RETRY_SECONDS, LeaseObject
from taintwarden_cli.rehearsal.session import ClusterError, Session

LIST_PODS = "kubectl get pods -A -l 'app.kubernetes.io/name in (taintwarden, taintwarden-webhook)'"
"""Command that shows the pods of operator and webhook, in every namespace."""
CLOCK_SKEW_SECONDS = 30.0
"""Maximum seconds that the local clock may be ahead of the operator's, before a live Lease looks expired."""
SILENT_SECONDS = 60.0
"""Seconds without a report after which an operator is not running. It reports every 20 s."""
LATE_SECONDS = 2 * RETRY_SECONDS + 1.0
"""Age from which a renewal is late, and maximum time to watch for the next: two intervals of renewal, and a second."""
RECHECK_SECONDS = 1.0
"""Seconds between two reads of a Lease that seems late."""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces"


class Liveness(msgspec.Struct, frozen=True):
    """The liveness of the operator. ``problem`` is one sentence if it is not running, and empty if it is."""

    problem: str = ""
    reported_at: float | None = None
    """The time of its last report, in seconds since the epoch, if known."""
    leading_since: float | None = None
    """When the present leader began to lead, if known."""
    unread: str = ""
    """Why the Lease could not be read, so that only statuses decided; empty if it was."""


async def read_lease(session: Session, namespace: str, name: str) -> LeaseObject | None:
    """A Lease; None if it does not exist. Raises ClusterError if it cannot be read."""
    return await session.read(f"{_LEASES}/{namespace}/leases/{name}", LeaseObject, "leases")


async def watch_lease(session: Session, namespace: str, now: float) -> tuple[LeaseObject | None, bool]:
    """Read the operator's Lease. Returns also True if it has a holder that does not renew it.

    The local clock may be ahead of the operator's, so a Lease that looks old is read until it is renewed, at most for
    ``LATE_SECONDS``. Raises ClusterError if it cannot be read.
    """
    lease = await read_lease(session, namespace, LEASE_NAME)
    renewed_at = _renewed_at(lease)
    if renewed_at is None or now - renewed_at <= LATE_SECONDS:
        return lease, False
    if now - renewed_at > _lease_seconds(lease) + CLOCK_SKEW_SECONDS:
        return lease, True
    began = monotonic()
    while monotonic() < began + LATE_SECONDS:
        await pause(RECHECK_SECONDS)
        lease = await read_lease(session, namespace, LEASE_NAME)
        if _renewed_at(lease) != renewed_at:
            return lease, False
    return lease, True


async def read_liveness(
    session: Session, namespace: str, policies: Iterable[Mapping[str, Any]], now: float
) -> Liveness:
    """Read the Lease and judge if the operator is running. If that fails, only the statuses decide."""
    began, lease, is_late, unread = monotonic(), None, False, ""
    try:
        lease, is_late = await watch_lease(session, namespace, now)
    except ClusterError as error:
        unread = str(error)
    found = liveness(policies, lease, now + monotonic() - began, is_late=is_late)
    return msgspec.structs.replace(found, unread=unread)


def liveness(
    policies: Iterable[Mapping[str, Any]], lease: LeaseObject | None, now: float, *, is_late: bool = False
) -> Liveness:
    """The liveness of the operator by the stored policies and the Lease, if there is one.

    ``is_late`` is True if the Lease was not renewed while it was watched.
    """
    reported_at = max((at for at in map(_observed_at, policies) if at is not None), default=None)
    renewed_at = _renewed_at(lease)
    seen_at = max((at for at in (reported_at, renewed_at) if at is not None), default=None)
    if lease is not None and (renewed_at is None or now - renewed_at > _lease_seconds(lease) + CLOCK_SKEW_SECONDS):
        return Liveness(_silence(seen_at, now), reported_at)
    if is_late and renewed_at is not None:
        late = wording.duration(now - renewed_at)
        sentence = f"the operator has not renewed its Lease for {late}: nothing is evicted until it does"
        return Liveness(sentence, reported_at)
    if reported_at is not None and now - reported_at > SILENT_SECONDS:
        held = "" if renewed_at is None else f", though {_holder(lease)} renews its Lease"
        return Liveness(_silence(reported_at, now, held), reported_at)
    acquired = lease.spec.acquire_time if lease is not None and lease.spec is not None else None
    return Liveness("", reported_at, read_time(acquired))


def _silence(since: float | None, now: float, more: str = "") -> str:
    silence = "is not running" if since is None else f"has not reported for {wording.duration(now - since)}{more}"
    return f"the operator {silence}: nothing is evicted, and statuses are out of date"


def _lease_seconds(lease: LeaseObject | None) -> float:
    spec = lease.spec if lease else None
    return (spec and spec.lease_duration_seconds) or LEASE_SECONDS


def _holder(lease: LeaseObject | None) -> str:
    return (lease and lease.spec and lease.spec.holder_identity) or ""


def _renewed_at(lease: LeaseObject | None) -> float | None:
    """The time of the last renewal; None if the Lease has no holder."""
    spec = lease.spec if lease else None
    return read_time(spec.renew_time) if spec and _holder(lease) else None


def _observed_at(policy: Mapping[str, Any]) -> float | None:
    status = policy.get("status")
    text = status.get("observedAt") if isinstance(status, Mapping) else None
    return read_time(text) if isinstance(text, str) else None
