"""The control plane of the kind cluster: components that a kubelet runs as static pods."""

from controlplane import Cluster, wait_until
from kind.nodes import on_node, static_pod, write_file

CONTROL_PLANE = "taintwarden-e2e-control-plane"
RESTART_SECONDS = 120


class Component:
    """A component that holds a Lease of its own name, such as kube-scheduler."""

    def __init__(self, cluster: Cluster, name: str):
        self._cluster = cluster
        self._name = name
        self._path = static_pod(name)

    @property
    def manifest(self) -> str:
        return on_node(CONTROL_PLANE, "cat", self._path)

    def run_by(self, manifest: str) -> None:
        """Change the manifest, and wait until the component that its kubelet then starts works."""
        if manifest == self.manifest:
            return
        try:
            old = self._holder()
        finally:  # whatever the API server says: what was changed is put back
            write_file(CONTROL_PLANE, self._path, manifest)
        wait_until(lambda: self._holder() not in ("", old), RESTART_SECONDS, f"{self._name} to start again")

    def _holder(self) -> str:
        """The identity in the Lease, new for each start. Empty after an end in order."""
        lease = self._cluster.get("leases", self._name, "kube-system")
        return lease["spec"].get("holderIdentity") or ""
