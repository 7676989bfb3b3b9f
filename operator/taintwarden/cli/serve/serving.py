"""What the commands that serve have in common: options, and how the process ends."""

import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

import click

from taintwarden.cli.failures import fail
from taintwarden.settings import ExtenderSettings, ServedSettings, Settings, SettingsError, WebhookSettings

Command = TypeVar("Command", bound=Callable[..., Any])
OneOf = TypeVar("OneOf", Settings, WebhookSettings, ExtenderSettings)


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


def serve(
    load: Callable[..., OneOf],
    run: Callable[[OneOf], Coroutine[Any, Any, BaseException | None]],
    flags: Mapping[str, object],
) -> NoReturn:
    """Run a process until a signal stops it, and exit.

    Args:
        load: settings of the environment and of flags.
        run: serves; returns what made it fail, if anything.
        flags: what the command line says.

    """
    # `--help` does not need these.
    import uvloop  # noqa: PLC0415

    from taintwarden.kube.errors import ConfigError, KubeError  # noqa: PLC0415
    from taintwarden.telemetry.logs import configure_logs  # noqa: PLC0415

    try:
        settings = load(os.environ, **flags)
        configure_logs(settings.log_format, settings.log_level)
        failure = uvloop.run(run(settings))  # an eviction takes a seventh less CPU than on asyncio's own loop
    except (SettingsError, ConfigError) as error:
        fail(str(error), code=2)
    except KubeError as error:
        fail(f"the cluster cannot be used: {error}", code=1)
    sys.exit(1 if failure else 0)
