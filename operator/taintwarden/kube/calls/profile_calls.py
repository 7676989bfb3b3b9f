"""What is written of TolerationProfiles: their status."""

from typing import Any

from taintwarden.kube.calls.evictor import Fence
from taintwarden.kube.calls.own_kinds import GROUP_PATH, merge_status
from taintwarden.kube.http.client import Client

PLURAL = "tolerationprofiles"


async def patch_profile_status(client: Client, key: str, status: dict[str, Any], fence: Fence) -> None:
    """Merge ``status`` into that of the profile ``namespace/name``.

    Raises:
        KubeError: it was not written.

    """
    namespace, _, name = key.partition("/")
    await merge_status(client, f"{path_in(namespace)}/{name}", status, fence)


def path_in(namespace: str) -> str:
    """Where the profiles of a namespace are."""
    return f"{GROUP_PATH}/namespaces/{namespace}/{PLURAL}"
