"""``taintwarden pause`` and ``taintwarden resume``: policies stop evicting, and continue in their previous mode."""

import click

from taintwarden.cli.completion import POLICIES
from taintwarden.cli.lazy import imported
from taintwarden.cli.options import cluster_options, yes_option

_PAUSE_HELP = """Stop policies: they evict no pod. Evictions in progress are carried out.

It sets spec.paused by server-side apply. Applying a file that does not name this field (kubectl, Helm, GitOps) leaves
the policy paused, whatever mode the file has. Who paused it, when and why is kept in the annotation
taintwarden.io/paused-by, and shown by `taintwarden status`. A policy that is paused already stays as it is.

--all stops every policy. It shows what would change first, and asks on a terminal; scripts pass --yes. --dry-run only
shows it.

Needs the rights to get and patch taintevictionpolicies, and for --all to list them.

\b
Examples:
  taintwarden pause sla
  taintwarden pause sla --reason "values of zone-a are wrong"
  taintwarden pause --all
  kubectl taintwarden pause sla --context production

\b
Exit codes:
  0  they are paused
  1  there is no such policy, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""
_RESUME_HELP = """Resume paused policies in their mode, and state how many pods are due.

Deadlines continued meanwhile: overdue pods are evicted first, under all limits, and the guard counts them as one wave;
see `taintwarden plan --enforce POLICY`. It removes spec.paused. If another client sets that field too, such as a file
with paused: true, the message names it. A policy that is not paused stays as it is.

--all resumes every policy that is paused. It shows what would change first, and asks on a terminal; scripts pass
--yes. --dry-run only shows it.

Needs the rights to get and patch taintevictionpolicies, and for --all to list them.

\b
Examples:
  taintwarden resume sla
  taintwarden resume --all --dry-run

\b
Exit codes:
  0  they are not paused any more
  1  there is no such policy, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""
_POLICIES = click.argument("policies", metavar="[POLICY...]", nargs=-1, shell_complete=POLICIES)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="With --all: only show what would change.")


@click.command(help=_PAUSE_HELP, short_help="Stop policies.")
@_POLICIES
@click.option("--all", "every", is_flag=True, help="Stop every policy.")
@click.option("--reason", default="", help="Why: shown by `taintwarden status`.")
@_DRY_RUN
@yes_option
@cluster_options
def pause(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden.cli.change.switching:switch_policies")(resume=False, **given)


@click.command(help=_RESUME_HELP, short_help="Resume paused policies.")
@_POLICIES
@click.option("--all", "every", is_flag=True, help="Resume every policy that is paused.")
@_DRY_RUN
@yes_option
@cluster_options
def resume(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden.cli.change.switching:switch_policies")(resume=True, **given)
