"""Names of objects in the selected cluster, for completion.

An error message would break the line that the user types, so names that cannot be read soon are left out.
"""

import asyncio
import os

from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.errors import ConfigError
from taintwarden.kube.http.client import Client
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rehearsal.sources import Named

TIMEOUT_SECONDS = 3.0


def list_names(path: str, kubeconfig: str | None, context: str | None) -> list[tuple[str, str]]:
    """Namespace and name of each object at ``path``, sorted; empty if they cannot be read in time."""
    try:
        return asyncio.run(_read(path, kubeconfig, context))
    except (ClusterError, ConfigError, TimeoutError):
        return []


async def _read(path: str, kubeconfig: str | None, context: str | None) -> list[tuple[str, str]]:
    given = (kubeconfig or os.environ.get("TAINTWARDEN_KUBECONFIG"), context or os.environ.get("TAINTWARDEN_CONTEXT"))
    connection = Connection.load(*given)
    async with asyncio.timeout(TIMEOUT_SECONDS), Client(connection, 4) as client:
        session = Session(client, connection.server)
        pages = session.pages(path, Named, "names")
        return sorted([(named.metadata.namespace, named.metadata.name) async for page in pages for named in page])
