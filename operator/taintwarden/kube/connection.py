"""Where the API server is and who we are.

The ``kubernetes`` package reads it, exec plugins and token rotation included.
"""

import ssl
import time
from pathlib import Path

import yaml
from kubernetes import client, config

from taintwarden.kube.errors import ConfigError

TOKEN_LIFETIME_SECONDS = 10.0
"""How long a token is used before the loader is asked again; it has its own idea of when to renew."""


class Connection:
    """Server address, TLS context and credentials.

    Raises:
        ConfigError: nothing usable was found; the message says where it was looked for.

    """

    def __init__(self, configuration: client.Configuration) -> None:
        self.server: str = str(configuration.host).rstrip("/")
        self.configuration = configuration
        self.ssl = _ssl_context(configuration)
        self.tls_server_name: str | None = configuration.tls_server_name or None
        self._authorization: str | None = None
        self._read_at = float("-inf")

    @classmethod
    def load(cls, kubeconfig: str | None = None, context: str | None = None) -> "Connection":
        """Use this kubeconfig, else the service account of the pod we run in, else the user's default kubeconfig."""
        configuration = client.Configuration()
        try:
            if kubeconfig is None and context is None and Path(config.incluster_config.SERVICE_TOKEN_FILENAME).exists():
                config.load_incluster_config(client_configuration=configuration)
            else:
                config.load_kube_config(
                    config_file=kubeconfig, context=context, client_configuration=configuration, persist_config=False
                )
            if configuration.host == client.Configuration().host:
                msg = "its cluster has no server"
                raise ValueError(msg)
            return cls(configuration)
        except (config.ConfigException, yaml.YAMLError, OSError, ValueError, LookupError, TypeError) as error:
            # The loader of the kubernetes package lets whatever a malformed file causes escape.
            where = kubeconfig or "the service account and the default kubeconfig"
            reason = " ".join(str(error).split()) or type(error).__name__
            msg = f"cannot use {where}: {reason[:300]}"
            raise ConfigError(msg) from error

    def authorization(self) -> str | None:
        """The ``Authorization`` header, renewed as needed; None where a client certificate or nothing is used."""
        now = time.monotonic()
        if now - self._read_at > TOKEN_LIFETIME_SECONDS:
            self._authorization = self.configuration.get_api_key_with_prefix("BearerToken", "authorization")
            self._read_at = now
        return self._authorization


def _ssl_context(configuration: client.Configuration) -> ssl.SSLContext | bool:
    if not str(configuration.host).startswith("https"):
        return False
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
