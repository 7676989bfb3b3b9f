"""``taintwarden webhook``: the admission webhooks."""

import asyncio
import os
import sys

import click

from taintwarden.cli.errors import fail
from taintwarden.kube.errors import ConfigError, KubeError
from taintwarden.settings import SettingsError, WebhookSettings, load_webhook_settings

_DEFAULTS = WebhookSettings()


@click.command(short_help="Run the admission webhooks.")
@click.option(
    "--kubeconfig", type=click.Path(), help="Kubeconfig file. Default: as kubectl; in a pod its service account."
)
@click.option("--context", help="Context of the kubeconfig. Default: its current one.")
@click.option("--namespace", help=f"Namespace of the Service and the Secret. [default: {_DEFAULTS.namespace}]")
@click.option("--http-host", help="Address for probes, metrics and webhooks. [default: all, IPv4 and IPv6]")
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
    "--webhook-port", type=int, help=f"Port for the webhooks, over HTTPS. [default: {_DEFAULTS.webhook_port}]"
)
@click.option(
    "--webhook-service", help=f"Name of the webhooks' Service and Secret. [default: {_DEFAULTS.webhook_service}]"
)
@click.option(
    "--webhook-certificates",
    type=click.Choice(["own", "external"]),
    help="Make the webhooks' certificates, or only read what another program writes. [default: own]",
)
@click.option(
    "--webhook-client-ca",
    type=click.Path(),
    help="Answer only callers with a certificate that one in this file has signed. [default: anybody]",
)
@click.option(
    "--webhook-client-names", help="Common names that such a certificate may have, separated by commas. [default: any]"
)
@click.option(
    "--numeric-operators/--no-numeric-operators", default=None, help="Whether Gt and Lt may match. [default: on]"
)
@click.option("--semver-operators/--no-semver-operators", default=None, help="Whether Semver* may match. [default: on]")
@click.option("--log-format", type=click.Choice(["auto", "json", "console"]), help="[default: auto]")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]")
def webhook(**flags: object) -> None:
    """Answer the API server about annotations, policies and profiles, and complete pods.

    It evicts nobody: that is what `taintwarden run` does. Every flag is also an environment variable, for example
    TAINTWARDEN_WEBHOOK_PORT=9443.

    Exit codes: 0 stopped as asked, 1 the cluster cannot be used or a fault, 2 wrong flags or kubeconfig.
    """
    # The server takes a while to import, and `taintwarden webhook --help` does not need it.
    from taintwarden import webhook as process  # noqa: PLC0415
    from taintwarden.telemetry.logs import configure_logs  # noqa: PLC0415

    try:
        settings = load_webhook_settings(os.environ, **flags)
        configure_logs(settings.log_format, settings.log_level)
        failure = asyncio.run(process.run(settings))
    except (SettingsError, ConfigError) as error:
        fail(str(error), code=2)
    except KubeError as error:
        fail(f"the cluster cannot be used: {error}", code=1)
    sys.exit(1 if failure else 0)
