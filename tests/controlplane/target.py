"""A cluster under test, with what works on any: the one started here, or one named by a kubeconfig."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3

from controlplane.binaries import ROOT
from controlplane.certificates import Pair
from controlplane.client import ApiError, Json, group_path
from controlplane.cluster import Cluster
from controlplane.kubeconfig import write_kubeconfig
from controlplane.manifests import access_documents, documents
from controlplane.waiting import wait_until

OPERATOR_NAMESPACE = "taintwarden-system"
OPERATOR_SERVICE_ACCOUNT = "taintwarden"
WEBHOOK_SERVICE_ACCOUNT = "taintwarden-webhook"
TRUST_SERVICE_ACCOUNT = "taintwarden-webhook-trust"
EXTENDER_SERVICE_ACCOUNT = "taintwarden-scheduler-extender"
PUBLISHER_SERVICE_ACCOUNT = "taintwarden-publisher"
EXTENDER = ROOT / "deploy" / "components" / "scheduler-extender"
PUBLISHER = ROOT / "deploy" / "components" / "publisher"
MANIFESTS = (
    ROOT / "deploy" / "base",
    ROOT / "deploy" / "components" / "allow-delete",
    ROOT / "deploy" / "components" / "devices",
    ROOT / "deploy" / "components" / "drained-condition",
    ROOT / "deploy" / "components" / "replace-first",
    ROOT / "deploy" / "components" / "protected-metrics",
)
OPERATOR_USER = f"system:serviceaccount:{OPERATOR_NAMESPACE}:{OPERATOR_SERVICE_ACCOUNT}"
TOKEN_SECONDS = 24 * 3600
SERVED_SECONDS = 60

# The tests evict pods wherever they are pointed: only at clusters made for that.
ALLOWED_CONTEXTS = ("kind-taintwarden-e2e", "taintwarden-e2e")
CONTEXTS_VARIABLE = "TAINTWARDEN_E2E_CONTEXTS"


class ForbiddenContextError(Exception):
    """The context is not on the allow list."""


def check_context(name: str, environ: Mapping[str, str]) -> None:
    """Raise ForbiddenContextError unless the tests may evict in this context."""
    allowed = [*ALLOWED_CONTEXTS, *filter(None, environ.get(CONTEXTS_VARIABLE, "").split(","))]
    if name not in allowed:
        raise ForbiddenContextError(
            f"the end-to-end tests evict pods and refuse the context {name!r}: allowed are {', '.join(allowed)}; "
            f"more names go into {CONTEXTS_VARIABLE}, separated by commas"
        )


class Target:
    """An API server, an administrator's client, and the operator's own identity.

    `folder` takes kubeconfigs and logs. `ca` is None where the server's certificate is publicly trusted.
    """

    def __init__(self, server: str, ca: Path | None, admin: Pair | None, folder: Path, *, token: str = ""):
        self.server = server
        self.ca = ca
        self.client = Cluster(server, ca, certificate=admin, token=token)
        self.admin_kubeconfig = write_kubeconfig(folder / "admin.kubeconfig", server, ca, client=admin, token=token)
        self.folder = folder

    def version(self) -> str:
        """The server's version, such as v1.37.1."""
        return self.client.request("GET", "/version")["gitVersion"]

    def apply_crds(self, folder: Path = ROOT / "crds") -> None:
        """Apply every custom resource definition and wait until the server serves them."""
        self.wait_served([self.client.apply(document) for _, document in documents(folder)])

    def wait_served(self, crds: list[Json]) -> None:
        """Wait until the server answers for each of these custom resources."""
        for spec in (crd["spec"] for crd in crds):
            path = f"{group_path(spec['group'] + '/' + spec['versions'][0]['name'])}/{spec['names']['plural']}"
            wait_until(lambda path=path: self.answers(path), SERVED_SECONDS, f"{path} to be served")

    def apply_manifests(self, *folders: Path) -> None:
        """Apply what gives operator and webhook their rights; see manifests.access_documents.

        Without folders: all that is shipped, the rights to delete pods and to review tokens included.
        """
        for folder in folders or MANIFESTS:
            for document in access_documents(folder):
                self.client.apply(document)

    def operator_kubeconfig(self, server: str = "") -> Path:
        """A kubeconfig of the operator's service account, which holds the shipped role and nothing else.

        `server` leads through a proxy instead. Needs apply_manifests before.
        """
        name = "operator-proxied" if server else "operator"
        return self._kubeconfig(name, OPERATOR_SERVICE_ACCOUNT, server)

    def webhook_kubeconfig(self) -> Path:
        """Kubeconfig of the webhook's service account."""
        return self._kubeconfig("webhook", WEBHOOK_SERVICE_ACCOUNT)

    def trust_kubeconfig(self) -> Path:
        """Kubeconfig of the account that writes the CA bundles of the webhook configurations."""
        return self._kubeconfig("trust", TRUST_SERVICE_ACCOUNT)

    def extender_kubeconfig(self) -> Path:
        """Kubeconfig of the scheduler extender's service account. Needs apply_manifests(EXTENDER) before."""
        return self._kubeconfig("extender", EXTENDER_SERVICE_ACCOUNT)

    def publisher_kubeconfig(self) -> Path:
        """Kubeconfig of the publisher's service account. Needs apply_manifests(PUBLISHER) before."""
        return self._kubeconfig("publisher", PUBLISHER_SERVICE_ACCOUNT)

    def operator_client(self) -> Cluster:
        """A client with the operator's rights, to see what it may not do. Close it."""
        return Cluster(self.server, self.ca, token=self.token(OPERATOR_SERVICE_ACCOUNT))

    def webhook_client(self) -> Cluster:
        """A client with the webhook's rights. Close it."""
        return Cluster(self.server, self.ca, token=self.token(WEBHOOK_SERVICE_ACCOUNT))

    def trust_client(self) -> Cluster:
        """A client with the rights of the account that writes what the webhook configurations trust. Close it."""
        return Cluster(self.server, self.ca, token=self.token(TRUST_SERVICE_ACCOUNT))

    def answers(self, path: str) -> bool:
        """Return True if a GET as administrator succeeds; False while the server does not run, too."""
        try:
            self.client.request("GET", path)
        except (ApiError, urllib3.exceptions.HTTPError):
            return False
        return True

    def _kubeconfig(self, name: str, account: str, server: str = "") -> Path:
        path = self.folder / f"{name}.kubeconfig"
        return write_kubeconfig(path, server or self.server, self.ca, token=self.token(account))

    def token(self, account: str) -> str:
        """A token by TokenRequest, as a kubelet would mount it."""
        body = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        path = {"name": account, "subresource": "token"}
        return self.client.create("serviceaccounts", body, OPERATOR_NAMESPACE, **path)["status"]["token"]


def existing_cluster(kubeconfig: Path, context: str, folder: Path) -> Target:
    """The cluster of a context; credential plugins work. Check the context first."""
    from kubernetes import config  # noqa: PLC0415 - a second of import that the usual run need not pay

    found: Any = config.new_client_from_config(str(kubeconfig), context).configuration
    ca = Path(found.ssl_ca_cert) if found.ssl_ca_cert else None
    pair = Pair(Path(found.cert_file), Path(found.key_file)) if found.cert_file else None
    token = (found.api_key or {}).get("authorization", "").removeprefix("Bearer ")
    return Target(found.host, ca, pair, folder, token=token)
