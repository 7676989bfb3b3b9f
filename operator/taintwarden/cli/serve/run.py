"""``taintwarden run``: the operator."""

import click

from taintwarden.cli.lazy import imported
from taintwarden.cli.serve.serving_options import connection_options, listening_options, log_options, operator_options
from taintwarden.settings import Settings, load_settings

_DEFAULTS = Settings()


@click.command(short_help="Run the operator.")
@connection_options
@click.option("--namespace", help=f"Namespace of the leader election Lease. [default: {_DEFAULTS.namespace}]")
@click.option("--identity", help="Name among replicas. Default: the pod's name and UID.")
@listening_options
@click.option(
    "--max-evictions-per-second",
    type=float,
    help=f"Maximum over all policies; 0 is no maximum. [default: {_DEFAULTS.max_evictions_per_second:g}]",
)
@click.option(
    "--events-per-second",
    type=float,
    help=f"Kubernetes Events written at most. [default: {_DEFAULTS.events_per_second:g}]",
)
@click.option("--dry-run/--no-dry-run", default=None, help="Treat every policy that enforces as DryRun. [default: off]")
@operator_options
@log_options
def run(**flags: object) -> None:
    """Run the operator: inside a cluster without flags, outside with --kubeconfig.

    Every flag is also an environment variable, for example TAINTWARDEN_HTTP_PORT=9090.

    Exit codes: 0 stopped as asked, 1 the cluster cannot be used or a fault, 2 wrong flags or kubeconfig.
    """
    serve = imported("taintwarden.cli.serve.serving:serve", with_rich=False)
    serve("taintwarden.app:run", load_settings, flags)
