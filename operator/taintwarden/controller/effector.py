"""The effector, which carries out the machine's orders: evictions, reads, and writes to nodes and policies.

Each answer goes back to the machine as an event. A write is tried once, and the machine decides when to retry it; only
records of guards and places are tried again here, after a conflict. Evictions and writes ask lease and machine first.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import structlog

from taintwarden.controller.reported_faults import ReportedFaults
from taintwarden.controller.stores import guard_record
from taintwarden.controller.words import wording
from taintwarden.engine import commands, events
from taintwarden.engine.events import Feed, WriteOutcome
from taintwarden.engine.machine import key_of
from taintwarden.engine.model import StoredPod
from taintwarden.kube.calls.evictor import ask_replacement, delete_pod, evict_pod, is_running
from taintwarden.kube.calls.lease import Lease
from taintwarden.kube.calls.node_calls import last_writer, read_node, read_pods, save_condition, save_history
from taintwarden.kube.calls.own_kinds import EarlierTermError, clear_guard_reset, save_record
from taintwarden.kube.errors import ApiError, Fenced, KubeError
from taintwarden.kube.http.client import Client
from taintwarden.kube.wire.kinds import version_number
from taintwarden.telemetry.metrics import Metrics

READS = 8
"""Maximum checks of nodes and pods (``CheckNode``, ``CheckPod``) in progress at once. Due pods wait for them."""
HISTORY_WRITES = 2
"""Maximum writes of taint histories in progress at once. Evictions of a wave take precedence over them."""
SEEN_TRIES, SEEN_SECONDS = 5, 0.25
"""Maximum checks whether streams have delivered the pods that were read, and seconds between two checks."""
RECORD_TRIES = 5
"""Maximum tries to write a guard or places when other writes, usually of the status, change the policy meanwhile."""
CONFLICT = 409
WRITE_WARNINGS: dict[type, str] = {
    commands.SaveHistory: "taint-history-not-saved",
    commands.SaveCondition: "drained-condition-not-saved",
    commands.SaveGuard: "guard-not-saved",
    commands.SavePlaces: "places-not-saved",
    commands.ClearGuardReset: "guard-reset-not-cleared",
}
"""Type of a write -> event name in the log when it fails."""
RECORDS = (commands.SaveGuard, commands.SavePlaces)
"""Types of writes for which evictions wait."""
MAY_PASS = (404, 408, 429)
"""Status codes of temporary client errors: the same write may succeed later, unless a 404 is about the object."""

log = structlog.get_logger()


class Effector:
    """Starts a task for each order and feeds the result to the machine.

    ``spawn`` starts a call that must complete, ``spawn_minor`` any other. ``is_wanted``: the machine wants an order.
    ``knows_pods``: it knows all of a node's pods that were read. ``newest_version``: newest version of a delivered pod.
    """

    def __init__(
        self,
        *,
        client: Client,
        lease: Lease,
        is_wanted: Callable[[commands.Order], bool],
        knows_pods: Callable[[commands.SaveCondition, Sequence[StoredPod]], bool],
        metrics: Metrics,
        feed: Feed,
        newest_version: Callable[[], int],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        spawn_minor: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._client = client
        self._lease = lease
        self._is_wanted = is_wanted
        self._knows_pods = knows_pods
        self._metrics = metrics
        self._feed = feed
        self._newest_version = newest_version
        self._spawn = spawn
        self._spawn_minor = spawn_minor
        self._reads = asyncio.Semaphore(READS)
        self._history_writes = asyncio.Semaphore(HISTORY_WRITES)
        self._reported_faults = ReportedFaults()

    def carry_out(self, order: commands.Order) -> None:
        """Start the call of an order without waiting for it."""
        match order:
            case commands.Evict():
                self._spawn(self._evict(order))
            case commands.CheckNode():
                self._spawn_minor(self._check_node(order))
            case commands.CheckPod():
                self._spawn_minor(self._check_pod(order))
            case commands.FindWriter():
                self._spawn_minor(self._find_writer(order))
            case commands.SaveGuard() | commands.SavePlaces() | commands.ClearGuardReset():
                self._spawn(self._write(order))
            case _:
                self._spawn_minor(self._write(order))

    async def _evict(self, command: commands.Evict) -> None:
        pod, grace, fence = command.pod, command.grace_period_seconds, self._fence(command)
        with self._metrics.request_duration.time():
            if command.deployment is not None:
                result = await ask_replacement(self._client, command.deployment, fence)
            elif command.delete:
                reason = f"Taintwarden: {wording.why(command.verdict)}"
                result = await delete_pod(self._client, pod, grace, reason, fence, as_seen=command.as_seen)
            else:
                result = await evict_pod(self._client, pod, grace, fence, as_seen=command.as_seen)
        self._feed(events.Settled(pod.uid, result.outcome, result.message, result.retry_after))

    def _fence(self, order: commands.Order) -> Callable[[], bool]:
        """Return a check for immediately before a request is sent: this replica leads, and the order is wanted."""
        return lambda: self._lease.is_held and self._is_wanted(order)

    async def _check_node(self, command: commands.CheckNode) -> None:
        async with self._reads:
            pods_version = self._newest_version()
            try:
                node = await read_node(self._client, command.name)
            except KubeError as error:
                log.warning("node-check-failed", node=command.name, reason=str(error))
                self._feed(events.NodeChecked(command.name))
                return
        version = None if node is None else version_number(node.metadata.resource_version)
        self._feed(events.NodeChecked(command.name, version, pods_version))

    async def _check_pod(self, command: commands.CheckPod) -> None:
        async with self._reads:
            try:
                runs = await is_running(self._client, command.pod)
            except KubeError as error:
                log.warning("pod-check-failed", pod=str(command.pod), reason=str(error))
                runs = None
        self._feed(events.PodChecked(command.pod.uid, runs))

    async def _find_writer(self, command: commands.FindWriter) -> None:
        """Read which client wrote a taint. If that fails, the guard's cause does not name it. There is no retry."""
        try:
            writer = await last_writer(self._client, command.node)
        except KubeError as error:
            log.warning("writer-not-read", node=command.node, reason=str(error))
            return
        if writer is not None:
            self._feed(events.WriterFound(command, wording.written_by(*writer, command.key)))

    async def _write(self, order: commands.Write) -> None:
        try:
            written = await self._store(order)
        except Fenced:
            written = events.Written(order, WriteOutcome.FAILED)
        except KubeError as error:
            written = events.Written(order, outcome := outcome_of(error), error=str(error))
            if outcome not in (WriteOutcome.GONE, WriteOutcome.OUTDATED) or isinstance(order, RECORDS):
                self._warn_once(order, error)
        else:
            self._reported_faults.forget(_subject(order))
        self._feed(written)

    async def _store(self, order: commands.Write) -> events.Written:
        """Carry out the write of an order, and return its result.

        Raises:
            KubeError: the write failed, or its result is unknown.

        """
        match order:
            case commands.SaveHistory():
                async with self._history_writes:
                    version = await save_history(self._client, order, self._fence(order))
                if version is not None:
                    return events.Written(order, WriteOutcome.DONE, version)
            case commands.SaveCondition():
                return await self._save_condition(order)
            case commands.SaveGuard() | commands.SavePlaces():
                pruned = await self._save_record(order)
                if pruned is not None:
                    return events.Written(order, WriteOutcome.DONE, pruned=pruned)
            case commands.ClearGuardReset():
                policy = order.policy
                if await clear_guard_reset(self._client, policy.name, policy.uid, self._fence(order)):
                    return events.Written(order, WriteOutcome.DONE)
        return events.Written(order, WriteOutcome.GONE)

    async def _save_condition(self, order: commands.SaveCondition) -> events.Written:
        """Write a condition. It is ``True`` only if the machine knows all pods of the node as they are stored."""
        if order.says_drained and not await self._has_seen(order, await read_pods(self._client, order.node)):
            return events.Written(order, WriteOutcome.OUTDATED)
        version = await save_condition(self._client, order, self._fence(order))
        return events.Written(order, WriteOutcome.DONE, version)

    async def _has_seen(self, order: commands.SaveCondition, pods: Sequence[StoredPod]) -> bool:
        """Return True once the machine knows these pods. The stream is some milliseconds behind the read."""
        for _ in range(SEEN_TRIES - 1):
            if self._knows_pods(order, pods):
                return True
            await asyncio.sleep(SEEN_SECONDS)
        return self._knows_pods(order, pods)

    async def _save_record(self, order: commands.SaveGuard | commands.SavePlaces) -> tuple[str, ...] | None:
        """Save the record of a guard or of places. Evictions wait for it, so it is retried at once after a conflict.

        Terms count the holders of one Lease. If the Lease was deleted, the terms of the next one start over. The
        stored record may then have a later term, which the holder of a confirmed lease takes over.
        """
        if isinstance(order, commands.SaveGuard):
            where, record = "guard", guard_record.encode_guard(order.record)
        else:
            where, record = "places", guard_record.encode_places(order.places, order.term)
        save = partial(
            save_record, self._client, order.policy.name, order.policy.uid, record, self._fence(order), where
        )
        for _ in range(RECORD_TRIES - 1):
            try:
                return await save()
            except EarlierTermError as error:
                if not await self._lease.is_confirmed():
                    raise
                record["term"] = error.stored
            except ApiError as error:
                if error.code != CONFLICT:
                    raise
        return await save()

    def _warn_once(self, order: commands.Write, error: KubeError) -> None:
        """Log why a write failed, once while the reason does not change."""
        if self._reported_faults.is_new(_subject(order), kind_of(error)):
            if isinstance(order, commands.SaveHistory | commands.SaveCondition):
                of = {"node": order.node}
            else:
                of = {"policy": order.policy.name}
            log.warning(WRITE_WARNINGS[type(order)], **of, reason=str(error))


def _subject(order: commands.Write) -> str:
    """Return the subject of a warning. A missing right to write conditions concerns all nodes."""
    return "conditions" if isinstance(order, commands.SaveCondition) else key_of(order)


def kind_of(error: KubeError) -> tuple[int, str]:
    """Return the code and reason of an error, which are equal for errors whose texts differ in a time or port."""
    return (error.code, error.reason) if isinstance(error, ApiError) else (0, "")


def outcome_of(error: KubeError) -> WriteOutcome:
    """Return the outcome that decides whether a failed write is retried."""
    if not isinstance(error, ApiError):
        return WriteOutcome.FAILED
    if error.is_object_gone:
        return WriteOutcome.GONE
    if error.is_conflict:
        return WriteOutcome.OUTDATED
    return WriteOutcome.FAILED if error.code in MAY_PASS or not 400 <= error.code < 500 else WriteOutcome.REFUSED
