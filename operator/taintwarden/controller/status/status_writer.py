"""Writer of the status of policies and profiles, and of the gauges, at most every few seconds."""

import asyncio
import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar

import msgspec

from taintwarden.api.status import ProfileStatus
from taintwarden.controller.clock import Clock
from taintwarden.controller.decoding.times import moment
from taintwarden.controller.loop import LONGEST_SLEEP_SECONDS, Loop
from taintwarden.controller.status.gauges import Gauges
from taintwarden.controller.status.status_patches import StatusPatcher
from taintwarden.controller.status.summary import conditions, profile_conditions
from taintwarden.controller.stores.object_store import ObservedObject
from taintwarden.engine import rfc3339
from taintwarden.engine.machine import PolicyReport, View
from taintwarden.engine.model import Instant
from taintwarden.engine.reported_status import ReportedStatus
from taintwarden.kube.calls.own_kinds import POLICIES, PROFILES, patch_status
from taintwarden.kube.http.client import Client
from taintwarden.telemetry.metrics import Metrics

REFRESH_SECONDS = 3.0
PAUSE = 4.0
"""Pause after each part of a report, for evictions, as a multiple of the CPU time of the part."""
REST = 60.0
"""Time between reports, at most ``REPORT_SECONDS``: a multiple of one's CPU time (0.2 to 0.4 s for 100,000 claims)."""
REPORT_SECONDS = 20.0
"""Seconds until the next round writes an unchanged status of a policy. After a minute, the operator counts as dead."""
PROFILES_PER_ROUND = 50
"""Maximum statuses of profiles written in one round. The numbers of their pods change often, as pods come and go."""
PROFILES_SECONDS, PROFILE_TIMEOUT_SECONDS = 10.0, 5.0
"""Seconds after which a round begins no other write of a profile, and maximum seconds for one: the webhooks of a
namespace may be slow, and policies wait meanwhile.
"""
PROFILES_AT_ONCE = 200
"""Maximum statuses of profiles compared in one step of the event loop."""


T = TypeVar("T")


class _Round(msgspec.Struct, frozen=True):
    """The reports of all policies by name, as of the time ``at``. The next round begins after ``lasts_seconds``.

    ``changes``: ``Loop.changes`` when they were made. ``holds_until``: monotonic time until which the reports hold if
    that number stays.
    """

    reports: Mapping[str, PolicyReport]
    at: Instant
    lasts_seconds: float
    changes: int
    holds_until: float


class StatusWriter:
    """Writes the statuses that have changed, and sets the gauges.

    Args:
        client: sends the writes.
        view: the state to report.
        metrics: contains the gauges to set.
        clock: gives transition times.
        observed: the stored policies by name, kept by their store.
        profiles: the stored profiles by ``namespace/name``, kept by their store.
        may_write: returns True if this replica leads.
        loop: counts changes, and has the machine, which knows when its state changes without an event.
        dry_run: True if no policy may enforce.
        refresh_seconds: minimum seconds between two reports.
        cpu: reads the CPU time of this thread in seconds; replaced in tests.

    """

    def __init__(
        self,
        client: Client,
        view: View,
        metrics: Metrics,
        clock: Clock,
        observed: dict[str, ObservedObject],
        profiles: dict[str, ObservedObject],
        may_write: Callable[[], bool],
        loop: Loop,
        *,
        dry_run: bool = False,
        refresh_seconds: float = REFRESH_SECONDS,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._view = view
        self._cpu = cpu
        self._gauges = Gauges(metrics, view)
        self._clock = clock
        self._observed = observed
        self._profiles = profiles
        self._may_write = may_write
        self._loop = loop
        self._dry_run = dry_run
        self._refresh_seconds = refresh_seconds
        self._policy_patcher = StatusPatcher(
            "policy", partial(patch_status, client, POLICIES, fence=may_write), observed, clock, REPORT_SECONDS
        )
        self._profile_patcher = StatusPatcher(
            "profile",
            partial(patch_status, client, PROFILES, fence=may_write, timeout_seconds=PROFILE_TIMEOUT_SECONDS),
            profiles,
            clock,
        )
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Refresh the gauges and, while leading, the statuses, forever."""
        patchers = (self._policy_patcher, self._profile_patcher)
        latest: _Round | None = None
        while True:
            latest = await self._report(latest)
            for status_patcher in patchers:
                status_patcher.prune()
            if self._may_write() and self._view.is_synced:
                for name, observed in list(self._observed.items()):
                    if self._clock().monotonic - latest.at.monotonic >= latest.lasts_seconds:  # the writes took long
                        latest = await self._report(latest)
                    await self._write(name, observed, latest)
                await self._write_profiles()
            else:
                for status_patcher in patchers:
                    status_patcher.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(latest.lasts_seconds):
                    await self._wanted.wait()
            self._wanted.clear()

    async def _report(self, latest: _Round | None) -> _Round:
        """Set the gauges from the latest reports. Make new reports first if these do not hold any more."""
        at = self._clock()
        if latest is None or self._loop.changes != latest.changes or at.monotonic >= latest.holds_until:
            latest = await self._count_claims(at)
        refused = ((name, bool(observed.problem)) for name, observed in self._observed.items())
        profiles = (bool(observed.problem) for observed in self._profiles.values())
        self._gauges.measure(latest.reports.values(), refused, profiles)
        return msgspec.structs.replace(latest, at=at)

    async def _count_claims(self, at: Instant) -> _Round:
        """Report every policy, which counts all claims. Evictions continue meanwhile."""
        changes, wake_after = self._loop.changes, self._loop.machine.wake_after(at)
        reports, cost = await self._run_slices(self._view.report_in_slices(at))
        lasts_seconds = max(self._refresh_seconds, min(REST * cost, REPORT_SECONDS))
        holds_until = at.monotonic + holds_seconds(reports, at.wall, wake_after)
        return _Round({report.policy.name: report for report in reports}, at, lasts_seconds, changes, holds_until)

    async def _run_slices(self, slices: Generator[None, None, T]) -> tuple[T, float]:
        """Return the result of a generator that works in slices, and the CPU time of all slices in seconds."""
        cost = took = 0.0
        while True:
            await asyncio.sleep(PAUSE * took)
            began = self._cpu()
            try:
                next(slices)
            except StopIteration as done:
                made: T = done.value
                return made, cost + self._cpu() - began
            took = self._cpu() - began
            cost += took

    def refresh(self) -> None:
        """Begin the next round without a pause."""
        self._wanted.set()

    async def _write(self, name: str, observed: ObservedObject, latest: _Round) -> None:
        entry = latest.reports.get(name)
        reported = ReportedStatus() if entry is None else entry.status
        rows = conditions(entry, observed.problem, observed.generation, dry_run=self._dry_run)
        more: dict[str, Any] = {"observedAt": rfc3339.at(latest.at.wall)}
        ended: list[str] = []
        if entry is not None:  # no other writer removes a guard, or places, that no longer exist
            of_view = {"guard": self._view.guard(name), "places": self._view.places(name)}
            ended = [field for field in observed.records if of_view[field] is None]
        await self._policy_patcher.write_status(name, reported, observed, rows, more, ended)

    async def _write_profiles(self) -> None:
        matched, _ = await self._run_slices(self._view.matched_pods())
        written, ends_at = 0, self._clock().monotonic + PROFILES_SECONDS
        for number, key in enumerate(in_turns(self._profile_patcher.oldest_first())):
            if number % PROFILES_AT_ONCE == 0:
                await asyncio.sleep(0)
            observed = self._profiles.get(key)
            if written >= PROFILES_PER_ROUND or self._clock().monotonic >= ends_at:
                break
            if observed is None:  # the profile was deleted while others were written
                continue
            reported = ProfileStatus(matched_pods=matched.get(key, 0))
            rows = profile_conditions(observed.problem, in_force=key in matched)
            written += await self._profile_patcher.write_status(key, reported, observed, rows)


def holds_seconds(reports: Sequence[PolicyReport], now: float, wake_after: float | None) -> float:
    """Return seconds for which reports hold without an event; 0 while pods leave or bounce or a guard is tripped."""
    if any(one.status.leaving or one.bouncing or (one.guard and one.guard.record.tripped_at) for one in reports):
        return 0.0
    deadlines = [moment(report.status.next_deadline) - now for report in reports if report.status.next_deadline]
    return min(LONGEST_SLEEP_SECONDS, math.inf if wake_after is None else wake_after, *deadlines)


def in_turns(keys: Iterable[str]) -> list[str]:
    """Order keys so that namespaces take turns. A namespace with thousands of keys delays no other."""
    turns: defaultdict[str, Iterator[int]] = defaultdict(count)
    return sorted(keys, key=lambda key: next(turns[key.partition("/")[0]]))
