"""What policies say of themselves, written: ``status`` and the gauges, from one report, at most every few seconds."""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec
import structlog

from taintwarden.api.status import Condition, ConditionStatus, PolicyStatus
from taintwarden.controller import wording
from taintwarden.controller.clock import Clock
from taintwarden.controller.gauges import Gauges
from taintwarden.controller.summary import conditions, summary
from taintwarden.engine.machine import Machine
from taintwarden.engine.machine.report import PolicyReport, report
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
        self._gauges = Gauges(metrics, machine)
        self._clock = clock
        self._standings = standings
        self._may_write = may_write
        self._written: dict[str, PolicyStatus] = {}
        self._since: dict[str, dict[str, tuple[str, str]]] = {}
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Refresh the gauges and, while leading, the statuses, forever."""
        while True:
            reports = {entry.policy.name: entry for entry in report(self._machine, self._clock())}
            self._gauges.measure(reports.values())
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
        patch = msgspec.to_builtins(status)
        if entry is not None and name not in self._machine.limiter.guards:
            patch["guard"] = None  # nobody else writes of a guard that is not there any more
        try:
            await patch_status(self._client, name, patch)
        except KubeError as error:
            log.warning("status-not-written", policy=name, reason=str(error))
        else:
            self._written[name] = status

    def _status(self, name: str, standing: Standing, entry: PolicyReport | None) -> PolicyStatus:
        told = PolicyStatus() if entry is None else summary(entry, self._clock().wall)
        said = conditions(entry, standing.problem, standing.generation)
        return msgspec.structs.replace(
            told,
            observed_generation=standing.generation,
            conditions=tuple(self._condition(name, standing, *one) for one in said),
        )

    def _condition(self, name: str, standing: Standing, kind: str, value: str, reason: str, message: str) -> Condition:
        since = self._since.setdefault(name, dict(standing.conditions))
        known = since.get(kind)
        if known is None or known[0] != value:
            known = (value, wording.at(self._clock().wall))
        since[kind] = known
        return Condition(kind, ConditionStatus(value), reason, message[:1024], known[1], standing.generation)
