"""Options of the commands that serve."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from taintwarden.settings import ServedSettings, Settings

Command = TypeVar("Command", bound=Callable[..., Any])


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator; help lists them in this order."""

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
        "--http-port", type=int, help=f"Port for /livez, /readyz and /metrics. [default: {Settings().http_port}]"
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
    """The options of a process that answers over HTTPS."""
    return _options(
        click.option("--namespace", help=f"Namespace of the Service and the Secret. [default: {defaults.namespace}]"),
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


operator_options = _options(
    click.option(
        "--numeric-operators/--no-numeric-operators", default=None, help="Whether Gt and Lt may match. [default: on]"
    ),
    click.option(
        "--semver-operators/--no-semver-operators", default=None, help="Whether Semver* may match. [default: on]"
    ),
)
log_options = _options(
    click.option("--log-format", type=click.Choice(["auto", "json", "console"]), help="[default: auto]"),
    click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]"),
)
