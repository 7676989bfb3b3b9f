"""``taintwarden repair``: the commands that restore the last good values of taints."""

import sys
import time
from typing import TYPE_CHECKING

import click
import msgspec

from taintwarden.cli.completion import POLICIES
from taintwarden.cli.failures import fail
from taintwarden.cli.options import cluster_options, operator_option, yes_option
from taintwarden.cli.output import output_option, printable, write, write_data

if TYPE_CHECKING:
    from taintwarden.rehearsal.repairing import Repair
    from taintwarden.settings import Settings

FINE, ERROR, PERSON = 0, 1, 10

_HELP = """Print, for each node with a bad value of a taint, the kubectl command that restores its last good value.

A value is bad if pods of the policy have to leave because of it, had to leave, or cannot compare it. The last good
value is the latest earlier one in the taint history of the node with which the fewest of its pods have to leave. The
history has the last 16 values of each taint that a policy acts on. Look at the commands, then run them:

  taintwarden repair sla | sh

Nothing is written without --apply, which sets these values itself: it shows the commands first, and asks on a terminal;
scripts pass --yes. A node that was changed since it was read is not written.

Needs the rights of `taintwarden plan`, and for --apply to patch nodes.

\b
Examples:
  taintwarden repair sla
  taintwarden repair sla -o json
  kubectl taintwarden repair sla --context production

\b
Exit codes:
  0   each bad value has an earlier good one, or there is no bad value
  1   the cluster cannot be reached, there is no such policy, you declined, or a node was not changed
  2   wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
  10  a bad value has no earlier good one: correct it yourself

JSON and YAML have: at, policy, repairs[] (node, key, effect, current, value, since, seconds, leaving, leavingAfter).
"""


class _Repairs(msgspec.Struct):
    at: str
    policy: str
    repairs: "list[Repair]"

    @property
    def resource_names(self) -> list[str]:
        """The nodes with a bad value."""
        return [f"node/{one.node}" for one in self.repairs]


@click.command(help=_HELP, short_help="Restore the last good values of taints.")
@click.argument("policy", shell_complete=POLICIES)
@click.option("--apply", "applied", is_flag=True, help="Set the values.")
@yes_option
@operator_option
@cluster_options
@output_option
def repair(policy: str, applied: bool, yes: bool, output: str, **flags: object) -> None:
    """Read the arguments, ask, print; the text of ``--help`` is above."""
    from taintwarden.cli.cluster_session import ask, confirm, settings_of  # noqa: PLC0415
    from taintwarden.controller.wording import at  # noqa: PLC0415

    if applied and output != "table":
        raise click.UsageError("--apply prints commands: leave out --output")
    settings, now = settings_of(flags), time.time()
    found = _find(settings, policy, now)
    if output != "table":
        write_data(_Repairs(at(now), policy, found), output)
    else:
        context = f" --context {settings.context}" if settings.context else ""
        write("\n".join(_lines(found, context)) or f"# policy {printable(policy)}: no bad value")
    good = [one for one in found if one.value is not None]
    if applied and good:
        confirm(f"Set these {len(good)} taints?", "set them", yes=yes)
        from taintwarden.cli.change.taint_writes import set_taints  # noqa: PLC0415

        failures = ask(settings, lambda session: set_taints(session, good))
        for failure in failures:
            click.echo(f"taintwarden: {printable(failure)}", err=True)
        if failures:
            sys.exit(ERROR)
    sys.exit(FINE if len(good) == len(found) else PERSON)


def _find(settings: "Settings", name: str, now: float) -> "list[Repair]":
    from taintwarden.cli.cluster_session import ask  # noqa: PLC0415
    from taintwarden.engine.model import Gates  # noqa: PLC0415
    from taintwarden.rehearsal.reading import read_snapshot  # noqa: PLC0415
    from taintwarden.rehearsal.rehearsal import Rehearsal, at_once  # noqa: PLC0415
    from taintwarden.rehearsal.repairing import repairs  # noqa: PLC0415

    snapshot = ask(settings, lambda session: read_snapshot(session, settings.namespace, now), max_connections=12)
    gates = Gates(settings.numeric_operators, settings.semver_operators)
    rehearsal = Rehearsal(snapshot, gates, at_once(now))
    rehearsal.teach()
    rehearsal.rest()
    policy = next((one for one in rehearsal.view.policies if one.name == name), None)
    if policy is None:
        why = rehearsal.policy_problems.get(name, "it does not exist")
        fail(f"cannot use TaintEvictionPolicy {name}: {why}", ERROR)
    return repairs(rehearsal.view, policy, gates, now)


def _lines(found: "list[Repair]", context: str) -> list[str]:
    from taintwarden.controller.wording import duration, pods  # noqa: PLC0415
    from taintwarden.engine.model import Taint  # noqa: PLC0415

    lines = []
    for one in found:
        current = Taint(one.key, one.current, one.effect)
        leave = f"{pods(one.leaving)} {'has' if one.leaving == 1 else 'have'} to leave"
        told = f"# {one.node}: {current} for {duration(one.seconds)}, {leave}"
        if one.value is None:
            lines.append(printable(f"{told}; no earlier good value is known"))
            continue
        after = f", {one.leaving_after} with {one.value}" if one.leaving_after else f"; {one.value} before"
        lines.append(printable(told + after))
        lines.append(printable(f"kubectl taint node {one.node} {one.taint} --overwrite{context}"))
    return lines
