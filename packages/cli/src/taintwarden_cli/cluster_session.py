"""Requests of a command to the selected cluster. A failure ends the process with one line and an exit code."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import click

from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.errors import ConfigError
from taintwarden.kube.http.client import Client
from taintwarden.settings import Settings, SettingsError, load_settings
from taintwarden.telemetry.logs import configure_logs
from taintwarden_cli.options import with_root_flags
from taintwarden_cli.output import fail
from taintwarden_cli.rehearsal.session import ClusterError, Session

FINE, REFUSED, USAGE, ACTION_NEEDED = 0, 1, 2, 10
"""Exit codes: nothing to do; the cluster cannot be reached or refuses; wrong flags or kubeconfig; you have to act."""

T = TypeVar("T")


def settings_of(flags: Mapping[str, object]) -> Settings:
    """Load the settings from flags and environment, and log errors only. Ends the process if a setting is wrong."""
    try:
        settings = load_settings(os.environ, **with_root_flags(flags))
    except SettingsError as error:
        fail(str(error), USAGE)
    configure_logs("console", "error")
    return settings


def confirm(question: str, action: str, *, yes: bool) -> None:
    """Ask the user to confirm a change. Ends the process if the user declines, or if there is no terminal to ask on."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        fail(f"cannot ask for confirmation here: use --yes to {action}", USAGE)
    if not click.confirm(question, err=True):
        fail("nothing was changed", REFUSED)


def ask(settings: Settings, task: Callable[[Session], Awaitable[T]], max_connections: int = 12) -> T:
    """Run ``task`` on the selected cluster, and return its result. Ends the process with one line if it fails."""

    async def answer() -> T:
        connection = Connection.load(settings.kubeconfig, settings.context)
        async with Client(connection, max_connections) as client:
            return await task(Session(client, connection.server, connection.origin, connection.namespace))

    try:
        return asyncio.run(answer())
    except ConfigError as error:
        fail(str(error), USAGE)
    except ClusterError as error:
        fail(str(error), REFUSED)
