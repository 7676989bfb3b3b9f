"""The operator as users run it: two replicas, each with its own token and its own network."""

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import yaml

from controlplane import OPERATOR_NAMESPACE, Operator, wait_until
from controlplane.control_plane import ControlPlane
from controlplane.network import Link, Network, most_per_second
from controlplane.operator_process import BYTECODE
from controlplane.target import OPERATOR_SERVICE_ACCOUNT, TOKEN_SECONDS

START_AGAIN_SECONDS = 1.0
LEAD_SECONDS = 90
LEASE = "taintwarden"


class Replica:
    """One replica. It is started again when it ends, as a kubelet would, unless it is meant to be down."""

    def __init__(self, cluster: ControlPlane, network: Network, name: str, namespace: str = OPERATOR_NAMESPACE) -> None:
        self._cluster = cluster
        self.name = name
        self.link = Link(network, seed=len(name))
        self._token = cluster.folder / f"{name}.token"
        self._bound_to = ""
        self.rotate()
        kubeconfig = self._kubeconfig(cluster.folder)
        self.operator = Operator(kubeconfig, cluster.folder, name=name, namespace=namespace)
        self.is_wanted = False
        self.starts = 0

    def rotate(self) -> str:
        """Write a new token into the file, and return the Secret to which the old one was bound."""
        old, self._bound_to = self._bound_to, f"{self.name}-{uuid4().hex[:6]}"
        client, namespace = self._cluster.client, OPERATOR_NAMESPACE
        secret = client.create("v1/secrets", {"metadata": {"name": self._bound_to}}, namespace)
        bound = {"apiVersion": "v1", "kind": "Secret", "name": self._bound_to, "uid": secret["metadata"]["uid"]}
        body = {"spec": {"expirationSeconds": TOKEN_SECONDS, "boundObjectRef": bound}}
        where = {"name": OPERATOR_SERVICE_ACCOUNT, "subresource": "token"}
        token = client.create("serviceaccounts", body, namespace, **where)["status"]["token"]
        self._token.write_text(token)
        return old

    def revoke(self, secret: str) -> None:
        """Tokens that are bound to it end with it."""
        self._cluster.client.delete("secrets", secret, OPERATOR_NAMESPACE)

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        if environment is not None:
            self.operator.process.env = {**os.environ, **BYTECODE, **environment}
        self.is_wanted = True
        self._start()

    def _start(self) -> None:
        self.starts += 1
        self.operator.process.start()

    def stop(self) -> None:
        """Stop it with SIGTERM, so that it releases the Lease."""
        self.is_wanted = False
        self.operator.process.stop()

    def kill(self, *, again: bool = False) -> None:
        """SIGKILL; `again` when it should be started again."""
        self.is_wanted = again
        self.operator.process.kill()

    def keep(self) -> None:
        """Start it again if it has ended by itself."""
        if self.is_wanted and not self.operator.process.is_running:
            self._start()

    @property
    def pid(self) -> int:
        pid = self.operator.process.pid
        assert pid is not None
        return pid

    @property
    def leads(self) -> bool:
        try:
            return self.operator.process.is_running and self.operator.leads
        except Exception:  # noqa: BLE001 - it does not answer: it does not lead
            return False

    def _kubeconfig(self, folder: Path) -> Path:
        path = folder / f"{self.name}.kubeconfig"
        cluster = {"server": self.link.url, "certificate-authority": str(self._cluster.ca)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "chaos",
            "clusters": [{"name": "chaos", "cluster": cluster}],
            "users": [{"name": "chaos", "user": {"tokenFile": str(self._token)}}],
            "contexts": [{"name": "chaos", "context": {"cluster": "chaos", "user": "chaos"}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path


class Replicas:
    """All replicas, with a thread that starts those again that end."""

    def __init__(self, cluster: ControlPlane, network: Network) -> None:
        self._cluster = cluster
        self._network = network
        self.all = [Replica(cluster, network, f"operator-{letter}") for letter in "ab"]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self._lock = threading.Lock()

    def __enter__(self) -> "Replicas":
        for replica in self.all:
            replica.start()
        self._thread.start()
        self.leader()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        for replica in self.all:
            replica.stop()

    def leader(self, timeout_seconds: float = LEAD_SECONDS) -> Replica:
        """The one that leads, when one does."""
        return wait_until(self._leader, timeout_seconds, "a replica to lead")

    def _leader(self) -> Replica | None:
        return next((one for one in self.all if one.leads), None)

    def add(self, name: str, namespace: str = OPERATOR_NAMESPACE) -> Replica:
        """Add a replica, not started; with its Lease in another namespace, if one is given."""
        replica = Replica(self._cluster, self._network, name, namespace)
        with self._lock:
            self.all.append(replica)
        return replica

    def remove(self, replica: Replica) -> None:
        replica.stop()
        with self._lock:
            self.all.remove(replica)

    def restart(self, environment: Mapping[str, str]) -> None:
        """Restart all replicas with other environment variables."""
        for replica in self.all:
            replica.stop()
            replica.start(environment)
        self.leader()

    def most_calls_per_second(self, begin: float, end: float) -> int:
        """Maximum number of calls of one replica in a second, of every kind and with any answer."""
        return max(most_per_second(link.requests, begin, end) for link in self._network.links)

    def links(self) -> Sequence[Link]:
        return [replica.link for replica in self.all]

    def _keep(self) -> None:
        while not self._stopping.wait(START_AGAIN_SECONDS):
            with self._lock:
                for replica in self.all:
                    replica.keep()
