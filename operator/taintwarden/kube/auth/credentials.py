"""Credentials, renewed as in client-go: token files, exec plugins, certificates.

Token files are read again after some seconds, plugins run again when their credentials expire, and both after a 401.
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
from taintwarden.kube.auth.kubeconfig import ClusterSource, PemSource, Plugin
from taintwarden.kube.errors import NOT_JSON, Unreachable

TOKEN_FILE_SECONDS = 10.0
"""Seconds for which a token from a file is used, as in client-go. A kubelet writes a new one well before it expires."""
PLUGIN_SECONDS = 60.0
"""Seconds after which an exec plugin that has not ended fails."""
EXPIRY_SLACK_SECONDS = 10.0
"""Seconds before the expiry of its credentials at which a plugin runs again."""

log = structlog.get_logger()


class CredentialsError(Unreachable):
    """No credentials are available now: a token cannot be read or sent, or the plugin failed."""


class Credentials(msgspec.Struct, frozen=True):
    """The header and the client certificate that authenticate requests."""

    authorization: str | None = None
    certificate: PemSource = PemSource()
    key: PemSource = PemSource()
    fresh_until: float = float("inf")
    """Time on the monotonic clock until which they are used without being read again."""


def read_credentials(source: ClusterSource, plugin_seconds: float = PLUGIN_SECONDS) -> Credentials:
    """Read the current credentials. Blocks on files and programs; an exec plugin may run for ``plugin_seconds``.

    Raises:
        CredentialsError: no credentials are available.

    """
    now, certificate, key = time.monotonic(), source.certificate, source.key
    if source.token_file:
        return Credentials(_bearer(_token_in(source.token_file)), certificate, key, now + TOKEN_FILE_SECONDS)
    if source.token:
        return Credentials(_bearer(source.token), certificate, key)
    if source.basic:
        return Credentials(f"Basic {base64.b64encode(source.basic.encode()).decode()}", certificate, key)
    if source.plugin is not None and not certificate:
        return _run_plugin(source.plugin, now, plugin_seconds)
    return Credentials(None, certificate, key)


def _bearer(token: str) -> str:
    if not (token.isascii() and token.isprintable()):
        msg = "the token contains a control character, or one outside ASCII"  # do not quote it: many people read logs
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


def _run_plugin(plugin: Plugin, now: float, timeout_seconds: float) -> Credentials:
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
            stderr=subprocess.DEVNULL,  # it may contain secrets, and many people read logs
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _failed(plugin, f"it did not end within {timeout_seconds:g} s") from None  # it quotes the arguments
    except OSError as error:
        raise _failed(plugin, str(error), plugin.hint) from error
    if done.returncode:
        raise _failed(plugin, f"it exited with {done.returncode}; run it yourself to see why")
    try:
        status = msgspec.json.decode(done.stdout, type=_Answer).status
        until = status.expiration_timestamp
        left = float("inf")
        if until is not None:
            left = datetime.fromisoformat(until.replace("Z", "+00:00")).timestamp() - time.time() - EXPIRY_SLACK_SECONDS
    except (*NOT_JSON, ValueError) as error:
        raise _failed(plugin, f"its answer is not an ExecCredential: {error}") from error
    if not status.token and not (status.certificate and status.key):
        raise _failed(plugin, "it returned neither a token nor a certificate")
    return Credentials(
        _bearer(status.token) if status.token else None,
        PemSource(content=status.certificate.encode()),
        PemSource(content=status.key.encode()),
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
