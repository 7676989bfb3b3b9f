"""The command that writes caBundle, the certificate that API servers trust when they call the webhooks.

It runs at each installation and upgrade with a separate account, or by an administrator. The process that serves the
webhooks has no right to do this: API servers apply no admission policy to webhook configurations, so an account that
may change a caBundle can also send the requests of the whole cluster to another server.
"""

import asyncio

from taintwarden.kube.errors import KubeError
from taintwarden.kube.http.client import Client
from taintwarden_placement.rotation import AUTHORITY, TRUSTED
from taintwarden_placement.webhook_calls import (
    ConfigurationKind,
    apply_bundle,
    disown_bundle,
    read_configurations,
    read_secret,
)

POLL_SECONDS = 2.0


class UntrustedError(Exception):
    """Nothing was written. The message contains the reason and the remedy."""


async def write_bundles(client: Client, namespace: str, service: str, wait_seconds: float) -> list[str]:
    """Let the API servers trust the authority in the Secret of a Service. Returns a line for each configuration.

    Waits up to ``wait_seconds`` for the process that fills the Secret.

    Raises:
        UntrustedError: the Secret has no authority, or no webhook calls the Service.
        KubeError: the API server could not be read, or refused a request.

    """
    bundle = await _bundle(client, namespace, service, wait_seconds)
    lines = []
    for kind in ConfigurationKind:
        for configuration in await read_configurations(client, kind, namespace, service):
            is_trusted = all(carried == bundle for carried in configuration.bundles.values())
            if not is_trusted:
                await apply_bundle(client, kind, configuration, bundle)
            lines.append(f"{kind.value} {configuration.name} has the certificate {'already' if is_trusted else 'now'}")
        for configuration in await read_configurations(client, kind, namespace, service):
            await disown_bundle(client, kind, configuration)
    if not lines:
        msg = f"no webhook configuration calls the Service {namespace}/{service}: apply deploy/base/webhooks.yaml"
        raise UntrustedError(msg)
    return lines


async def _bundle(client: Client, namespace: str, service: str, wait_seconds: float) -> bytes:
    """Return the certificate to trust, once the Secret has an authority."""
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_seconds
    while True:
        problem: Exception = UntrustedError(
            f"the Secret {namespace}/{service} has no authority: taintwarden webhook writes one when it runs, "
            "unless --webhook-certificates is external"
        )
        try:
            content = (await read_secret(client, namespace, service)).content
            if content.get(TRUSTED) and content.get(AUTHORITY):
                return content[TRUSTED]
        except KubeError as error:
            problem = error
        if loop.time() >= until:
            raise problem
        await asyncio.sleep(POLL_SECONDS)
