"""Carries out ``history``: a timeline of the operator's Events."""

import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.text import Text

from taintwarden.api.types import POLICY_KIND
from taintwarden.controller.words import wording
from taintwarden.engine import rfc3339
from taintwarden_cli.cluster_session import ask, settings_of
from taintwarden_cli.data_output import write_answer
from taintwarden_cli.output import listed, printable
from taintwarden_cli.rehearsal.liveness import read_liveness
from taintwarden_cli.rehearsal.session import Session
from taintwarden_cli.rendering import render, rows

EVENTS = "/api/v1/events"
CONTROLLER = "taintwarden.io/taintwarden"
_HEADER = ("TIME", "REASON", "ABOUT", "NOTE")
_CLUSTER_SCOPED = ("Node", POLICY_KIND)
"""Kinds of objects that have no namespace."""
_CAVEAT = "These are the cluster's Events: any account that may create Events can have written one."
MAX_NAMED = 3
"""Maximum number of objects named for a group."""
KEPT_SECONDS = 3_600.0
"""Maximum age of the Events that are counted. API servers keep them for an hour, unless configured otherwise."""


class Involved(msgspec.Struct):
    """The object that an Event concerns."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Series(msgspec.Struct, rename="camel"):
    count: int = 1
    last_observed_time: str | None = None


class _Event(msgspec.Struct, rename="camel"):
    event_time: str | None = None
    last_timestamp: str | None = None
    series: _Series | None = None
    reporting_component: str = ""
    reason: str = ""
    message: str = ""
    type: str = ""
    involved_object: Involved = msgspec.field(default_factory=Involved)


class Happening(msgspec.Struct):
    """One entry of the timeline. ``count`` is how often it was reported, ``at`` when it was last."""

    at: str
    reason: str
    type: str
    kind: str
    namespace: str
    name: str
    note: str
    count: int = 1


class Timeline(msgspec.Struct):
    """The timeline, the oldest entry first. ``problem`` is why no operator is running, if none is."""

    at: str
    since: str
    problem: str
    happenings: list[Happening]


def show(since: float, pod_namespace: str, output: str, **flags: object) -> None:
    """Carry out ``taintwarden history``."""
    settings, now = settings_of(flags), time.time()
    found = ask(settings, lambda session: read_timeline(session, settings.namespace, pod_namespace, since, now))
    write_answer(found, output, lambda: render(*parts(found)))


async def read_timeline(
    session: Session, operator_namespace: str, pod_namespace: str, seconds: float, now: float
) -> Timeline:
    """Read the timeline of the last ``seconds``. ``pod_namespace`` is empty for pods of all namespaces.
    Raises ClusterError if the Events or policies cannot be read.
    """
    since = now - seconds
    kept = [
        (at, happening)
        for at, happening in await read_events(session, since)
        if not happening.namespace or pod_namespace in ("", happening.namespace)
    ]
    kept.sort(key=lambda pair: (pair[0], pair[1].reason, pair[1].namespace, pair[1].name))
    problem = (await read_liveness(session, operator_namespace, await session.policies(dict[str, Any]), now)).problem
    return Timeline(rfc3339.at(now), rfc3339.at(since), problem, [happening for _, happening in kept])


async def read_events(session: Session, since: float, reason: str = "") -> list[tuple[float, Happening]]:
    """Read the Events of the operator since a time, of one reason or of all, each with its time.
    Raises ClusterError if they cannot be read.
    """
    selector = f"reportingComponent={CONTROLLER}" + (f",reason={reason}" if reason else "")
    pages = session.pages(EVENTS, _Event, "events", selector)
    found = [_happening(event) async for page in pages for event in page if _may_be_by_operator(event)]
    return [one for one in found if one[0] >= since]


def _may_be_by_operator(event: _Event) -> bool:
    """True if the operator may have written it. A tenant may write any Event about its own namespace, a kubelet any."""
    about = event.involved_object
    return event.reporting_component == CONTROLLER and not (about.namespace and about.kind in _CLUSTER_SCOPED)


def _happening(event: _Event) -> tuple[float, Happening]:
    series = event.series or _Series()
    at = rfc3339.read_time(series.last_observed_time or event.event_time or event.last_timestamp) or 0.0
    about = event.involved_object
    what = about.kind, about.namespace, about.name, event.message, series.count
    return at, Happening(rfc3339.at(at), event.reason, event.type, *what)


def parts(found: Timeline) -> Iterator[RenderableType]:
    """The timeline as text. Pods, and nodes, with the same reason by the same policy within a minute are one line."""
    if found.problem:
        yield Text(printable(f"{found.problem[0].upper()}{found.problem[1:]}."), style="bold red")
        yield Text("")
    if not found.happenings:
        yield Text(f"Nothing happened since {found.since}.")
        return
    yield rows(_HEADER, map(_styled, _grouped(found.happenings)))
    yield Text("")
    yield Text(_CAVEAT, style="dim")


def _styled(group: list[Happening]) -> tuple[str | Text, ...]:
    """One row for a group. Warnings, and changes by people, are in colour."""
    first = group[0]
    style = "yellow" if first.type == "Warning" else "cyan" if first.reason.startswith("Policy") else ""
    names = list(dict.fromkeys(f"{one.namespace}/{one.name}" if one.namespace else one.name for one in group))
    about = f"{first.kind} {names[0]}" if len(names) == 1 else wording.several(len(names), first.kind.lower())
    if (times := sum(happening.count for happening in group)) > len(names):
        about += f", {times} times"
    note = first.note if len(names) == 1 else f"{listed(names, MAX_NAMED)}; the first: {first.note}"
    return Text(first.at, style="dim"), Text(printable(first.reason), style=style), about, note


def _grouped(happenings: Iterable[Happening]) -> Iterator[list[Happening]]:
    for _, minute in groupby(happenings, key=lambda happening: happening.at[:16]):
        groups: dict[object, list[Happening]] = {}
        for one in minute:
            what = (policy_of(one.note),) if one.kind in ("Pod", "Node") else (one.name, one.note)
            groups.setdefault((one.kind, one.reason, *what), []).append(one)
        yield from groups.values()


def policy_of(note: str) -> str:
    """The policy that a note names at its end; empty if it names none."""
    _, found, policy = note.rpartition("(policy ")
    return policy.rstrip(")").partition(":")[0] if found else ""
