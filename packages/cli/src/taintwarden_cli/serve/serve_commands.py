"""Commands that serve: the operator, the webhooks and the scheduler extender; and ``taintwarden webhook-trust``."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from taintwarden.settings import Settings, load, load_settings
from taintwarden_cli.lazy import imported
from taintwarden_cli.options import gate_options
from taintwarden_placement.settings import ExtenderSettings, ServedSettings, WebhookSettings

_DEFAULTS = Settings()
_WEBHOOK = WebhookSettings()
_SERVE = "taintwarden_cli.serve.serving:serve"
Command = TypeVar("Command", bound=Callable[..., Any])


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Combine options into one decorator. Help lists them in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


connection_options = _options(
    click.option(
        "--kubeconfig", type=click.Path(), help="Kubeconfig file. Default: as kubectl; in a pod its service account."
    ),
    click.option("--context", help="Context of the kubeconfig. Default: its current one."),
)
listening_options = _options(
    click.option("--http-host", help="Address to listen on. [default: all, IPv4 and IPv6]"),
    click.option(
        "--http-port", type=int, help=f"Port for /livez, /readyz and /metrics. [default: {_DEFAULTS.http_port}]"
    ),
    click.option(
        "--metrics-port",
        type=int,
        help="Port for /metrics over HTTPS, for tokens with the right to get it, instead of --http-port."
        " [default: none]",
    ),
    click.option(
        "--metrics-certificate",
        type=click.Path(),
        help="Folder of tls.crt and tls.key for --metrics-port. [default: made at each start]",
    ),
)


def served_options(defaults: ServedSettings) -> Callable[[Command], Command]:
    """Options of a process that answers over HTTPS."""
    return _options(
        click.option("--namespace", help=f"Namespace of the Service. [default: the pod's, or {defaults.namespace}]"),
        listening_options,
        click.option(
            "--webhook-port", type=int, help=f"Port to answer on, over HTTPS. [default: {defaults.webhook_port}]"
        ),
        click.option(
            "--webhook-service", help=f"Name of the Service and the Secret. [default: {defaults.webhook_service}]"
        ),
        click.option(
            "--webhook-certificates",
            type=click.Choice(["own", "external"]),
            help="Make the certificates, or only read what another program writes. [default: own]",
        ),
        click.option(
            "--webhook-client-ca",
            type=click.Path(),
            help="Answer only clients with a certificate that one in this file has signed. [default: every client]",
        ),
        click.option(
            "--webhook-client-names",
            help="Common names that such a certificate may have, separated by commas. [default: any]",
        ),
    )


log_options = _options(
    click.option("--log-format", type=click.Choice(["auto", "json", "console"]), help="[default: auto]"),
    click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]"),
)


@click.command(short_help="Run the operator.")
@connection_options
@click.option("--namespace", help=f"Namespace of the Lease. [default: the pod's, or {_DEFAULTS.namespace}]")
@click.option("--identity", help="Name among replicas. Default: the pod's name and UID.")
@listening_options
@click.option(
    "--max-evictions-per-second",
    type=float,
    help=f"Maximum over all policies; 0: no maximum. [default: {_DEFAULTS.max_evictions_per_second:g}]",
)
@click.option(
    "--events-per-second",
    type=float,
    help=f"Kubernetes Events written at most. [default: {_DEFAULTS.events_per_second:g}]",
)
@click.option(
    "--drained-condition/--no-drained-condition",
    default=None,
    help="Set the condition taintwarden.io/Drained of tainted nodes; needs the right to. [default: off]",
)
@click.option("--dry-run/--no-dry-run", default=None, help="Treat every policy that enforces as DryRun. [default: off]")
@gate_options
@log_options
def run(**flags: object) -> None:
    """Run the operator: inside a cluster without flags, outside with --kubeconfig.

    Every flag is also an environment variable, for example TAINTWARDEN_HTTP_PORT=9090.

    Exit codes: 0 stopped by a signal, 1 a fault, or no usable cluster, 2 wrong flags or kubeconfig.
    """
    serve = imported(_SERVE, with_rich=False)
    serve("taintwarden.app:run", load_settings, flags)


@click.command(short_help="Run the admission webhooks.")
@connection_options
@served_options(_WEBHOOK)
@click.option(
    "--placement",
    type=click.Choice(["labels", "extender"]),
    help="Keep pods off nodes by node affinity on labels, or leave that to the scheduler extender. [default: labels]",
)
@gate_options
@log_options
def webhook(**flags: object) -> None:
    """Answer the API server about annotations, policies and profiles, and complete pods.

    It evicts no pod: `taintwarden run` does. Every flag is also an environment variable, for example
    TAINTWARDEN_WEBHOOK_PORT=9443.

    Exit codes: 0 stopped by a signal, 1 a fault, or no usable cluster, 2 wrong flags or kubeconfig.
    """
    serve = imported(_SERVE, with_rich=False)
    serve("taintwarden_placement.webhook_process:run", partial(load, WebhookSettings), flags)


@click.command(name="scheduler-extender", short_help="Run the scheduler extender.")
@connection_options
@served_options(ExtenderSettings())
@gate_options
@log_options
def scheduler_extender(**flags: object) -> None:
    """Tell kube-scheduler which nodes suit a pod, by its extended tolerations and node affinity.

    A KubeSchedulerConfiguration names it in `extenders`. It evicts no pod and changes no pod or node. Every flag is
    also an environment variable, for example TAINTWARDEN_WEBHOOK_PORT=9443.

    Exit codes: 0 stopped by a signal, 1 a fault, or no usable cluster, 2 wrong flags or kubeconfig.
    """
    serve = imported(_SERVE, with_rich=False)
    serve("taintwarden_placement.extender_process:run", partial(load, ExtenderSettings), flags)


@click.command(name="webhook-trust", short_help="Let the API servers trust the admission webhooks.")
@connection_options
@click.option("--namespace", help=f"Namespace of the Service. [default: the pod's, or {_WEBHOOK.namespace}]")
@click.option("--webhook-service", help=f"Name of the Service and the Secret. [default: {_WEBHOOK.webhook_service}]")
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
    imported("taintwarden_cli.serve.trust_writing:write_trust", with_rich=False)(**given)
