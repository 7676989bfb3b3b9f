"""The command ``taintwarden publisher``. It imports kopf and the official client when it runs, not for its help."""

import click

from taintwarden_cli.lazy import imported
from taintwarden_cli.serve.serve_commands import connection_options, listening_options, log_options
from taintwarden_publisher.settings import PublisherSettings, load_publisher_settings


@click.command(short_help="Publish values of Prometheus as taints of nodes.")
@connection_options
@click.option("--namespace", help=f"Namespace of Secrets with credentials. [default: {PublisherSettings().namespace}]")
@listening_options
@log_options
def publisher(**flags: object) -> None:
    """Publish values of Prometheus as taints of nodes, as TaintPublisher objects specify.

    It changes nothing but taints of the keys that its account may publish, and evicts no pod. Every flag is also an
    environment variable, for example TAINTWARDEN_HTTP_PORT=8081.

    Exit codes: 0 stopped by a signal, 1 a fault, or no usable cluster, 2 wrong flags or kubeconfig.
    """
    serve = imported("taintwarden_cli.serve.serving:serve", with_rich=False)
    serve("taintwarden_publisher.running:run", load_publisher_settings, flags)
