"""``taintwarden webhook-trust``: lets the API servers trust the admission webhooks."""

import asyncio
import os

import click

from taintwarden.cli.failures import fail
from taintwarden.cli.importing import without_rich
from taintwarden.cli.serve.serving import connection_options
from taintwarden.settings import SettingsError, WebhookSettings, load_webhook_settings

DEFAULTS = WebhookSettings()


@click.command(name="webhook-trust", short_help="Let the API servers trust the admission webhooks.")
@connection_options
@click.option("--namespace", help=f"Namespace of the Service and the Secret. [default: {DEFAULTS.namespace}]")
@click.option("--webhook-service", help=f"Name of the Service and the Secret. [default: {DEFAULTS.webhook_service}]")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Seconds to wait for the certificate. [default: 0]",
)
def webhook_trust(wait_seconds: float, **flags: object) -> None:
    """Write the certificate of the webhooks' authority into their configurations.

    The installation runs it once, as a Job. Run it yourself if you do not want the account of that Job, or if the
    webhook reports `webhook-untrusted`. You need the rights to read the Secret, and to list and patch webhook
    configurations.

    Exit codes: 0 they have the certificate, 1 it could not be written, 2 wrong flags or kubeconfig.
    """
    above = click.get_current_context().find_root().params
    before = {name: above.get(name) for name in ("context", "kubeconfig") if flags.get(name) is None}
    # The cluster's client takes a while to import, and `--help` does not need it.
    with without_rich():
        from taintwarden.kube.auth.connection import Connection  # noqa: PLC0415
        from taintwarden.kube.errors import ConfigError, KubeError  # noqa: PLC0415
        from taintwarden.kube.http.client import Client  # noqa: PLC0415
        from taintwarden.placement.trust import UntrustedError, spread  # noqa: PLC0415

    async def write() -> list[str]:
        settings = load_webhook_settings(os.environ, **{**flags, **before})
        connection = Connection.load(settings.kubeconfig, settings.context)
        async with Client(connection, max_connections=1) as client:
            return await spread(client, settings.namespace, settings.webhook_service, wait_seconds)

    try:
        for line in asyncio.run(write()):
            click.echo(line)
    except (SettingsError, ConfigError) as error:
        fail(str(error), code=2)
    except (UntrustedError, KubeError) as error:
        fail(str(error), code=1)
