"""``taintwarden webhook``: the admission webhooks."""

import click

from taintwarden.cli.lazy import imported
from taintwarden.cli.serve.serving_options import connection_options, log_options, operator_options, served_options
from taintwarden.settings import WebhookSettings, load_webhook_settings


@click.command(short_help="Run the admission webhooks.")
@connection_options
@served_options(WebhookSettings())
@click.option(
    "--placement",
    type=click.Choice(["labels", "extender"]),
    help="Keep pods off nodes by node affinity on labels, or leave that to the scheduler extender. [default: labels]",
)
@operator_options
@log_options
def webhook(**flags: object) -> None:
    """Answer the API server about annotations, policies and profiles, and complete pods.

    It evicts no pod: `taintwarden run` does. Every flag is also an environment variable, for example
    TAINTWARDEN_WEBHOOK_PORT=9443.

    Exit codes: 0 stopped as asked, 1 the cluster cannot be used or a fault, 2 wrong flags or kubeconfig.
    """
    serve = imported("taintwarden.cli.serve.serving:serve", with_rich=False)
    serve("taintwarden.placement.webhook_process:run", load_webhook_settings, flags)
