"""``taintwarden webhook``: the admission webhooks."""

import click

from taintwarden.cli.serving import connection_options, listening_options, log_options, operator_options, serve
from taintwarden.settings import WebhookSettings, load_webhook_settings

_DEFAULTS = WebhookSettings()


@click.command(short_help="Run the admission webhooks.")
@connection_options
@click.option("--namespace", help=f"Namespace of the Service and the Secret. [default: {_DEFAULTS.namespace}]")
@listening_options
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
    help="Answer only clients with a certificate that one in this file has signed. [default: every client]",
)
@click.option(
    "--webhook-client-names", help="Common names that such a certificate may have, separated by commas. [default: any]"
)
@operator_options
@log_options
def webhook(**flags: object) -> None:
    """Answer the API server about annotations, policies and profiles, and complete pods.

    It evicts no pod: `taintwarden run` does. Every flag is also an environment variable, for example
    TAINTWARDEN_WEBHOOK_PORT=9443.

    Exit codes: 0 stopped as asked, 1 the cluster cannot be used or a fault, 2 wrong flags or kubeconfig.
    """
    # The server takes a while to import, and `taintwarden webhook --help` does not need it.
    from taintwarden import webhook as process  # noqa: PLC0415

    serve(load_webhook_settings, process.run, flags)
