"""``taintwarden guard reset``: you confirm a mass eviction, and the guard releases it."""

from typing import TYPE_CHECKING

import click

from taintwarden.cli.completion import POLICIES
from taintwarden.cli.options import cluster_options, yes_option
from taintwarden.cli.output import Lines, printable, render, write
from taintwarden.controller.wording import pods

if TYPE_CHECKING:
    from taintwarden.cli.change.guard_reset import Halted

_HELP = """Release the pods that the tripped guard of a policy holds, or that are held since every zone is Full. Which
change did it, and how many they are, is shown first. What comes later is counted again.

On a terminal it asks before it does so; scripts pass --yes. It sets the annotation taintwarden.io/guard-reset of the
policy to its generation; the operator grants it and removes it. It refuses where nothing is held, where the operator
has not seen the newest version of the policy, and where the guard tripped again while you looked.

Needs the rights to get and patch taintevictionpolicies.

\b
Examples:
  taintwarden guard reset sla
  taintwarden guard reset sla --yes

\b
Exit codes:
  0  the operator is asked
  1  there is nothing to reset, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""


@click.group(short_help="Release the pods that a tripped guard holds.")
def guard() -> None:
    """Release the pods that a tripped guard holds."""


@guard.command(help=_HELP, short_help="Release the pods that a tripped guard holds.")
@click.argument("policy", shell_complete=POLICIES)
@yes_option
@cluster_options
def reset(policy: str, yes: bool, **flags: object) -> None:
    """Read the arguments, show, ask, change; the text of ``--help`` is above."""
    # The cluster's client takes a while to import, and `--help` does not need it.
    from taintwarden.cli.change.guard_reset import look  # noqa: PLC0415
    from taintwarden.cli.change.guard_reset import reset as reset_guard  # noqa: PLC0415
    from taintwarden.cli.cluster_session import ask, confirm, settings_of  # noqa: PLC0415

    settings = settings_of(flags)
    found = ask(settings, lambda session: look(session, policy))
    write(_shown(found))
    confirm("Release them?", "release them", yes=yes)
    write(printable(ask(settings, lambda session: reset_guard(session, found))))


def _shown(found: "Halted") -> str:
    """What you review before you confirm the evictions."""
    lines, guard = Lines(), found.guard
    lines.add("Cluster", found.cluster)
    lines.add("Policy", f"{found.policy}, generation {found.generation}", "bold")
    if found.zones_full:
        lines.add("Held", f"{pods(found.pods)}, since every zone is Full", "yellow")
    else:
        lines.add("Tripped", guard.since)
        lines.add("Held", pods(found.pods), "yellow")
        lines.add("Cause", f"when it tripped: {guard.cause}" if guard.cause else "the operator has not told it yet")
    lines.add("It says", found.message)
    return render(lines.grid)
