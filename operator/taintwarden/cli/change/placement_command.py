"""``taintwarden placement``: which labels of placement nodes carry, what needs them, and how they are removed."""

from typing import TYPE_CHECKING

import click

from taintwarden.cli.failures import fail
from taintwarden.cli.options import cluster_options, yes_option
from taintwarden.cli.output import Lines, output_option, printable, render, rows, write, write_data

if TYPE_CHECKING:
    from taintwarden.rehearsal.label_uses import KeyUse, Users

_LIST_HELP = """List the keys whose labels of placement nodes carry, or pods name, and what to do with each.

A key by which no policy places any more keeps its labels: they say that no node has the taint, so that pods that were
placed by it match every node. `taintwarden placement remove` ends that.

It needs the rights to list nodes, pods, persistentvolumes, taintevictionpolicies, and all kinds of workloads.

\b
Examples:
  taintwarden placement list
  kubectl taintwarden placement list -o json

\b
Exit codes:
  0  they are listed
  1  the cluster cannot be reached, or something may not be read
  2  wrong flags or kubeconfig

JSON and YAML have: keys[] (key, ofLabel, policies[], nodes, removing, pods, templates, volumes, each of these with
count and examples[]).
"""
_REMOVE_HELP = """Remove the labels of KEY from all nodes: the key of a taint, or of a label that was listed under
versionLabels.

It first lists the pods, templates and PersistentVolumes whose node affinity names these labels. While there are any it
refuses: a pod that runs would not match its own node any more, and a kubelet that restarts ends it at once, with the
reason NodeAffinity; a Pending pod, and every pod that uses the volume, would find no node. Restart the workloads, so
that they lose the affinity, and try again. --force removes the labels all the same.

It refuses while a policy places by the key, in any mode. On a terminal it asks before it does so; scripts pass --yes.
It does not need the operator, and can be repeated after an interruption.

It needs the rights of `placement list`, and to patch nodes.

\b
Examples:
  taintwarden placement remove sla
  taintwarden placement remove example.com/driver --yes

\b
Exit codes:
  0  no node carries the labels any more
  1  they are in use, there are none, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""
_LABELS_HELP = """Print the labels of placement that a node with these taints has: for the templates of node groups,
from which autoscalers derive the labels of future nodes, and for --node-labels of kubelets.

TAINT is KEY=VALUE:EFFECT, as in kubectl taint, or KEY for a node without that taint. It needs no cluster.

\b
Examples:
  taintwarden placement labels sla=950:NoSchedule
  taintwarden placement labels sla example.com/cni=v3.27.2:NoExecute
  taintwarden placement labels sla=950:NoSchedule --separator ,

\b
Exit codes:
  0  they are printed
  2  a taint cannot be read, or labels cannot express its value
"""
_TEMPLATES_OF_OTHER_KINDS = "templates of kinds that Kubernetes does not define are not looked at"


@click.group(short_help="Show and remove labels of placement.")
def placement() -> None:
    """Show and remove labels of placement."""


@placement.command("list", help=_LIST_HELP, short_help="List the keys whose labels nodes carry.")
@cluster_options
@output_option
def list_keys(output: str, **flags: object) -> None:
    """Read, print; the text of ``--help`` is above."""
    found = _read(flags)
    if output != "table":
        from taintwarden.rehearsal.label_uses import KeyUses  # noqa: PLC0415

        write_data(KeyUses(found), output)
        return
    header = ("KEY", "PLACED BY", "NODES", "PODS", "TEMPLATES", "VOLUMES", "WHAT TO DO")
    write(render(rows(header, map(_row, found))) if found else "no node carries labels of placement")


@placement.command(help=_REMOVE_HELP, short_help="Remove the labels of a key from all nodes.")
@click.argument("key")
@click.option("--force", is_flag=True, help="Remove them although pods, templates or volumes name them.")
@yes_option
@cluster_options
def remove(key: str, force: bool, yes: bool, **flags: object) -> None:
    """Read, show, ask, change; the text of ``--help`` is above."""
    from taintwarden.cli.change.placement_removal import remove as remove_labels  # noqa: PLC0415
    from taintwarden.cli.cluster_session import REFUSED, ask, confirm, settings_of  # noqa: PLC0415
    from taintwarden.engine.placement import Kept  # noqa: PLC0415

    uses = [use for use in _read(flags) if use.key == key]
    placing = [policy for use in uses for policy in use.policies]
    if placing:
        told = f"policy {', '.join(placing)} uses the key {key}: remove placement or versionLabels from it first"
        fail(printable(told), REFUSED)
    if not any(use.nodes for use in uses):
        fail(printable(f"no node carries labels of placement for {key}"), REFUSED)
    write(render(_users(key, uses).grid))
    if any(use.is_named for use in uses) and not force:
        fail("the labels are in use: restart what names them, and try again; or use --force", REFUSED)
    confirm("Remove the labels?", "remove the labels", yes=yes)
    kept = [Kept(use.key, use.of_label) for use in uses]
    nodes = ask(settings_of(flags), lambda session: remove_labels(session, kept), max_connections=12)
    write(printable(f"the labels of {key} were removed from {nodes} nodes"))


@placement.command(help=_LABELS_HELP, short_help="Print the labels of a node with these taints.")
@click.argument("taints", metavar="TAINT...", nargs=-1, required=True)
@click.option("--separator", default="\n", show_default="a new line", help="What stands between two labels.")
def labels(taints: tuple[str, ...], separator: str) -> None:
    """Read the arguments, compute, print; the text of ``--help`` is above."""
    from taintwarden.cli.change.placement_labels import labels_for  # noqa: PLC0415
    from taintwarden.cli.cluster_session import USAGE  # noqa: PLC0415
    from taintwarden.rehearsal.manifests import BadInput  # noqa: PLC0415

    try:
        found = labels_for(taints)
    except BadInput as error:
        fail(printable(str(error)), USAGE)
    write(separator.join(f"{label}={value}" for label, value in found.items()))


def _read(flags: dict[str, object]) -> "list[KeyUse]":
    from taintwarden.cli.cluster_session import ask, settings_of  # noqa: PLC0415
    from taintwarden.rehearsal.label_uses import read_label_uses  # noqa: PLC0415

    return list(ask(settings_of(flags), read_label_uses, max_connections=12))


def _row(use: "KeyUse") -> tuple[str, ...]:
    counts = (use.nodes, use.pods.count, use.templates.count, use.volumes.count)
    shown = f"{use.key} (label)" if use.of_label else use.key
    return shown, ", ".join(use.policies) or "-", *map(str, counts), _what_to_do(use)


def _what_to_do(use: "KeyUse") -> str:
    remove = f"taintwarden placement remove {use.key}"
    if use.is_placed:
        return "-"
    if use.removing:
        return f"its removal was interrupted: {remove}"
    if not use.nodes:
        return "no node carries the labels: restart what names them"
    return f"restart what names them, then {remove}" if use.is_named else remove


def _users(key: str, uses: "list[KeyUse]") -> Lines:
    lines = Lines()
    lines.add("Key", key, "bold")
    lines.add("Nodes", str(sum(use.nodes for use in uses)))
    for use in uses:
        for label, users in (("Pods", use.pods), ("Templates", use.templates), ("Volumes", use.volumes)):
            lines.add(label, _listed(users), "yellow")
    lines.add("Note", _TEMPLATES_OF_OTHER_KINDS)
    return lines


def _listed(users: "Users") -> str:
    if not users.count:
        return ""
    more = users.count - len(users.examples)
    return f"{users.count}: {', '.join(users.examples)}" + (f" and {more} more" if more else "")
