"""Shell completion of the names of policies, nodes and pods, from the selected cluster.

The cluster's client is imported by :mod:`name_listing`, so that completing a flag does not load it.
"""

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from taintwarden_cli.lazy import imported

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def names(path: str, *, namespaced: bool = False) -> Completer:
    """Complete the names of the objects at ``path``, as ``namespace/name`` if ``namespaced`` without --namespace."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        wanted = context.params.get("pod_namespace") if namespaced else None
        above, here = context.find_root().params, context.params
        listed = imported("taintwarden_cli.name_listing:list_names", with_rich=False)
        found = listed(path, *(here.get(name) or above.get(name) for name in ("kubeconfig", "context")))
        if wanted:
            shown = [name for namespace, name in found if namespace == wanted]
        else:
            shown = [f"{namespace}/{name}" if namespaced else name for namespace, name in found]
        taken = context.params.get("policies") or ()
        return [CompletionItem(one) for one in shown if one.startswith(incomplete) and one not in taken]

    return complete


POLICIES = names("/apis/taintwarden.io/v1alpha1/taintevictionpolicies")
NODES = names("/api/v1/nodes")
PODS = names("/api/v1/pods", namespaced=True)
