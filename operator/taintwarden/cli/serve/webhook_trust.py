"""``taintwarden webhook-trust``: lets the API servers trust the admission webhooks."""

import click

from taintwarden.cli.lazy import imported
from taintwarden.cli.serve.serving_options import connection_options
from taintwarden.settings import WebhookSettings

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
def webhook_trust(**given: object) -> None:
    """Write the certificate of the webhooks' authority into their configurations.

    The installation runs it once, as a Job. Run it yourself if you do not want the account of that Job, or if the
    webhook reports `webhook-untrusted`. You need the rights to read the Secret, and to list and patch webhook
    configurations.

    Exit codes: 0 they have the certificate, 1 it could not be written, 2 wrong flags or kubeconfig.
    """
    imported("taintwarden.cli.serve.trust_writing:write_trust", with_rich=False)(**given)
