"""What policies say of themselves: ``status`` and the gauges, from one report, at most every few seconds."""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec
import structlog

from taintwarden.api.status import Condition, ConditionStatus, NextPod, PodState, PolicyStatus
from taintwarden.controller import wording
from taintwarden.controller.clock import Clock
from taintwarden.engine.machine import Machine
from taintwarden.engine.machine.pending import Pending, Phase
from taintwarden.engine.machine.report import PolicyReport, report
from taintwarden.engine.model import Mode
from taintwarden.kube.client import Client
from taintwarden.kube.errors import KubeError
from taintwarden.kube.policies import patch_status
from taintwarden.telemetry.metrics import Metrics

REFRESH_SECONDS = 3.0

log = structlog.get_logger()


class Standing(msgspec.Struct, frozen=True):
    """A policy as it is stored: its generation, and why it is not accepted, if so."""

    generation: int
    problem: str = ""
    conditions: dict[str, tuple[str, str]] = {}
    """What stands in the stored status: type -> (status, lastTransitionTime). A restart is no transition."""


class StatusWriter:
    """Writes what changed.

    Args:
        client: the session to use.
        machine: whose state is told.
        metrics: gauges to set.
        clock: for transition times.
        standings: the stored policies by name, kept by the handlers.
        may_write: whether this replica leads.

    """

    def __init__(
        self,
        client: Client,
        machine: Machine,
        metrics: Metrics,
        clock: Clock,
        standings: dict[str, Standing],
        may_write: Callable[[], bool],
    ) -> None:
        self._client = client
        self._machine = machine
        self._metrics = metrics
        self._clock = clock
        self._standings = standings
        self._may_write = may_write
        self._written: dict[str, PolicyStatus] = {}
        self._since: dict[str, dict[str, tuple[str, str]]] = {}
        self._wanted = asyncio.Event()
        self._judged: dict[tuple[str, str], int] = {}

    async def run(self) -> None:
        """Refresh the gauges and, while leading, the statuses, forever."""
        while True:
            reports = {entry.policy.name: entry for entry in report(self._machine)}
            self._measure(reports)
            for known in (self._written, self._since):
                for name in [name for name in known if name not in self._standings]:
                    del known[name]
            if self._may_write() and self._machine.synced:
                for name, standing in list(self._standings.items()):
                    await self._write(name, standing, reports.get(name))
            else:
                self._written.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_SECONDS):
                    await self._wanted.wait()
            self._wanted.clear()

    def refresh(self) -> None:
        """Write soon, without waiting for the next turn."""
        self._wanted.set()

    async def _write(self, name: str, standing: Standing, entry: PolicyReport | None) -> None:
        status = self._status(name, standing, entry)
        if status == self._written.get(name):
            return
        try:
            await patch_status(self._client, name, msgspec.to_builtins(status))
        except KubeError as error:
            log.warning("status-not-written", policy=name, reason=str(error))
        else:
            self._written[name] = status

    def _status(self, name: str, standing: Standing, entry: PolicyReport | None) -> PolicyStatus:
        accepted = ("True", "Valid", "") if not standing.problem else ("False", "Invalid", standing.problem)
        said = [("Accepted", *accepted)]
        if entry is None:
            none = "no valid version of this policy is known, so it does nothing"
            said.append(("Enforcing", "False", "NotAccepted", none))
            counts = PolicyStatus()
        else:
            said += [("Enforcing", *_enforcing(entry)), ("Progressing", *_progressing(entry))]
            counts = PolicyStatus(
                selected_nodes=entry.selected_nodes,
                degraded_nodes=entry.degraded_nodes,
                pending=entry.pending,
                blocked=entry.blocked,
                evicted=entry.evicted,
                held_invalid=entry.held_invalid,
                next_deadline=None if entry.next_deadline is None else wording.at(entry.next_deadline),
                limited_by=entry.limited_by or None,
                next_pods=tuple(_next_pod(pending, self._clock().wall) for pending in entry.next_pods),
            )
        conditions = tuple(self._condition(name, standing, *condition) for condition in said)
        return msgspec.structs.replace(counts, observed_generation=standing.generation, conditions=conditions)

    def _condition(self, name: str, standing: Standing, kind: str, value: str, reason: str, message: str) -> Condition:
        since = self._since.setdefault(name, dict(standing.conditions))
        known = since.get(kind)
        if known is None or known[0] != value:
            known = (value, wording.at(self._clock().wall))
        since[kind] = known
        return Condition(kind, ConditionStatus(value), reason, message[:1024], known[1], standing.generation)

    def _measure(self, reports: dict[str, PolicyReport]) -> None:
        machine, metrics = self._machine, self._metrics
        metrics.nodes.set(sum(1 for state in machine.nodes.values() if state.node is not None))
        metrics.pods.set(sum(len(state.pods) for state in machine.nodes.values()))
        for gauge in (metrics.pending, metrics.degraded_nodes, metrics.blocked):
            gauge.clear()  # a deleted policy leaves nothing behind
        for name, entry in reports.items():
            metrics.pending.labels(name).set(entry.pending)
            metrics.degraded_nodes.labels(name).set(entry.degraded_nodes)
            for reason, pods in entry.blocked_by.items():
                metrics.blocked.labels(name, reason).set(pods)
        for key, count in machine.evaluator.counts.items():
            metrics.evaluations.labels(*key).inc(count - self._judged.get(key, 0))
            self._judged[key] = count


def _enforcing(entry: PolicyReport) -> tuple[str, str, str]:
    if entry.policy.mode is Mode.ENFORCE:
        return "True", "Enforcing", ""
    return "False", entry.policy.mode.value, f"mode is {entry.policy.mode.value}: nothing is evicted"


def _progressing(entry: PolicyReport) -> tuple[str, str, str]:
    if not entry.pending:
        return "False", "Idle", "no pod has to leave"
    if entry.limited_by:
        return "True", "Limited", f"{entry.pending} pods have to leave; {entry.limited_by} holds the next one"
    if entry.blocked:
        return "True", "Blocked", f"{entry.pending} pods have to leave; {entry.blocked} are blocked by a budget"
    return "True", "Pending", f"{entry.pending} pods have to leave"


def _next_pod(pending: Pending, now: float) -> NextPod:
    pod = pending.pod
    state = PodState.WAITING if pending.due_at <= now else PodState.SCHEDULED
    if pending.phase is Phase.WAITING and pending.outcome is not None:
        state = PodState.BLOCKED
    return NextPod(pod.namespace, pod.name, pod.node, str(pending.verdict.taint), wording.at(pending.due_at), state)
