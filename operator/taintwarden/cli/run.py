"""``taintwarden run``: the operator."""

import asyncio
import os
import sys

import click

from taintwarden.cli.errors import fail
from taintwarden.kube.errors import ConfigError, KubeError
from taintwarden.settings import Settings, SettingsError, load_settings

_DEFAULTS = Settings()


@click.command(short_help="Run the operator.")
@click.option(
    "--kubeconfig", type=click.Path(), help="Kubeconfig file. Default: as kubectl; in a pod its service account."
)
@click.option("--context", help="Context of the kubeconfig. Default: its current one.")
@click.option("--namespace", help=f"Namespace of the leader election Lease. [default: {_DEFAULTS.namespace}]")
@click.option("--identity", help="Name among replicas. Default: the pod's name and UID.")
@click.option("--http-host", help="Address for probes and metrics. [default: all, IPv4 and IPv6]")
@click.option("--http-port", type=int, help=f"Port for /livez, /readyz and /metrics. [default: {_DEFAULTS.http_port}]")
@click.option(
    "--metrics-port",
    type=int,
    help="Port for /metrics over HTTPS, for tokens with the right to get it, instead of --http-port. [default: none]",
)
@click.option(
    "--metrics-certificate",
    type=click.Path(),
    help="Folder of tls.crt and tls.key for --metrics-port. [default: made at each start]",
)
@click.option(
    "--max-evictions-per-second",
    type=float,
    help=f"Cap over all policies; 0 is no cap. [default: {_DEFAULTS.max_evictions_per_second:g}]",
)
@click.option(
    "--events-per-second",
    type=float,
    help=f"Kubernetes Events written at most. [default: {_DEFAULTS.events_per_second:g}]",
)
@click.option("--dry-run/--no-dry-run", default=None, help="Treat every policy that enforces as DryRun. [default: off]")
@click.option(
    "--numeric-operators/--no-numeric-operators", default=None, help="Whether Gt and Lt may match. [default: on]"
)
@click.option("--semver-operators/--no-semver-operators", default=None, help="Whether Semver* may match. [default: on]")
@click.option("--log-format", type=click.Choice(["auto", "json", "console"]), help="[default: auto]")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]")
def run(**flags: object) -> None:
    """Run the operator: inside a cluster without flags, outside with --kubeconfig.

    Every flag is also an environment variable, for example TAINTWARDEN_HTTP_PORT=9090.

    Exit codes: 0 stopped as asked, 1 the cluster cannot be used or a fault, 2 wrong flags or kubeconfig.
    """
    # kopf takes half a second to import, and `taintwarden run --help` does not need it.
    from taintwarden import app  # noqa: PLC0415
    from taintwarden.telemetry.logs import configure_logs  # noqa: PLC0415

    try:
        settings = load_settings(os.environ, **flags)
        configure_logs(settings.log_format, settings.log_level)
        failure = asyncio.run(app.run(settings))
    except (SettingsError, ConfigError) as error:
        fail(str(error), code=2)
    except KubeError as error:
        fail(f"the cluster cannot be used: {error}", code=1)
    sys.exit(1 if failure else 0)
