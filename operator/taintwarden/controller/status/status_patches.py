"""The statuses of the objects of one kind: each written when it changes, with conditions that keep their times."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import structlog

from taintwarden.api.status import Condition, ConditionStatus
from taintwarden.controller.clock import Clock
from taintwarden.controller.status.summary import ConditionRow
from taintwarden.controller.stores.object_store import ObservedObject
from taintwarden.engine import rfc3339
from taintwarden.engine.reported_status import Status
from taintwarden.fields.text import shortened
from taintwarden.kube.errors import ApiError, Fenced, KubeError

log = structlog.get_logger()


class StatusPatcher:
    """Keeps what was written, so that only changes are written.

    Args:
        kind: what the objects are called in logs.
        write: merges what it is given into the status of the object of this key; raises KubeError.
        observed: the stored objects by key.
        clock: for transition times.
        report_seconds: how often a status is written that has not changed, so that readers see who still reports.

    """

    def __init__(
        self,
        kind: str,
        write: Callable[[str, dict[str, Any]], Awaitable[None]],
        observed: Mapping[str, ObservedObject],
        clock: Clock,
        report_seconds: float = math.inf,
    ) -> None:
        self._kind = kind
        self._write = write
        self._observed = observed
        self._clock = clock
        self._report_seconds = report_seconds
        self._written: dict[str, tuple[dict[str, Any], float]] = {}
        """What was written, and when. The one that was written longest ago comes first."""
        self._since: dict[str, dict[str, tuple[str, str]]] = {}

    def prune(self) -> None:
        """Drop the entries of objects that no longer exist."""
        for known in (self._written, self._since):
            for key in [key for key in known if key not in self._observed]:
                del known[key]

    def clear(self) -> None:
        """Another replica writes now, and its conditions have times of their own."""
        self._written.clear()
        self._since.clear()

    def oldest_first(self) -> list[str]:
        """The keys of all stored objects: those never written first, then the oldest ones."""
        return [key for key in self._observed if key not in self._written] + list(self._written)

    async def tell(
        self,
        key: str,
        reported: Status,
        observed: ObservedObject,
        rows: Sequence[ConditionRow],
        more: dict[str, Any] | None = None,
    ) -> bool:
        """Write ``reported`` with the conditions in ``rows``, and with fields that are not compared (``more``).

        Returns whether it was time to: it had changed, or was not reported for ``report_seconds``.
        """
        status = msgspec.to_builtins(reported) | {
            "observedGeneration": observed.generation,
            "conditions": [msgspec.to_builtins(self._condition(key, observed, *one)) for one in rows],
        }
        now = self._clock().monotonic
        before, written_at = self._written.get(key, ({}, -math.inf))
        if status == before and now - written_at < self._report_seconds:
            return False
        try:
            await self._write(key, status | (more or {}))
        except Fenced:  # another replica may write by now
            pass
        except KubeError as error:
            # If it was deleted meanwhile, its watch reports that.
            if not (isinstance(error, ApiError) and error.is_not_found):
                log.warning("status-not-written", **{self._kind: key}, reason=str(error))
        else:
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
