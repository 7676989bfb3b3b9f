"""``taintwarden plan``: the effect of changed taints, before you change them."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from taintwarden.cli.completion import NODES, POLICIES
from taintwarden.cli.failures import fail
from taintwarden.cli.options import Duration, Seconds, cluster_options, operator_option
from taintwarden.cli.output import output_option, printable, write, write_data
from taintwarden.cli.progress import Progress

if TYPE_CHECKING:
    from taintwarden.rehearsal.changes import Change
    from taintwarden.rehearsal.ideal import Assumptions
    from taintwarden.rehearsal.plan import Plan
    from taintwarden.rehearsal.snapshot import Snapshot
    from taintwarden.settings import Settings

FINE, ERROR, USAGE, PERSON = 0, 1, 2, 10
SHOWN_PODS = 40

_HELP = """Show what follows from changed taints: which pods are evicted, in which order and by when under all limits,
which limit delays which pods, whether a guard trips, which pods have no node to go to, and which may come back to a
node that they have to leave. Nothing is changed.

The cluster is read once; then the operator's own engine plays the time after the change on a clock of its own, in an
idealised cluster: evictions succeed, pods stop in --stop-seconds, a replacement is Ready after --replacement-seconds
on the emptiest node whose taints and labels it accepts, and PodDisruptionBudgets allow what their status says.
Requests of pods, affinity to pods, volumes and people are not looked at. Without a change it is a forecast of
the current state. --enforce shows what follows when a policy that is paused or in mode DryRun begins to enforce now.

--sweep sla=980..900 shows how many pods have to leave at each value instead, as a table with bars: only the values
at which something changes are listed. KEY=VALUE,VALUE tries single values, such as versions; :EFFECT at the end is
another effect than NoExecute. Without nodes it is about those that carry the taint. Time and limits are not played.

--node, --zone and --selector each add nodes; --taint and --remove are about all of them. A file holds a list:

\b
  - zone: zone-a
    taints: ["sla=900:NoExecute"]
  - selector: pool=spot
    remove: [maintenance]

Needs the right to list taintevictionpolicies, tolerationprofiles, nodes, pods, namespaces, replicasets, statefulsets,
daemonsets, replicationcontrollers, jobs and poddisruptionbudgets.

\b
Examples:
  taintwarden plan --node a1 --taint sla=900:NoExecute
  taintwarden plan --zone zone-a --taint sla=900:NoExecute --horizon 2h
  taintwarden plan --selector pool=spot --remove maintenance -o json
  taintwarden plan --file changes.yaml
  taintwarden plan --enforce sla
  taintwarden plan --sweep sla=980..900
  taintwarden plan --sweep example.com/cni-version=v1.16.0,v1.15.0 --zone zone-a
  kubectl taintwarden plan

\b
Exit codes:
  0   nothing stands out
  1   the cluster cannot be reached, or has no such nodes
  2   wrong flags or unusable files
  10  look first: a guard trips, pods wait at the end, have no other node, or may come back to a node that they
      have to leave

JSON and YAML have: at, changes[], changedNodes, horizonSeconds, endedAfterSeconds, assumptions, leaving, held, later,
wouldLeave, nowhere, returning, pods[] (namespace, name, node, policy, taint, fate, deadline, already, order, at,
afterSeconds, deleted, waitedSeconds, limit, reason, budgets[], replacement, replacedOn, returnsTo, late), spared[],
guards[], notes[]. With --sweep: at, key, effect, nodes, pods, policies[], would[], steps[] (value, leaving, more,
workloads, trips[]), notes[].
"""


@click.command(help=_HELP, short_help="Show what follows from changed taints.")
@click.option("--node", "nodes", multiple=True, shell_complete=NODES, help="A node by its name.")
@click.option("--zone", "zones", multiple=True, help="The nodes of a zone.")
@click.option("-l", "--selector", "selectors", multiple=True, help="The nodes with these labels.")
@click.option("--taint", "taints", multiple=True, help="A taint to set, KEY=VALUE:EFFECT.")
@click.option("--remove", multiple=True, help="A taint to remove, KEY or KEY:EFFECT.")
@click.option(
    "--enforce",
    "enforced",
    multiple=True,
    metavar="POLICY",
    shell_complete=POLICIES,
    help="Plan as if this policy enforced.",
)
@click.option("--sweep", "swept", metavar="KEY=FROM..TO", help="Count the pods that leave at each value of a taint.")
@click.option("-f", "--file", "files", multiple=True, help="Read changes from this file; - is stdin.")
@click.option("--horizon", type=Duration(), default="1h", show_default=True, help="How far to look ahead.")
@click.option(
    "--replacement-seconds",
    type=Seconds(0, 86_400),
    default=30.0,
    show_default=True,
    help="Until the replacement of an evicted pod is Ready.",
)
@click.option(
    "--stop-seconds",
    type=Seconds(0, 86_400),
    default=5.0,
    show_default=True,
    help="How long an evicted pod takes to stop; no longer than its grace period.",
)
@click.option(
    "--max-evictions-per-second",
    type=float,
    help="The operator's maximum over all policies; 0 is no maximum. [default: 50]",
)
@click.option("-n", "--namespace", "space", default="", help="Show only the pods of this namespace. Default: all.")
@click.option("--all", "show_all", is_flag=True, help=f"Show more than {SHOWN_PODS} pods.")
@operator_option
@cluster_options
@output_option
def plan(
    nodes: tuple[str, ...],
    zones: tuple[str, ...],
    selectors: tuple[str, ...],
    taints: tuple[str, ...],
    remove: tuple[str, ...],
    enforced: tuple[str, ...],
    swept: str | None,
    files: tuple[str, ...],
    horizon: float,
    replacement_seconds: float,
    stop_seconds: float,
    space: str,
    show_all: bool,
    output: str,
    **flags: object,
) -> None:
    """Read the arguments, ask, play, print; the text of ``--help`` is above."""
    # The engine and the cluster's client take a while to import, and `--help` does not need them.
    from taintwarden.cli.cluster_session import ask, settings_of  # noqa: PLC0415
    from taintwarden.cli.plan.plan_table import table  # noqa: PLC0415
    from taintwarden.rehearsal.ideal import Assumptions  # noqa: PLC0415
    from taintwarden.rehearsal.manifests import BadInput  # noqa: PLC0415
    from taintwarden.rehearsal.reading import read_snapshot  # noqa: PLC0415

    settings = settings_of(flags)
    if swept is not None:
        if taints or remove or files or enforced:
            raise click.UsageError("--sweep is a plan of its own: leave out --taint, --remove, --file and --enforce")
        _sweep(swept, (nodes, zones, selectors), output, settings)
        return
    try:
        changes = _changes((nodes, zones, selectors), taints, remove, files)
    except BadInput as error:
        fail(printable(str(error)), USAGE)
    with Progress() as progress:
        progress.say("reading the cluster")
        now = time.time()
        snapshot = ask(settings, lambda session: read_snapshot(session, settings.namespace, now), max_connections=12)
        assumptions = Assumptions(replacement_seconds, stop_seconds)
        try:
            answer = _play(snapshot, changes, enforced, horizon, now, assumptions, settings, progress)
        except BadInput as error:
            fail(printable(str(error)), ERROR)
    answer = answer.narrowed(space) if space else answer
    if output == "table":
        write(table(answer, None if show_all else SHOWN_PODS))
    else:
        write_data(answer, output)
    sys.exit(PERSON if answer.needs_a_person else FINE)


def _sweep(
    text: str, where: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], output: str, settings: "Settings"
) -> None:
    from taintwarden.cli.cluster_session import ask  # noqa: PLC0415
    from taintwarden.cli.plan.sweep_table import table  # noqa: PLC0415
    from taintwarden.engine.model import Gates  # noqa: PLC0415
    from taintwarden.rehearsal.changes import Where  # noqa: PLC0415
    from taintwarden.rehearsal.manifests import BadInput  # noqa: PLC0415
    from taintwarden.rehearsal.reading import read_snapshot  # noqa: PLC0415
    from taintwarden.rehearsal.rehearsal import Rehearsal, at_once  # noqa: PLC0415
    from taintwarden.rehearsal.sweep import parse_sweep, sweep  # noqa: PLC0415

    named, now = Where(*where), time.time()
    try:
        wanted = parse_sweep(text)
        named.check()
    except BadInput as error:
        fail(printable(str(error)), USAGE)
    snapshot = ask(settings, lambda session: read_snapshot(session, settings.namespace, now), max_connections=12)
    gates, clock = Gates(settings.numeric_operators, settings.semver_operators), at_once(now)
    rehearsal = Rehearsal(snapshot, gates, clock)
    rehearsal.teach()
    try:
        names = [one.metadata.name for one in named.find(snapshot.nodes)] if any(where) else []
    except BadInput as error:
        fail(printable(str(error)), ERROR)
    modes = {one.name: one.mode for one in rehearsal.policies}
    found = sweep(rehearsal.view, wanted, names, gates, modes, clock())
    if output == "table":
        write(table(found))
    else:
        write_data(found, output)


def _play(
    snapshot: "Snapshot",
    changes: "list[Change]",
    enforced: tuple[str, ...],
    horizon: float,
    now: float,
    assumptions: "Assumptions",
    settings: "Settings",
    progress: Progress,
) -> "Plan":
    from taintwarden.controller.wording import duration  # noqa: PLC0415
    from taintwarden.engine.model import Gates  # noqa: PLC0415
    from taintwarden.rehearsal.play import Play  # noqa: PLC0415

    progress.say(f"looking at {len(snapshot.pods)} pods on {len(snapshot.nodes)} nodes")
    gates = Gates(settings.numeric_operators, settings.semver_operators)
    limits: dict[str, Any] = {"overall_rate": settings.overall_rate, "max_in_flight": settings.max_in_flight}
    play = Play(snapshot, now, assumptions, gates, enforced, **limits)
    return play.run(
        changes,
        horizon,
        lambda at, gone: progress.say(f"{duration(at)} of {duration(horizon)}, {gone} pods have left"),
    )


def _changes(
    where: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    taints: tuple[str, ...],
    remove: tuple[str, ...],
    files: tuple[str, ...],
) -> "list[Change]":
    from taintwarden.rehearsal.changes import (  # noqa: PLC0415
        Change,
        Where,
        parse_removal,
        parse_taint,
        read_changes,
    )
    from taintwarden.rehearsal.manifests import read_documents  # noqa: PLC0415

    found: list[Change] = []
    for file in files:
        documents = read_documents(file)
        contents = [one.content for one in documents]
        # The file is one list, or each of its documents is one.
        for document, content in zip(documents, contents, strict=True):
            found += read_changes(content, document.place)
    if any(where) != bool(taints or remove):
        told = "name nodes by --node, --zone or --selector" if not any(where) else "say --taint or --remove"
        raise click.UsageError(f"nodes and changes belong together: {told}")
    if any(where):
        named = Where(*where)
        named.check()
        change = Change(named, tuple(map(parse_taint, taints)), tuple(map(parse_removal, remove)))
        found.append(change)
    return found
