"""Credentials, renewed as in client-go: token files, exec plugins, certificates.

Files are read again after some seconds, plugins run again when their credentials expire, and both after a 401.
"""

import base64
import json
import os
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog

from taintwarden.fields.text import printable
from taintwarden.kube.auth.kubeconfig import ClusterSource, Material, Plugin
from taintwarden.kube.errors import NOT_JSON, Unreachable

TOKEN_FILE_SECONDS = 10.0
"""How long a token that was read from a file is used; client-go's number. A kubelet writes a new one in time."""
PLUGIN_SECONDS = 60.0
EXPIRY_SLACK_SECONDS = 10.0
"""A plugin runs again this long before its credentials expire."""

log = structlog.get_logger()


class CredentialsError(Unreachable):
    """There are no credentials at the moment: the token file is empty, or the plugin failed."""


class Proof(msgspec.Struct, frozen=True):
    """What a request is sent with."""

    authorization: str | None = None
    certificate: Material = Material()
    key: Material = Material()
    fresh_until: float = float("inf")
    """Valid until this time on the monotonic clock."""


def read(source: ClusterSource, plugin_seconds: float = PLUGIN_SECONDS) -> Proof:
    """What to prove it with now. Blocks on files and programs; an exec plugin may take so long.

    Raises:
        CredentialsError: there is nothing.

    """
    now, certificate, key = time.monotonic(), source.certificate, source.key
    if source.token_file:
        return Proof(_bearer(_token_in(source.token_file)), certificate, key, now + TOKEN_FILE_SECONDS)
    if source.token:
        return Proof(_bearer(source.token), certificate, key)
    if source.basic:
        return Proof(f"Basic {base64.b64encode(source.basic.encode()).decode()}", certificate, key)
    if source.plugin is not None and not certificate:
        return _ask(source.plugin, now, plugin_seconds)
    return Proof(None, certificate, key)


def _bearer(token: str) -> str:
    if not (token.isascii() and token.isprintable()):
        msg = "the token contains a control character, or one outside ASCII"  # not which: logs are read by many
        raise CredentialsError(msg)
    return f"Bearer {token}"


def _token_in(path: str) -> str:
    try:
        token = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read the token in {path}: {getattr(error, 'strerror', None) or error}"
        raise CredentialsError(msg) from error
    if not token:
        msg = f"the token file {path} is empty"
        raise CredentialsError(msg)
    return token


def _ask(plugin: Plugin, now: float, timeout_seconds: float) -> Proof:
    """Run an exec plugin (client.authentication.k8s.io)."""
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    asked = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    environment = os.environ | dict(plugin.environment) | {"KUBERNETES_EXEC_INFO": json.dumps(asked)}
    try:
        done = subprocess.run(  # noqa: S603 - the kubeconfig names it, as for kubectl
            plugin.command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # it may contain secrets, and logs are read by many
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _failed(plugin, f"it did not end within {timeout_seconds:g} s") from None  # the error has its arguments
    except OSError as error:
        raise _failed(plugin, str(error), plugin.hint) from error
    if done.returncode:
        raise _failed(plugin, f"it ended with {done.returncode}; run it yourself to see why")
    try:
        status = msgspec.json.decode(done.stdout, type=_Answer).status
        until = status.expiration_timestamp
        left = float("inf")
        if until is not None:
            left = datetime.fromisoformat(until.replace("Z", "+00:00")).timestamp() - time.time() - EXPIRY_SLACK_SECONDS
    except (*NOT_JSON, ValueError) as error:
        raise _failed(plugin, f"its answer is no ExecCredential: {error}") from error
    if not status.token and not (status.certificate and status.key):
        raise _failed(plugin, "it gave neither a token nor a certificate")
    return Proof(
        _bearer(status.token) if status.token else None,
        Material(content=status.certificate.encode()),
        Material(content=status.key.encode()),
        now + max(left, 1.0),
    )


class _Status(msgspec.Struct, rename="camel"):
    expiration_timestamp: str | None = None
    token: str = ""
    certificate: str = msgspec.field(default="", name="clientCertificateData")
    key: str = msgspec.field(default="", name="clientKeyData")


class _Answer(msgspec.Struct):
    status: _Status


def _failed(plugin: Plugin, reason: str, hint: str = "") -> CredentialsError:
    described = f"{plugin.command[0]} gives no credentials: {reason} {hint}".strip()
    return CredentialsError(printable(" ".join(described.split()), 300))
