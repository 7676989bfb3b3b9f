"""Carries out what the machine commands: evictions, fresh reads of nodes, the durable clock, labels and guards.

Each answer goes back to the machine as an event. Nothing is decided here but whether the lease is still held.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

import structlog

from taintwarden.controller import guard_record, wording
from taintwarden.controller.cache import Translator
from taintwarden.controller.loop import Feed, Order
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.events import Outcome
from taintwarden.kube.client import Client
from taintwarden.kube.errors import ApiError, KubeError
from taintwarden.kube.evictor import Evictor
from taintwarden.kube.nodes import read_node, save_history, save_labels
from taintwarden.kube.policies import clear_guard_reset, save_guard
from taintwarden.telemetry.metrics import Metrics

NODE_READS = 8
"""Fresh reads of nodes under way at once; due pods wait for them."""
HISTORY_WRITES = 2
"""Histories being written at once: few, since the evictions of a wave come first."""
LABEL_WRITES = 4
"""Nodes being labelled at once: those who replace evicted pods are placed by these labels."""
SAVE_RETRY_SECONDS = 2.0
GUARD_TRIES = 5
"""How often a guard is written when somebody else, mostly our own status, writes the policy at the same moment."""

log = structlog.get_logger()


class Held(Protocol):
    """Whoever knows whether we may act."""

    @property
    def held(self) -> bool:
        """Whether the lease is ours at this moment."""


class Hands:
    """Tasks for calls under way. ``spawn`` starts one that must be let to its end, ``spawn_minor`` any other."""

    def __init__(
        self,
        *,
        client: Client,
        evictor: Evictor,
        lease: Held,
        translator: Translator,
        metrics: Metrics,
        feed: Feed,
        newest_version: Callable[[], int],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        spawn_minor: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._client = client
        self._evictor = evictor
        self._lease = lease
        self._translator = translator
        self._metrics = metrics
        self._feed = feed
        self._newest_version = newest_version
        self._spawn = spawn
        self._spawn_minor = spawn_minor
        self._reads = asyncio.Semaphore(NODE_READS)
        self._writes = asyncio.Semaphore(HISTORY_WRITES)
        self._label_writes = asyncio.Semaphore(LABEL_WRITES)
        self._unsaved_guards: set[str] = set()
        """Policies of which it was told that their guard could not be saved."""

    def carry_out(self, command: Order) -> None:
        """Start the call; never waits."""
        match command:
            case commands.Evict():
                self._spawn(self._evict(command))
            case commands.SaveGuard():
                self._spawn(self._save_guard(command))
            case commands.ClearGuardReset():
                self._spawn(self._clear_guard_reset(command))
            case commands.CheckNode():
                self._spawn_minor(self._check(command))
            case commands.SaveHistory():
                self._spawn_minor(self._save(command))
            case commands.MirrorTaints():
                self._spawn_minor(self._mirror(command))

    async def _evict(self, command: commands.Evict) -> None:
        pod, grace = command.pod, command.grace_period_seconds
        if not self._lease.held:
            self._feed(events.Settled(pod.uid, Outcome.NOT_LEADING))
            return
        with self._metrics.request_duration.time():
            if command.delete:
                reason = f"Taintwarden: {wording.why(command.verdict)}"
                result = await self._evictor.delete(pod, grace, reason)
            else:
                result = await self._evictor.evict(pod, grace)
        self._feed(events.Settled(pod.uid, result.outcome, result.message, result.retry_after))

    async def _check(self, command: commands.CheckNode) -> None:
        async with self._reads:
            version = self._newest_version()
            try:
                node = await read_node(self._client, command.name)
            except KubeError as error:
                log.warning("node-check-failed", node=command.name, reason=str(error))
                self._feed(events.CheckFailed(command.name))
                return
        seen = None if node is None else self._translator.node(node)
        self._feed(events.NodeChecked(command.name, seen, version))

    async def _save(self, command: commands.SaveHistory) -> None:
        """Until it is saved, or cannot be: the clock must survive us."""
        succeeded = await self._insist(
            lambda: save_history(self._client, command.node, command.uid, command.text),
            lambda reason: log.warning("taint-history-not-saved", node=command.node, reason=reason),
            self._writes,
        )
        self._feed(events.HistorySaved(command.node, succeeded=succeeded))

    async def _mirror(self, command: commands.MirrorTaints) -> None:
        """Until the labels are written, or cannot be: the scheduler goes by them."""
        succeeded = await self._insist(
            lambda: save_labels(self._client, command.node, command.uid, command.labels),
            lambda reason: log.warning("node-labels-not-written", node=command.node, reason=reason),
            self._label_writes,
        )
        self._feed(events.TaintsMirrored(command.node, succeeded=succeeded))

    async def _clear_guard_reset(self, command: commands.ClearGuardReset) -> None:
        """Until it is taken off, or cannot be: it counts once, and whoever leads next would count it again."""
        policy = command.policy
        await self._insist(
            lambda: clear_guard_reset(self._client, policy.name, policy.uid),
            lambda reason: log.warning("guard-reset-not-cleared", policy=policy.name, reason=reason),
        )

    async def _insist(
        self,
        write: Callable[[], Coroutine[Any, Any, None]],
        complain: Callable[[str], object],
        slots: AbstractAsyncContextManager[object] = nullcontext(),  # noqa: B008 - it has no state
    ) -> bool:
        """Write while we may, until it is written or never will be. About what is gone there is nothing to complain.

        ``slots`` bounds how many such writes are under way; whoever waits for the next try has none.
        """
        while self._lease.held:
            try:
                async with slots:
                    await write()
            except ApiError as error:
                if error.code < 500 and error.code != 429:
                    if not error.is_about_another:
                        complain(str(error))
                    return False
            except KubeError:
                pass
            else:
                return True
            await asyncio.sleep(SAVE_RETRY_SECONDS)
        return False

    async def _save_guard(self, command: commands.SaveGuard) -> None:
        """Once, whatever the answer: the machine knows best whether the same record is still wanted."""
        policy = command.policy
        guard = guard_record.written(command.record)
        succeeded, problem = False, ""
        for _ in range(GUARD_TRIES):
            if not self._lease.held:
                break
            try:
                succeeded = await save_guard(self._client, policy.name, policy.uid, guard)
                break
            except KubeError as error:
                problem = str(error)
                if not (isinstance(error, ApiError) and error.code == 409):
                    break
        if succeeded:
            self._unsaved_guards.discard(policy.name)
        elif problem and policy.name not in self._unsaved_guards:
            self._unsaved_guards.add(policy.name)
            log.warning("guard-not-saved", policy=policy.name, reason=problem)
        self._feed(events.GuardSaved(policy.name, succeeded=succeeded))
