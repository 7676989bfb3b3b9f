"""Carries out ``webhook-trust``: writes the certificate of the webhooks' authority into their configurations."""

import asyncio
import os

import click

from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.errors import ConfigError, KubeError
from taintwarden.kube.http.client import Client
from taintwarden.settings import SettingsError, load
from taintwarden_cli.options import with_root_flags
from taintwarden_cli.output import fail
from taintwarden_placement.settings import WebhookSettings
from taintwarden_placement.trust import UntrustedError, write_bundles


def write_trust(wait_seconds: float, **flags: object) -> None:
    """Write the certificate, and print a line for each configuration."""
    given = with_root_flags(flags)

    async def write() -> list[str]:
        settings = load(WebhookSettings, os.environ, **given)
        connection = Connection.load(settings.kubeconfig, settings.context)
        async with Client(connection, max_connections=1) as client:
            return await write_bundles(client, settings.namespace, settings.webhook_service, wait_seconds)

    try:
        for line in asyncio.run(write()):
            click.echo(line)
    except (SettingsError, ConfigError) as error:
        fail(str(error), code=2)
    except (UntrustedError, KubeError) as error:
        fail(str(error), code=1)
