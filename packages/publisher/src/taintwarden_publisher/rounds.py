"""The rounds of a publisher: query, decide, write, report. The only module that reads a clock."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import structlog

from taintwarden.telemetry.metrics import Metrics
from taintwarden_publisher import reporting
from taintwarden_publisher.cluster import Cluster, ClusterError, WriteOutcome
from taintwarden_publisher.deciding import WINDOW, Change, DecisionInput, decide, patch, recent_changes, withdrawals
from taintwarden_publisher.nodes import Node
from taintwarden_publisher.prometheus import TIMEOUT_SECONDS, Access, run_query
from taintwarden_publisher.reporting import Condition, Reason, Report, WriteProblem
from taintwarden_publisher.samples import Samples, samples
from taintwarden_publisher.spec import PublisherMode, PublisherSpec, read_spec
from taintwarden_publisher.troubles import NoAnswerError

MAX_WRITES = 8
"""Maximum number of concurrent writes."""
WRITING_SECONDS = 60.0
"""Seconds after which a round with failed writes starts no other write. Each may wait 30 s for an answer."""
STATUS_SECONDS = 60.0
"""Seconds after which a round writes the status again, even if at most ``lastAnswerTime`` changed."""
log = structlog.get_logger()


class Tools(msgspec.Struct, frozen=True):
    """Clients, metrics and clocks that all rounds share."""

    cluster: Cluster
    session: aiohttp.ClientSession
    metrics: Metrics
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    timeout_seconds: float = TIMEOUT_SECONDS
    """Maximum seconds for the answer to a query."""


class Rounds:
    """The rounds of one TaintPublisher.

    Args:
        name: the name of the object.
        tools: clients, metrics and clocks.

    """

    def __init__(self, name: str, tools: Tools) -> None:
        self.lock = asyncio.Lock()
        """Held while nodes are changed."""
        self._name = name
        self._tools = tools
        self._seen: dict[str, float] = {}
        """Node -> monotonic time of its last usable value; the start of the publisher if it had none."""
        self._changed: dict[str, float] | None = None
        """Node -> monotonic time of the last change that counts; None until the nodes are listed."""
        self._failed: frozenset[str] = frozenset()
        """Names of nodes whose last write failed. They are written last, since a failing write may be slow."""
        self._since = tools.monotonic()
        self._before: tuple[Condition, ...] = ()
        self._answered_at: datetime | None = None
        self._status: dict[str, Any] = {}
        self._status_at = float("-inf")

    async def run(
        self, body: Mapping[str, Any], conflict: str, may_write: Callable[[], bool]
    ) -> tuple[Report, list[Condition]]:
        """Run one round, and write the status.

        Args:
            body: the object.
            conflict: why another object has the key; empty if none has it.
            may_write: called before each write and before metrics are set.

        Returns:
            The report, and the changed conditions.

        """
        generation = body.get("metadata", {}).get("generation", 0)  # kopf updates the object during a round
        spec, fault = read_spec(body)
        if spec is None:
            report = reporting.unaccepted_report(Reason.INVALID_SPEC, fault)
        elif conflict:
            report = reporting.unaccepted_report(Reason.KEY_TAKEN, conflict)
        else:
            report = await self._run_accepted(spec, may_write)
        is_dry_run = spec is not None and spec.mode is PublisherMode.DRY_RUN
        report = msgspec.structs.replace(report, is_dry_run=is_dry_run)
        changed = reporting.changed_conditions(report, self._before)
        self._before = report.conditions
        if may_write():  # otherwise the object may be deleted, and its metrics too
            self._tools.metrics.publisher_stuck.labels(self._name).set(bool(report.stuck))
        for change in report.written:
            log.info(
                "taint-published", publisher=self._name, change=reporting.change_text(change, spec.key if spec else "")
            )
        await self._write_status(report, generation, body.get("status") or {})
        return report, changed

    async def withdraw(self, key: str) -> str:
        """Remove all taints and records of this object.

        Returns:
            Why some remain; empty if none does.

        """
        text = await self._withdrawn(key)
        if text:
            self._tools.metrics.publisher_stuck.labels(self._name).set(1)
        else:
            self._tools.metrics.forget_publisher(self._name)
        return text

    async def _withdrawn(self, key: str) -> str:
        async with self.lock:
            try:
                changes = withdrawals(self._name, key, await self._tools.cluster.nodes())
            except ClusterError as error:
                return str(error)
            written, problem = await self._write(changes, key, lambda: True)
        left = len(changes) - len(written)
        if not left:
            return ""
        text = f"{reporting.nodes_text(left)} still to lose the taint {key}"
        return text if problem is None else f"{text}: {problem.words}"

    async def _run_accepted(self, spec: PublisherSpec, may_write: Callable[[], bool]) -> Report:
        tools, series, trouble = self._tools, None, None
        try:
            access = await tools.cluster.access(spec.auth.secret_name) if spec.auth else Access()
            series = await run_query(tools.session, spec.url, spec.query, access, tools.clock(), tools.timeout_seconds)
        except NoAnswerError as error:
            trouble = error
        async with self.lock:
            try:
                nodes = await tools.cluster.nodes()
            except ClusterError as error:
                return Report(reporting.unreachable_conditions(trouble, str(error)), answered_at=self._answered_at)
            found = None if series is None else samples(series, spec.node_label, nodes)
            if found is not None and found.values:
                self._answered_at = self._now()
            elif found is not None:
                trouble = reporting.no_usable_series(found)
            decision = decide(self._decision_input(spec, nodes, found))
            written: list[Change] = []
            problem = None
            if spec.mode is PublisherMode.PUBLISH and not decision.is_too_much:
                written, problem = await self._write(decision.changes, spec.key, may_write)
        limit, has_answer = spec.max_changed_nodes, trouble is None
        publishing = reporting.publishing(decision, spec.key, spec.mode, limit, written, problem, has_answer=has_answer)
        conditions = (reporting.accepted(trouble), reporting.answered(trouble, found), publishing)
        return Report(conditions, decision, tuple(written), self._answered_at)

    def _decision_input(self, spec: PublisherSpec, nodes: Sequence[Node], found: Samples | None) -> DecisionInput:
        now = self._tools.monotonic()
        values = found.values if found else {}
        self._seen = {
            node.name: now if node.name in values else self._seen.get(node.name, self._since) for node in nodes
        }
        if self._changed is None:
            ages = recent_changes(self._name, spec.key, nodes, self._now())
            self._changed = {name: now - age.total_seconds() for name, age in ages.items()}
        self._changed = {name: at for name, at in self._changed.items() if now - at < WINDOW.total_seconds()}
        stale = frozenset(name for name, seen in self._seen.items() if now - seen >= spec.stale_after_seconds)
        return DecisionInput(self._name, spec, nodes, values, stale, self._now(), frozenset(self._changed))

    async def _write(
        self, changes: Sequence[Change], key: str, may_write: Callable[[], bool]
    ) -> tuple[list[Change], WriteProblem | None]:
        """Write changes concurrently, until one is refused or failures last. Returns those written, and a problem."""
        left = iter(sorted(changes, key=lambda change: change.node.name in self._failed))
        began = self._tools.monotonic()
        written: list[Change] = []
        refusals: list[WriteProblem] = []
        failures: dict[str, WriteProblem] = {}

        async def work() -> None:
            for change in left:
                is_late = failures and self._tools.monotonic() - began >= WRITING_SECONDS
                if refusals or is_late or not may_write():
                    return
                outcome, words = await self._tools.cluster.patch_node(change.node.name, patch(change, key))
                if outcome in (WriteOutcome.DONE, WriteOutcome.FAILED) and change.counts and self._changed is not None:
                    self._changed[change.node.name] = self._tools.monotonic()  # a failed write may have taken effect
                if outcome in (WriteOutcome.DONE, WriteOutcome.GONE):
                    written.append(change)
                elif outcome is WriteOutcome.REFUSED:
                    refusals.append(WriteProblem(Reason.WRITE_REFUSED, words))
                elif outcome is WriteOutcome.FAILED:
                    failures[change.node.name] = WriteProblem(Reason.WRITE_FAILED, words)
                    log.warning("taint-not-published", publisher=self._name, node=change.node.name, reason=words)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(MAX_WRITES, len(changes))):
                group.create_task(work())
        self._failed = frozenset(failures)
        found = (*refusals, *failures.values())
        return sorted(written, key=lambda change: change.node.name), found[0] if found else None

    async def _write_status(self, report: Report, generation: int, stored: Mapping[str, Any]) -> None:
        before = self._status or stored
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        status = reporting.status(report, generation, before, now)
        unchanged = {**status, "lastAnswerTime": ""} == {**self._status, "lastAnswerTime": ""}
        if unchanged and self._tools.monotonic() - self._status_at < STATUS_SECONDS:
            return
        try:
            await self._tools.cluster.patch_status(self._name, status)
        except ClusterError as error:
            log.warning("status-not-written", publisher=self._name, reason=str(error))
            return
        self._status, self._status_at = status, self._tools.monotonic()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._tools.clock(), UTC)
