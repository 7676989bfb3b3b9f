"""Statuses of the objects of one kind, each written when it changes. Conditions keep their transition times."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import structlog

from taintwarden.api.status import Condition, ConditionStatus
from taintwarden.controller.clock import Clock
from taintwarden.controller.effector import kind_of
from taintwarden.controller.reported_faults import ReportedFaults
from taintwarden.controller.status.summary import ConditionRow
from taintwarden.controller.stores.object_store import ObservedObject
from taintwarden.engine import rfc3339
from taintwarden.engine.reported_status import Status
from taintwarden.fields.text import shortened
from taintwarden.kube.errors import ApiError, Fenced, KubeError

MAX_REPORTED_FAULTS = 20_000
"""Maximum objects whose failures are remembered, so that each is logged once. Each takes some dozen bytes."""

log = structlog.get_logger()


class StatusPatcher:
    """Writes statuses, and remembers them, so that only changes are written.

    Args:
        kind: name of the kind in log lines.
        write: merges fields into the status of the object with this key, if it has this version; raises KubeError.
        observed: the stored objects by key.
        clock: gives transition times.
        report_seconds: seconds until an unchanged status is written again, so that readers see that it is current.

    """

    def __init__(
        self,
        kind: str,
        write: Callable[[str, dict[str, Any], str], Awaitable[None]],
        observed: Mapping[str, ObservedObject],
        clock: Clock,
        report_seconds: float = math.inf,
    ) -> None:
        self._kind = kind
        self._write = write
        self._observed = observed
        self._clock = clock
        self._report_seconds = report_seconds
        self._reported_faults = ReportedFaults(MAX_REPORTED_FAULTS)
        self._uids: dict[str, str] = {}
        """Key -> UID of the object whose status was last written."""
        self._written: dict[str, tuple[dict[str, Any], float]] = {}
        """Key -> last written status (empty: it failed), and its monotonic time. The oldest comes first."""
        self._since: dict[str, dict[str, tuple[str, str]]] = {}  # key -> type -> status, lastTransitionTime

    def prune(self) -> None:
        """Drop the entries of objects that no longer exist."""
        for known in (self._written, self._since, self._uids):
            for key in [key for key in known if key not in self._observed]:
                del known[key]

    def clear(self) -> None:
        """Forget all statuses, because another replica writes now, with its own transition times."""
        self._written.clear()
        self._since.clear()

    def oldest_first(self) -> list[str]:
        """Return the keys of all stored objects: those never tried first, then those tried longest ago."""
        return [key for key in self._observed if key not in self._written] + list(self._written)

    async def write_status(
        self,
        key: str,
        reported: Status,
        observed: ObservedObject,
        rows: Sequence[ConditionRow],
        more: dict[str, Any] | None = None,
        ended: Sequence[str] = (),
    ) -> bool:
        """Write ``reported`` with the conditions in ``rows``, and with fields that are not compared (``more``).

        Remove the records ``ended``, unless the object has changed: it may have such a record again.
        Return True if a write was due: the status had changed, or was not written for ``report_seconds``.
        """
        if self._uids.get(key) != observed.uid:  # another object of the same name has no status yet
            self._uids[key] = observed.uid
            self._written.pop(key, None)
            self._since.pop(key, None)
        status = msgspec.to_builtins(reported) | {
            "observedGeneration": observed.generation,
            "conditions": [msgspec.to_builtins(self._condition(key, observed, *row)) for row in rows],
        }
        now = self._clock().monotonic
        before, written_at = self._written.get(key, ({}, -math.inf))
        if status == before and not ended and now - written_at < self._report_seconds:
            return False
        try:
            await self._write(key, status | (more or {}) | dict.fromkeys(ended), observed.version if ended else "")
        except Fenced:  # another replica may write by now
            return True
        except KubeError as error:
            status = {}
            # The watch reports it if the object was deleted or changed meanwhile.
            is_other = isinstance(error, ApiError) and (error.is_not_found or error.is_conflict)
            if not is_other and self._reported_faults.is_new(key, kind_of(error)):
                log.warning("status-not-written", **{self._kind: key}, reason=str(error))
        else:
            self._reported_faults.forget(key)
        self._written.pop(key, None)
        self._written[key] = status, now
        return True

    def _condition(
        self, key: str, observed: ObservedObject, kind: str, value: str, reason: str, message: str
    ) -> Condition:
        since = self._since.setdefault(key, dict(observed.conditions))
        known = since.get(kind)
        if known is None or known[0] != value:
            known = (value, rfc3339.at(self._clock().wall))
        since[kind] = known
        return Condition(kind, ConditionStatus(value), reason, shortened(message, 1024), known[1], observed.generation)
