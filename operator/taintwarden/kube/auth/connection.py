"""The connection to the API server: address, proxy, TLS and credentials. Files are read again as they change."""

import asyncio
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from yarl import URL

from taintwarden.fields.text import printable, shortened, without_userinfo
from taintwarden.kube.auth.credentials import Credentials, CredentialsError, read_credentials
from taintwarden.kube.auth.kubeconfig import SERVICE_ACCOUNT, ClusterSource, default_paths, from_files, in_cluster
from taintwarden.kube.auth.pem import load_chain
from taintwarden.kube.errors import ConfigError

FILES_SECONDS = 10.0
"""Seconds between reads of the files of certificates."""
RETRY_SECONDS = 5.0
"""Seconds until credentials that could not be read are read again. The previous ones are used meanwhile."""

log = structlog.get_logger()


class Connection:
    """Server address, TLS context and credentials. May be used from several threads.

    Args:
        source: cluster and user, from a kubeconfig or a service account.

    Raises:
        ConfigError: server, TLS server name or proxy cannot be used; OSError or ValueError: certificates cannot.

    """

    def __init__(self, source: ClusterSource) -> None:
        self.server, self._is_tls = source.server, _checked_server(source.server).scheme == "https"
        self.origin, self.namespace = source.origin, source.namespace
        self.tls_server_name = _checked_name(source.tls_server_name)
        self.proxy, self.impersonation = source.proxy, source.impersonation
        if self.proxy is not None:
            _checked_url("proxy", self.proxy)
        self._source = source
        self._lock = threading.Lock()
        self._credentials: Credentials | None = None
        self._is_stale = False
        self._retry_at = float("-inf")
        self._files_read_at = time.monotonic()
        self._pem: list[bytes] = []
        """The certificates and the key that ``ssl`` contains."""
        self.ssl: ssl.SSLContext | bool = False
        self._load_certificates(Credentials(None, source.certificate, source.key))

    @classmethod
    def load(
        cls, kubeconfig: str | None = None, context: str | None = None, service_account: Path = SERVICE_ACCOUNT
    ) -> "Connection":
        """Use this kubeconfig, else those of ``KUBECONFIG``, else ``~/.kube/config``, else the pod's service account.

        The order is that of kubectl, so that both use the same cluster. ``service_account`` is a folder.

        Raises:
            ConfigError: nothing usable was found; the message names the places.

        """
        environment = os.environ
        paths = [Path(kubeconfig)] if kubeconfig is not None else default_paths(environment)
        named = kubeconfig is not None or environment.get("KUBECONFIG") or context is not None
        where = os.pathsep.join(map(str, paths)) or "a kubeconfig"
        try:
            if not named and not any(path.exists() for path in paths) and (service_account / "token").exists():
                where = "the service account of the pod"
                return cls(in_cluster(environment, service_account))
            if not any(path.exists() for path in paths):
                msg = "there is no such file"
                raise ValueError(msg)
            return cls(from_files(paths, context, environment))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            msg = f"cannot use {printable(where)}: {shortened(reason, 300)}"
            raise ConfigError(msg) from error

    async def authorization(self) -> str | None:
        """Return the ``Authorization`` header, renewed as needed; None for a client certificate or anonymous requests.

        Raises:
            CredentialsError: no credentials have been read so far.

        """
        if self._is_due():
            await asyncio.to_thread(self.renew)
        return None if self._credentials is None else self._credentials.authorization

    async def renew_after_401(self, authorization: str | None) -> bool:
        """Read the credentials again after a 401 for this header. Return True if there is another header now."""
        if not (self._source.token_file or self._source.plugin):
            return False  # these credentials do not change
        if self._credentials is not None and self._credentials.authorization == authorization:
            self._is_stale = True
            await asyncio.to_thread(self.renew)
        return self._credentials is not None and self._credentials.authorization != authorization

    def renew(self) -> Credentials:
        """Read the credentials again if they are due, and the certificates. Blocks.

        Raises:
            CredentialsError: no credentials have been read so far.

        """
        with self._lock:
            now = time.monotonic()
            if self._credentials is None or self._is_stale or self._credentials.fresh_until <= now:
                try:
                    self._credentials = read_credentials(self._source)
                    self._is_stale = False
                except CredentialsError as error:
                    if self._credentials is None:
                        raise
                    self._retry_at = now + RETRY_SECONDS
                    log.warning("credentials-not-renewed", reason=str(error))
            self._files_read_at = now
            try:
                self._load_certificates(self._credentials)
            except (OSError, ValueError) as error:  # half written, perhaps: the previous ones are used
                self._retry_at = now + RETRY_SECONDS
                log.warning("certificates-not-renewed", reason=str(error))
            return self._credentials

    def _is_due(self) -> bool:
        now = time.monotonic()
        if self._credentials is None:
            return True
        if now < self._retry_at:
            return False
        return self._is_stale or self._credentials.fresh_until <= now or now - self._files_read_at > FILES_SECONDS

    def _load_certificates(self, credentials: Credentials) -> None:
        """Load the authority, the certificate and the key if they have changed."""
        if not self._is_tls:
            return
        pem = [source.read() for source in (self._source.authority, credentials.certificate, credentials.key)]
        if pem != self._pem:
            self.ssl, self._pem = self._context(*pem), pem

    def _context(self, authority: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
        trusted = authority.decode("ascii", "replace").strip() or None
        if trusted is None and self._source.authority:  # the system's authorities must not replace it
            msg = f"the certificate authority {self._source.authority.file} is empty"
            raise ValueError(msg)
        context = ssl.create_default_context(cadata=trusted)
        # Python 3.13 requires key identifiers (RFC 5280), which Go does not, and which many certificates lack.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self._source.is_verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate:
            load_chain(context, b"\n".join(filter(None, (certificate, key))))
        return context


def _checked_server(text: str) -> URL:
    url = _checked_url("server", text)
    with _naming("server", text):
        if url.user is not None or url.password is not None:
            msg = "it contains a user or a password, which belong to the user of the kubeconfig"
            raise ValueError(msg)
    return url


def _checked_url(field: str, text: str) -> URL:
    with _naming(field, text):
        try:
            url = URL(text)
        except ValueError:  # yarl's error may quote a part of a password
            url = URL()
        if url.scheme not in ("http", "https") or not url.host or not url.port:
            msg = "it is not a URL of https or http"
            raise ValueError(msg)
    return url


def _checked_name(name: str | None) -> str | None:
    if name is not None:
        with _naming("tls-server-name", name):
            if not name.encode("idna").decode("ascii").isprintable():
                msg = "it has control characters"
                raise ValueError(msg)
    return name


@contextmanager
def _naming(field: str, text: str) -> Iterator[None]:
    """Turn a ValueError into a ConfigError that names this field of the kubeconfig."""
    try:
        yield
    except ValueError as error:
        url = text if "//" in text else text.rpartition("@")[2]
        msg = f"the {field} {printable(without_userinfo(url), 200)} cannot be used: {error}"
        raise ConfigError(msg) from error
