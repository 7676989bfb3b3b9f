"""API calls about Taintwarden's webhooks: the Secret with their certificate, and the caBundle of configurations."""

import base64
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from taintwarden.kube.calls.patching import patch
from taintwarden.kube.errors import ApiError
from taintwarden.kube.http.client import APPLY_PATCH, Client
from taintwarden.kube.wire.answers import decoded

FIELD_MANAGER = "taintwarden-webhooks"
"""Field manager that owns only caBundle, until ``disown_bundle``. All other fields belong to the installer."""
TIMEOUT_SECONDS = 10.0

_GROUP_VERSION = "admissionregistration.k8s.io/v1"


class ConfigurationKind(StrEnum):
    """The two kinds of webhook configurations."""

    VALIDATING = "ValidatingWebhookConfiguration"
    MUTATING = "MutatingWebhookConfiguration"

    @property
    def path(self) -> str:
        """Path of the cluster's configurations of this kind."""
        return f"/apis/{_GROUP_VERSION}/{self.lower()}s"


class _SecretMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class Secret(msgspec.Struct):
    """The content of a Secret, and the resourceVersion that was read."""

    metadata: _SecretMeta
    data: dict[str, bytes] | None = None  # base64 in JSON

    @property
    def content(self) -> dict[str, bytes]:
        """The content, by key; empty if there is none."""
        return self.data or {}


class _ServiceReference(msgspec.Struct):
    namespace: str
    name: str


class _ClientConfig(msgspec.Struct):
    service: _ServiceReference | None = None
    bundle: bytes | None = msgspec.field(default=None, name="caBundle")


class _Webhook(msgspec.Struct, rename="camel"):
    name: str
    client_config: _ClientConfig


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str = ""
    managed_fields: list[dict[str, Any]] = []


class _Configuration(msgspec.Struct):
    metadata: _Meta
    webhooks: list[_Webhook] = []


class _Configurations(msgspec.Struct):
    items: list[_Configuration] = []


class Configuration(msgspec.Struct, frozen=True):
    """A configuration with webhooks that call the Service: the caBundle of each of these webhooks, by its name."""

    name: str
    bundles: dict[str, bytes]
    metadata: _Meta


async def read_secret(client: Client, namespace: str, name: str) -> Secret:
    """Read the Secret.

    Raises:
        KubeError: the request failed.

    """
    body = await client.request("GET", _secret_path(namespace, name), timeout_seconds=TIMEOUT_SECONDS)
    return decoded(body, Secret, "secret")


async def write_secret(
    client: Client, namespace: str, name: str, changes: Mapping[str, bytes], resource_version: str
) -> bool:
    """Write ``changes`` into the Secret. Returns False if it was changed after ``resource_version``.

    Raises:
        KubeError: the request failed, or the result is not known.

    """
    data = {key: _base64(value) for key, value in changes.items()}
    path = _secret_path(namespace, name)
    try:
        await patch(client, path, {"data": data}, version=resource_version, timeout_seconds=TIMEOUT_SECONDS)
    except ApiError as error:
        if error.code == 409:
            return False
        raise
    return True


async def read_configurations(
    client: Client, kind: ConfigurationKind, namespace: str, service: str
) -> list[Configuration]:
    """Return the configurations of any name with webhooks that call the Service.

    Raises:
        KubeError: the request failed.

    """
    body = await client.request("GET", kind.path, timeout_seconds=TIMEOUT_SECONDS)
    ours, found = _ServiceReference(namespace, service), []
    for one in decoded(body, _Configurations, "webhook configurations").items:
        called = {each.name: each.client_config for each in one.webhooks if each.client_config.service == ours}
        if called:
            bundles = {name: each.bundle or b"" for name, each in called.items()}
            found.append(Configuration(one.metadata.name, bundles, one.metadata))
    return found


async def apply_bundle(client: Client, kind: ConfigurationKind, configuration: Configuration, bundle: bytes) -> None:
    """Let the API servers trust ``bundle`` when they call these webhooks. No other field is changed.

    Raises:
        KubeError: the request failed.

    """
    applied = [{"name": name, "clientConfig": {"caBundle": _base64(bundle)}} for name in configuration.bundles]
    change = {
        "apiVersion": _GROUP_VERSION,
        "kind": kind.value,
        "metadata": {"name": configuration.name},
        "webhooks": applied,
    }
    path = f"{kind.path}/{configuration.name}"
    await patch(client, path, change, form=APPLY_PATCH, manager=FIELD_MANAGER, timeout_seconds=TIMEOUT_SECONDS)


async def disown_bundle(client: Client, kind: ConfigurationKind, configuration: Configuration) -> None:
    """Keep the caBundle, and give up its ownership.

    An installer that uses server-side apply, as Helm 4 and Flux do, could otherwise not remove the webhook: the API
    server would keep its caBundle for the other owner, and reject a webhook that has nothing else.

    Raises:
        KubeError: the request failed.

    """
    meta = configuration.metadata
    others = [entry for entry in meta.managed_fields if entry.get("manager") != FIELD_MANAGER]
    if len(others) < len(meta.managed_fields):
        path, change = f"{kind.path}/{meta.name}", {"metadata": {"managedFields": others}}
        await patch(client, path, change, version=meta.resource_version, timeout_seconds=TIMEOUT_SECONDS)


def _secret_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
