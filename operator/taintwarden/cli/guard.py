"""``taintwarden guard reset``: a person has looked at a mass eviction, and lets it go."""

import sys
from typing import TYPE_CHECKING

import click

from taintwarden.cli.errors import fail
from taintwarden.cli.options import cluster_options
from taintwarden.cli.output import Lines, printable, render, write

if TYPE_CHECKING:
    from taintwarden.cli.guard_reset import OpenGuard

_HELP = """Let go, once, what the open guard of a policy holds. What that is, and why, is shown first.

On a terminal it asks before it does so; scripts say --yes. It sets the annotation taintwarden.io/guard-reset of the
policy to its generation; the operator obeys it and takes it off. It refuses where the guard is not open, where the
operator has not seen the newest version of the policy, and where the guard opened anew while you looked.

Needs the rights to get and patch taintevictionpolicies.

\b
Examples:
  taintwarden guard reset sla
  taintwarden guard reset sla --yes

\b
Exit codes:
  0  the operator is asked
  1  there is nothing to reset, you said no, a right is missing, or the cluster cannot be asked
  2  wrong flags or kubeconfig; or --yes is missing and nobody can be asked
"""


@click.group(short_help="Let go what an open guard holds.")
def guard() -> None:
    """Let go what an open guard holds."""


@guard.command(help=_HELP, short_help="Let go, once, what an open guard holds.")
@click.argument("policy")
@click.option("--yes", is_flag=True, help="Do not ask.")
@cluster_options
def reset(policy: str, yes: bool, **flags: object) -> None:
    """Read the arguments, show, ask, change; the text of ``--help`` is above."""
    # The cluster's client takes a while to import; `--help` need not wait for it.
    from taintwarden.cli.guard_reset import look  # noqa: PLC0415
    from taintwarden.cli.guard_reset import reset as reset_guard  # noqa: PLC0415
    from taintwarden.cli.session import REFUSED, USAGE, ask, settings_of  # noqa: PLC0415

    settings = settings_of(flags)
    found = ask(settings, lambda session: look(session, policy))
    write(_shown(found))
    if not yes:
        if not sys.stdin.isatty():
            fail("nobody can be asked here: say --yes to let them go", USAGE)
        if not click.confirm("Let them go?", err=True):
            fail("nothing was changed", REFUSED)
    write(printable(ask(settings, lambda session: reset_guard(session, found))))


def _shown(found: "OpenGuard") -> str:
    """What people look at before they let it go."""
    lines, guard = Lines(), found.guard
    lines.add("Policy", f"{found.policy}, generation {found.generation}", "bold")
    lines.add("Open since", guard.since)
    lines.add("Holds", f"{guard.would_evict or 0} pods that would leave within one window", "yellow")
    lines.add("Cause", guard.cause or "the operator has not told it yet")
    lines.add("It says", found.message)
    return render(lines.grid)
