"""The calls about our own webhooks: the Secret with their certificates, and whom the API servers trust."""

import base64
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from taintwarden.kube.client import APPLY_PATCH, MERGE_PATCH, Client
from taintwarden.kube.errors import ApiError, decoded

CONFIGURATION = "taintwarden"
"""The name of both configurations."""
FIELD_MANAGER = "taintwarden-webhooks"
"""Owns only caBundle; all other fields belong to the installer of the configurations."""
TIMEOUT_SECONDS = 10.0

_GROUP_VERSION = "admissionregistration.k8s.io/v1"


class ConfigurationKind(StrEnum):
    """The two kinds of webhook configurations."""

    VALIDATING = "ValidatingWebhookConfiguration"
    MUTATING = "MutatingWebhookConfiguration"

    @property
    def path(self) -> str:
        """Where ours is."""
        return f"/apis/{_GROUP_VERSION}/{self.lower()}s/{CONFIGURATION}"


class Secret(msgspec.Struct, frozen=True):
    """What a Secret holds, and the version that was read."""

    content: dict[str, bytes]
    resource_version: str


class _SecretMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _SecretObject(msgspec.Struct):
    metadata: _SecretMeta
    data: dict[str, bytes] | None = None  # base64 in JSON


class _ServiceReference(msgspec.Struct):
    namespace: str
    name: str


class _ClientConfig(msgspec.Struct):
    service: _ServiceReference | None = None
    bundle: bytes | None = msgspec.field(default=None, name="caBundle")


class Webhook(msgspec.Struct, rename="camel"):
    """One of ``webhooks[]``."""

    name: str
    client_config: _ClientConfig

    @property
    def bundle(self) -> bytes:
        """The certificates that the API servers trust when they call it."""
        return self.client_config.bundle or b""


class _Configuration(msgspec.Struct):
    webhooks: list[Webhook] = []


async def read_secret(client: Client, namespace: str, name: str) -> Secret:
    """Read the Secret.

    Raises:
        KubeError: it was not read.

    """
    body = await client.request("GET", _secret_path(namespace, name), timeout_seconds=TIMEOUT_SECONDS)
    found = decoded(body, _SecretObject, "secret")
    return Secret(found.data or {}, found.metadata.resource_version)


async def write_secret(
    client: Client, namespace: str, name: str, changes: Mapping[str, bytes | None], resource_version: str
) -> bool:
    """Put ``changes`` into the Secret (None removes a key); False: it was written since.

    Raises:
        KubeError: it was not written, or the result is not known.

    """
    data = {key: None if value is None else _base64(value) for key, value in changes.items()}
    body = {"metadata": {"resourceVersion": resource_version}, "data": data}
    path = _secret_path(namespace, name)
    try:
        await client.request("PATCH", path, body=body, content_type=MERGE_PATCH, timeout_seconds=TIMEOUT_SECONDS)
    except ApiError as error:
        if error.code == 409:
            return False
        raise
    return True


async def read_webhooks(client: Client, kind: ConfigurationKind, namespace: str, service: str) -> list[Webhook]:
    """The webhooks of our configuration that call our Service; none where there is no configuration.

    Raises:
        KubeError: it was not read.

    """
    try:
        body = await client.request("GET", kind.path, timeout_seconds=TIMEOUT_SECONDS)
    except ApiError as error:
        if error.code == 404:
            return []
        raise
    ours = _ServiceReference(namespace, service)
    found = decoded(body, _Configuration, "webhook configuration").webhooks
    return [webhook for webhook in found if webhook.client_config.service == ours]


async def apply_bundle(client: Client, kind: ConfigurationKind, webhooks: Iterable[Webhook], bundle: bytes) -> None:
    """Have the API servers trust ``bundle`` when they call these ``webhooks``; nothing else is touched.

    Raises:
        KubeError: it was not applied.

    """
    applied = [{"name": webhook.name, "clientConfig": {"caBundle": _base64(bundle)}} for webhook in webhooks]
    await client.request(
        "PATCH",
        kind.path,
        params={"fieldManager": FIELD_MANAGER, "force": "true"},
        body={
            "apiVersion": _GROUP_VERSION,
            "kind": kind.value,
            "metadata": {"name": CONFIGURATION},
            "webhooks": applied,
        },
        content_type=APPLY_PATCH,
        timeout_seconds=TIMEOUT_SECONDS,
    )


def _secret_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
