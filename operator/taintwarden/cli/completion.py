"""Shell completion of the names of policies, nodes, pods and workloads, from the selected cluster.

An error message would break the line that is being typed: if the cluster does not answer soon, nothing is completed.
"""

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from taintwarden.cli.importing import without_rich

SECONDS = 3.0
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def names(path: str, *, namespaced: bool = False) -> Completer:
    """Complete the names of the objects that are listed at ``path``, as ``namespace/name`` if ``namespaced``."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        space = context.params.get("space") if namespaced else None
        above, here = context.find_root().params, context.params
        found = _listed(path, *(here.get(name) or above.get(name) for name in ("kubeconfig", "context")))
        if space:
            shown = [name for namespace, name in found if namespace == space]
        else:
            shown = [f"{namespace}/{name}" if namespaced else name for namespace, name in found]
        taken = context.params.get("policies") or ()
        return [CompletionItem(one) for one in shown if one.startswith(incomplete) and one not in taken]

    return complete


def _listed(path: str, kubeconfig: str | None, context: str | None) -> list[tuple[str, str]]:
    # Completing a flag does not need the cluster's client.
    import asyncio  # noqa: PLC0415
    import os  # noqa: PLC0415

    with without_rich():
        from taintwarden.kube.auth.connection import Connection  # noqa: PLC0415
        from taintwarden.kube.errors import ConfigError  # noqa: PLC0415
        from taintwarden.kube.http.client import Client  # noqa: PLC0415
        from taintwarden.rehearsal.session import ClusterError, Session  # noqa: PLC0415
        from taintwarden.rehearsal.sources import Named  # noqa: PLC0415

    async def read() -> list[tuple[str, str]]:
        connection = Connection.load(kubeconfig or os.environ.get("TAINTWARDEN_KUBECONFIG"), context)
        async with asyncio.timeout(SECONDS), Client(connection, 4) as client:
            session = Session(client, connection.server)
            pages = session.pages(path, Named, "names")
            return sorted([(one.metadata.namespace, one.metadata.name) async for page in pages for one in page])

    try:
        return asyncio.run(read())
    except (ClusterError, ConfigError, TimeoutError):
        return []


POLICIES = names("/apis/taintwarden.io/v1alpha1/taintevictionpolicies")
NODES = names("/api/v1/nodes")
PODS = names("/api/v1/pods", namespaced=True)
WORKLOADS = {
    "Deployment": names("/apis/apps/v1/deployments", namespaced=True),
    "StatefulSet": names("/apis/apps/v1/statefulsets", namespaced=True),
    "DaemonSet": names("/apis/apps/v1/daemonsets", namespaced=True),
    "ReplicaSet": names("/apis/apps/v1/replicasets", namespaced=True),
}
