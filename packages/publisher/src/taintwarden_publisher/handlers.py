"""The handlers of kopf: a daemon for each TaintPublisher, its deletion, and indexes of the claims to keys."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import kopf
from kubernetes.aio import client

from taintwarden.api.types import GROUP, POLICY_PLURAL, VERSION
from taintwarden_publisher import claims, reporting
from taintwarden_publisher.claims import KeyClaim
from taintwarden_publisher.cluster import connection_info
from taintwarden_publisher.rounds import Rounds, Tools
from taintwarden_publisher.spec import PLURAL, read_spec

FINALIZER = f"publisher.{GROUP}/taints"
CHECK_SECONDS = 1.0
"""Maximum seconds until a change of the spec ends the pause between two rounds."""
INVALID_SECONDS = 30
"""Seconds between two rounds of an object whose spec is invalid."""
RETRY_SECONDS = 5
"""Seconds between two attempts to remove the taints of a deleted object."""
FAULT_SECONDS = 30
"""Seconds until the daemon starts again after an internal error."""
_USUAL = (reporting.Reason.NOT_ACCEPTED, reporting.Reason.NOT_ANSWERED, reporting.Reason.DRY_RUN)
"""Reasons that are intended or that follow from another condition. Their Events are Normal."""
STOP_SECONDS = 40.0
"""Seconds for a started write to end when the process stops."""


class NoDiffBase(kopf.DiffBaseStorage):
    """Storage that keeps no copy of an object in its annotations, since no handler compares objects."""

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """Return the present object as the one that was handled last."""
        return self.build(body=body)

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Store nothing."""


def register(
    registry: kopf.OperatorRegistry, tools: Tools, load: Callable[[], Awaitable[client.Configuration]]
) -> None:
    """Register all handlers of the process. ``load`` reads the present connection to the API server."""
    daemons = Daemons(tools)

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.scanning.disabled = True  # the CRDs exist before the Deployment
        settings.peering.standalone = True
        settings.persistence.finalizer = FINALIZER
        settings.persistence.diffbase_storage = NoDiffBase()
        settings.persistence.progress_storage = kopf.StatusProgressStorage(field="status.kopf.progress")
        settings.posting.reporting_component = "taintwarden-publisher"
        settings.process.ultimate_exiting_timeout = STOP_SECONDS

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return connection_info(await load())

    @kopf.index(GROUP, VERSION, PLURAL, registry=registry, id="publishers")
    def publishers(name: str, body: kopf.Body, **_: Any) -> dict[str, KeyClaim]:
        return {name: claims.claim(body)}

    @kopf.index(GROUP, VERSION, POLICY_PLURAL, registry=registry, id="sources")
    def sources(name: str, body: kopf.Body, **_: Any) -> dict[str, str]:
        return dict.fromkeys(claims.source_keys(body), name)

    @kopf.daemon(
        GROUP,
        VERSION,
        PLURAL,
        registry=registry,
        id="publish",
        backoff=FAULT_SECONDS,
        cancellation_backoff=STOP_SECONDS,
        cancellation_timeout=STOP_SECONDS,
    )
    async def publish(body: kopf.Body, memo: kopf.Memo, stopped: kopf.DaemonStopped, **kwargs: Any) -> None:
        await daemons.run(body, memo, stopped, kwargs["publishers"], kwargs["sources"])

    @kopf.on.delete(GROUP, VERSION, PLURAL, registry=registry, id="withdraw")
    async def withdraw(name: str, body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
        rounds = memo.setdefault("rounds", Rounds(name, tools))
        if left := await rounds.withdraw(body.get("spec", {}).get("key", "")):
            raise kopf.TemporaryError(left, delay=RETRY_SECONDS)

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry, id="gone")
    def gone(name: str, type: str | None, memo: kopf.Memo, **_: Any) -> None:  # noqa: A002 - kopf names it
        """Stop the daemon. A user may have removed the finalizer before the taints were removed."""
        if type == "DELETED":
            memo["is_gone"] = True  # otherwise kopf would continue or start the daemon
            tools.metrics.forget_publisher(name)


class Daemons:
    """The daemons of all objects."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._is_exiting = False
        """True if the process exits. Queued events then still start daemons, which kopf would cancel during a write."""

    async def run(
        self,
        body: kopf.Body,
        memo: kopf.Memo,
        stopped: kopf.DaemonStopped,
        publishers: Mapping[str, Iterable[KeyClaim]],
        sources: Mapping[str, Iterable[str]],
    ) -> None:
        """Publish the values of one object until it is deleted, or until the process exits."""

        def is_wanted() -> bool:
            is_over = stopped or memo.get("is_gone") or "deletionTimestamp" in body.metadata
            return not (is_over or self._is_exiting)

        def conflict() -> str:
            others = [claim for store in list(publishers.values()) for claim in store]
            policies = {key: list(store) for key, store in list(sources.items())}
            return claims.conflict(claims.claim(body), others, policies)

        rounds = memo.setdefault("rounds", Rounds(str(body.metadata.name), self._tools))
        with self._tools.metrics.publisher_objects.track_inprogress():
            await _run_rounds(body, rounds, stopped, is_wanted, conflict, self._tools)
        if kopf.DaemonStoppingReason.OPERATOR_EXITING in (stopped.reason or ()):
            self._is_exiting = True


async def _run_rounds(
    body: kopf.Body,
    rounds: Rounds,
    stopped: kopf.DaemonStopped,
    is_wanted: Callable[[], bool],
    conflict: Callable[[], str],
    tools: Tools,
) -> None:
    """Run rounds while ``is_wanted``. A change of the spec ends the writes of a round, and starts the next one."""
    while is_wanted():
        generation = body.metadata.get("generation")

        def is_current(generation: int | None = generation) -> bool:
            return is_wanted() and body.metadata.get("generation") == generation

        with _report_stuck(str(body.metadata.name), tools, is_wanted):
            report, changed = await rounds.run(body, conflict(), is_current)
        _post_events(body, report, changed)
        spec, _fault = read_spec(body)
        seconds = float(spec.interval_seconds if spec else INVALID_SECONDS)
        while seconds > 0 and is_current():
            await stopped.wait(min(seconds, CHECK_SECONDS))
            seconds -= CHECK_SECONDS


@contextmanager
def _report_stuck(name: str, tools: Tools, is_wanted: Callable[[], bool]) -> Iterator[None]:
    """Set the metric of stuck publishers if an internal error ends a round. kopf logs the error and tries again."""
    try:
        yield
    except Exception:
        if is_wanted():
            tools.metrics.publisher_stuck.labels(name).set(1)
        raise


def _post_events(body: kopf.Body, report: reporting.Report, changed: list[reporting.Condition]) -> None:
    """Post an Event for each changed condition, and one for the written taints."""
    for condition in changed:
        is_usual = condition.status or condition.reason in _USUAL
        kopf.event(body, type="Normal" if is_usual else "Warning", reason=condition.reason, message=condition.text())
    if report.written:
        key = body.get("spec", {}).get("key", "")
        kopf.event(body, type="Normal", reason="TaintsPublished", message=reporting.changes_text(report.written, key))
