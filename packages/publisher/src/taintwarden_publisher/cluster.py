"""Calls to the API server with the official client: nodes, the status of objects, and Secrets with credentials."""

import asyncio
import dataclasses
import os
import ssl
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import msgspec
from kubernetes.aio import client, config

from taintwarden.api.types import GROUP, VERSION
from taintwarden.fields.text import printable
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.auth.kubeconfig import IN_CLUSTER, SERVICE_ACCOUNT, default_paths
from taintwarden.kube.errors import NOT_JSON, ConfigError
from taintwarden.kube.wire.answers import decoded_flat
from taintwarden_publisher.nodes import Node
from taintwarden_publisher.prometheus import Access
from taintwarden_publisher.spec import PLURAL
from taintwarden_publisher.troubles import NoAnswerError, Trouble

PAGE = 500
"""Maximum number of nodes in one page of a list."""
CALL_SECONDS = 30.0
MERGE_PATCH = "application/merge-patch+json"
MANAGER = "taintwarden-publisher"
MAX_REASON = 500
"""Maximum number of characters quoted from a response."""


class WriteOutcome(StrEnum):
    """Outcome of a write."""

    DONE = "done"
    CONFLICT = "conflict"
    """The node has changed since it was read: the next round reads it again."""
    GONE = "gone"
    FAILED = "failed"
    REFUSED = "refused"
    """RBAC or an admission policy forbids the write, so a retry does not help."""


class ClusterError(Exception):
    """A call failed. The message contains the reason."""


class _Continue(msgspec.Struct, frozen=True):
    token: str = msgspec.field(name="continue", default="")


class _Answer(msgspec.Struct, frozen=True):
    """The response to a write: the object, or a ``Status``."""

    kind: str = ""
    message: str = ""


class _Page(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]
    metadata: _Continue = _Continue()


_PAGES = msgspec.json.Decoder(_Page)
_ANSWERS = msgspec.json.Decoder(_Answer)
_OUTCOMES = {404: WriteOutcome.GONE, 409: WriteOutcome.CONFLICT, 403: WriteOutcome.REFUSED, 422: WriteOutcome.REFUSED}
FAULTS = (client.ApiException, aiohttp.ClientError, TimeoutError, OSError)
"""Errors that a call raises: refusals of the server, and failures of the connection."""


class Cluster:
    """The calls of the publisher.

    Args:
        api: the official client.
        namespace: the namespace of the Secrets.

    """

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._core = client.CoreV1Api(api)
        self._objects = client.CustomObjectsApi(api)
        self._namespace = namespace

    async def nodes(self) -> list[Node]:
        """Return all nodes.

        Raises:
            ClusterError: the nodes cannot be listed.

        """
        found: list[Node] = []
        token: str | None = None
        while token != "":
            try:
                answer = await self._core.list_node_without_preload_content(
                    limit=PAGE, _continue=token, _request_timeout=CALL_SECONDS
                )
                if answer.status != 200:
                    msg = f"the nodes cannot be listed: {answer.status} {_message(await answer.read())}"
                    raise ClusterError(msg)
                page = decoded_flat(_PAGES.decode, await answer.read())
            except (*FAULTS, *NOT_JSON) as error:
                msg = f"the nodes cannot be listed: {reason(error)}"
                raise ClusterError(msg) from error
            found += page.items
            token = page.metadata.token
        return found

    async def patch_node(self, name: str, body: dict[str, Any]) -> tuple[WriteOutcome, str]:
        """Patch a node. Returns the outcome, and the reason of a failure or refusal."""
        try:
            answer = await self._core.patch_node_without_preload_content(  # the node in the answer is not decoded
                name, body, field_manager=MANAGER, _content_type=MERGE_PATCH, _request_timeout=CALL_SECONDS
            )
            text = await answer.read()
        except FAULTS as error:
            return WriteOutcome.FAILED, reason(error)
        try:
            parsed = decoded_flat(_ANSWERS.decode, text)
        except NOT_JSON:
            parsed = _Answer()
        if answer.status == 200 and parsed.kind == "Node":
            return WriteOutcome.DONE, ""
        if parsed.kind != "Status":  # a load balancer may answer 200, 403 or 404 itself
            return WriteOutcome.FAILED, f"{answer.status}, which is not an answer of an API server"
        words = printable(parsed.message, MAX_REASON)
        return _OUTCOMES.get(answer.status, WriteOutcome.FAILED), f"{answer.status} {words}".strip()

    async def patch_status(self, name: str, status: dict[str, Any]) -> None:
        """Write the status of a TaintPublisher.

        Raises:
            ClusterError: the status cannot be written.

        """
        try:
            await self._objects.patch_cluster_custom_object_status(
                GROUP,
                VERSION,
                PLURAL,
                name,
                {"status": status},
                field_manager=MANAGER,
                _content_type=MERGE_PATCH,
                _request_timeout=CALL_SECONDS,
            )
        except FAULTS as error:
            msg = f"the status of {name} cannot be written: {reason(error)}"
            raise ClusterError(msg) from error

    async def access(self, secret: str) -> Access:
        """Return the credentials in a Secret.

        Raises:
            NoAnswerError: the Secret cannot be read, or has no usable content.

        """
        try:
            found = await self._core.read_namespaced_secret(secret, self._namespace, _request_timeout=CALL_SECONDS)
        except FAULTS as error:
            message = f"Secret {self._namespace}/{secret} cannot be read: {reason(error)}"
            raise NoAnswerError(Trouble.SECRET_UNUSABLE, message) from error
        return Access.of_secret(f"{self._namespace}/{secret}", found.data or {})


def reason(error: BaseException) -> str:
    """Return an error as one line: the message of the API server if it answered."""
    if isinstance(error, client.ApiException):
        return f"{error.status} {_message(str(error.body or '').encode())}".strip()
    return printable(str(error) or type(error).__name__, MAX_REASON)


def _message(body: bytes) -> str:
    try:
        return printable(str(msgspec.json.decode(body)["message"]), MAX_REASON)
    except (*NOT_JSON, TypeError, KeyError):
        return ""


async def configuration(
    kubeconfig: str | None, context: str | None, service_account: Path = SERVICE_ACCOUNT
) -> client.Configuration:
    """Return the connection that :meth:`Connection.load` chooses, for the official client.

    Raises:
        ConfigError: there is none, or the kubeconfig impersonates a user, which the official client ignores.

    """
    found = client.Configuration()
    found.disable_strict_ssl_verification = True
    connection = await asyncio.to_thread(Connection.load, kubeconfig, context, service_account)
    path = kubeconfig or os.pathsep.join(map(str, default_paths(os.environ)))
    try:
        if connection.origin == IN_CLUSTER:
            config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=found
            )
        else:
            await config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=path, context=context, client_configuration=found
            )
        if connection.impersonation:
            msg = "the publisher cannot act as another user: remove the field as, and use credentials of that user"
            raise ValueError(msg)
    except (config.ConfigException, OSError, ValueError) as error:
        msg = f"cannot use {path}: {printable(str(error), MAX_REASON)}"
        raise ConfigError(msg) from error
    return found


@dataclasses.dataclass(frozen=True)
class KopfConnection(kopf.ConnectionInfo):
    """The connection to the API server in kopf's format."""

    def as_ssl_context(self) -> ssl.SSLContext:
        """Create a context without the strict checks of Python 3.13, which many certificates of API servers fail."""
        context = super().as_ssl_context()
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def connection_info(found: client.Configuration) -> kopf.ConnectionInfo:
    """Return the credentials for kopf, which calls this again when the server rejects them."""
    scheme, _, token = str((found.api_key or {}).get("BearerToken", "")).partition(" ")
    return KopfConnection(
        server=found.host,
        ca_path=found.ssl_ca_cert,
        insecure=not found.verify_ssl,
        certificate_path=found.cert_file,
        private_key_path=found.key_file,
        scheme=scheme.capitalize() or None,
        token=token or None,
    )
