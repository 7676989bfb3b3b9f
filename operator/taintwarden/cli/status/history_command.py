"""``taintwarden history``: recent events, as a timeline."""

import time

import click

from taintwarden.cli.options import Duration, cluster_options, operator_option
from taintwarden.cli.output import output_option_with, write, write_data

_HELP = """Show what happened lately, the oldest first: the operator's Events about policies, nodes and pods, who
paused or changed a policy and how, and the times at which conditions of policies changed. Pods to which the same
happens within a minute are one line.

API servers keep Events for an hour, unless configured otherwise. During a wave the operator writes Events about pods
slowly, and drops the oldest: the numbers in `taintwarden status` are complete, this is not.

Needs the rights to list events in all namespaces and taintevictionpolicies.

\b
Examples:
  taintwarden history
  taintwarden history --since 10m -n shop
  taintwarden history --since 10m -o markdown
  kubectl taintwarden history --all -o json

\b
Exit codes:
  0  it is shown
  1  the cluster cannot be reached, or a right is missing
  2  wrong flags or kubeconfig

JSON and YAML have: at, since, problem, happenings[] (at, reason, type, kind, namespace, name, note, count).
"""


@click.command(help=_HELP, short_help="Show what happened lately, as a timeline.")
@click.option("--since", type=Duration(), default="1h", show_default=True, help="How far to look back.")
@click.option("-n", "--namespace", "space", default="", help="Only pods of this namespace. Default: all.")
@click.option("--all", "every", is_flag=True, help="Show each pod in a line of its own.")
@operator_option
@cluster_options
@output_option_with("markdown")
def history(since: float, space: str, every: bool, output: str, **flags: object) -> None:
    """Read the arguments, ask, print; the text of ``--help`` is above."""
    # The cluster's client takes a while to import, and `--help` does not need it.
    from taintwarden.cli.cluster_session import ask, settings_of  # noqa: PLC0415
    from taintwarden.cli.status.event_timeline import markdown, read_timeline, table  # noqa: PLC0415

    settings, now = settings_of(flags), time.time()
    found = ask(settings, lambda session: read_timeline(session, settings.namespace, space, since, now))
    if output == "table":
        write(table(found, every=every))
    elif output == "markdown":
        write(markdown(found, every=every))
    else:
        write_data(found, output)
