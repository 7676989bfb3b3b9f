"""Our own kinds: what is followed of them, whether the cluster knows them, and writes of their status."""

from typing import Any

from taintwarden.kube.calls.evictor import Fence
from taintwarden.kube.errors import ApiError, MissingDefinitionError
from taintwarden.kube.http.client import MERGE_PATCH, Client
from taintwarden.kube.wire.kinds import CustomObject
from taintwarden.kube.wire.resources import Resource

GROUP_PATH = "/apis/taintwarden.io/v1alpha1"
POLICIES = Resource(
    "taintevictionpolicies", f"{GROUP_PATH}/taintevictionpolicies", CustomObject, definition="TaintEvictionPolicy"
)
PROFILES = Resource(
    "tolerationprofiles", f"{GROUP_PATH}/tolerationprofiles", CustomObject, definition="TolerationProfile"
)


async def check_definition(client: Client, resource: Resource[CustomObject]) -> None:
    """See that the cluster serves one of our kinds to us, by a list of one object.

    Raises:
        MissingDefinitionError: the CustomResourceDefinition is not there.
        KubeError: the list failed.

    """
    try:
        await client.request("GET", resource.path, params={"limit": "1"})
    except ApiError as error:
        if error.is_unserved:
            raise MissingDefinitionError(resource.missing) from error
        raise


async def merge_status(client: Client, path: str, status: dict[str, Any], fence: Fence) -> None:
    """Merge ``status`` into that of the object at ``path``.

    Raises:
        KubeError: it was not written.

    """
    await client.request("PATCH", f"{path}/status", body={"status": status}, content_type=MERGE_PATCH, fence=fence)
