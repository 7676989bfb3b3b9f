"""Carries out ``plan``: reads the cluster, simulates the changes, and prints the plan."""

import sys
import time
from collections.abc import Iterable
from typing import Any

import click
from msgspec.structs import replace

from taintwarden.kube.wire.resources import NODES
from taintwarden.settings import Settings
from taintwarden_cli.cluster_session import ACTION_NEEDED, FINE, REFUSED, USAGE, ask, settings_of
from taintwarden_cli.data_output import write_answer
from taintwarden_cli.output import fail, printable
from taintwarden_cli.plan.command import SHOWN_PODS
from taintwarden_cli.plan.tables import parts, sweep_parts
from taintwarden_cli.rehearsal.changes import Change, NodeSelection, parse_removal, parse_taint
from taintwarden_cli.rehearsal.ideal import Assumptions
from taintwarden_cli.rehearsal.manifests import BadInput
from taintwarden_cli.rehearsal.reading import read_snapshot
from taintwarden_cli.rehearsal.rehearsal import rehearse
from taintwarden_cli.rehearsal.session import Session
from taintwarden_cli.rehearsal.simulation import PlanSimulation
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.rehearsal.sources import Named
from taintwarden_cli.rehearsal.sweep import parse_sweep, sweep
from taintwarden_cli.rendering import render


def plan(
    nodes: tuple[str, ...],
    zones: tuple[str, ...],
    selectors: tuple[str, ...],
    taints: tuple[str, ...],
    remove: tuple[str, ...],
    enforced: tuple[str, ...],
    swept: str | None,
    horizon: float,
    replacement_seconds: float,
    stop_seconds: float,
    show_all: bool,
    output: str,
    **flags: object,
) -> None:
    """Carry out ``taintwarden plan``."""
    settings, selection = settings_of(flags), NodeSelection(nodes, zones, selectors)
    if swept is not None:
        if taints or remove or enforced:
            words = "leave out --taint, --remove and --enforce"
            raise click.UsageError(f"--sweep is a plan of its own: {words}")
        _sweep(swept, selection, output, settings)
        return
    try:
        changes = _changes(selection, taints, remove)
    except BadInput as error:
        fail(printable(str(error)), USAGE)
    now = time.time()
    snapshot, labelled = _read(settings, selectors, now)
    changes = [replace(change, selection=replace(change.selection, labelled=labelled)) for change in changes]
    assumptions = Assumptions(replacement_seconds, stop_seconds)
    limits: dict[str, Any] = {"overall_rate": settings.overall_rate, "max_in_flight": settings.max_in_flight}
    try:
        answer = PlanSimulation(snapshot, now, assumptions, settings.gates, enforced, **limits).run(changes, horizon)
    except BadInput as error:
        fail(printable(str(error)), REFUSED)
    write_answer(answer, output, lambda: render(*parts(answer, None if show_all else SHOWN_PODS)))
    sys.exit(ACTION_NEEDED if answer.needs_action else FINE)


def _sweep(text: str, selection: NodeSelection, output: str, settings: Settings) -> None:
    now = time.time()
    try:
        wanted = parse_sweep(text)
        selection.check()
    except BadInput as error:
        fail(printable(str(error)), USAGE)
    snapshot, labelled = _read(settings, selection.selectors, now)
    rehearsal = rehearse(snapshot, settings.gates)
    try:
        names = [node.metadata.name for node in replace(selection, labelled=labelled).find(snapshot.nodes)]
    except BadInput as error:
        fail(printable(str(error)), REFUSED)
    modes = {policy.name: policy.mode for policy in rehearsal.policies}
    found = sweep(rehearsal.view, wanted, names, settings.gates, modes, now)
    found.notes += rehearsal.notes()
    write_answer(found, output, lambda: render(*sweep_parts(found)))
    sys.exit(ACTION_NEEDED if found.needs_action else FINE)


def _read(settings: Settings, selectors: Iterable[str], now: float) -> tuple[Snapshot, dict[str, list[str]]]:
    """Read the cluster, and the names of the nodes that each label selector selects."""

    async def read(session: Session) -> tuple[Snapshot, dict[str, list[str]]]:
        labelled = {}
        for text in selectors:
            pages = session.pages(NODES.path, Named, NODES.name, label_selector=text)
            labelled[text] = [named.metadata.name async for page in pages for named in page]
        return await read_snapshot(session, settings.namespace, now), labelled

    return ask(settings, read)


def _changes(selection: NodeSelection, taints: tuple[str, ...], remove: tuple[str, ...]) -> list[Change]:
    is_named = selection != NodeSelection()
    if is_named != bool(taints or remove):
        words = "give --taint or --remove" if is_named else "name nodes by --node, --zone or --selector"
        raise click.UsageError(f"nodes and changes belong together: {words}")
    if not is_named:
        return []
    selection.check()
    return [Change(selection, tuple(map(parse_taint, taints)), tuple(map(parse_removal, remove)))]
