"""A control plane that is populated once, and opened again with the same objects for every subject."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import population, stored
from bench.bulk import MERGE_PATCH, STRATEGIC_PATCH, Bulk, for_each
from bench.population import NO_LIMITS, Json, Shape

# The harness of the end-to-end tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from controlplane import ApiError, ControlPlane, Operator, Process, wait_until
from kube.wire_format import enveloped, message, pod_message

__all__ = [
    "POLICY",
    "ControlPlane",
    "Operator",
    "Process",
    "Store",
    "enveloped",
    "message",
    "pod_message",
    "set_taints",
    "wait_until",
]

CONCURRENCY = 24
POLICY = {
    "apiVersion": "taintwarden.io/v1alpha1",
    "kind": "TaintEvictionPolicy",
    "metadata": {"name": "bench"},
    "spec": {"taints": [{"key": "*"}], "limits": NO_LIMITS},
}


class Reopened(ControlPlane):
    """A control plane on the etcd data of another one."""

    ready_seconds = 600
    """Maximum seconds for its start. With 150,000 pods the API server needs more than a minute."""

    def start(self) -> None:
        try:
            super().start()
        except ApiError as error:
            if error.status != 409:  # the default service account exists already
                raise


class Store:
    """Populated etcd data, created on first use and copied for every opening."""

    def __init__(self, folder: Path, shape: Shape):
        self.shape = shape
        self._data = folder / shape.name

    @contextmanager
    def open(self) -> Iterator[ControlPlane]:
        """Run a control plane with its own copy of the data, which is deleted afterwards."""
        if not self._data.exists():
            self._populate()
        with tempfile.TemporaryDirectory(prefix="taintwarden-bench-") as name:
            folder = Path(name)
            shutil.copytree(self._data, folder / "etcd")
            with Reopened(folder) as control_plane:
                yield control_plane

    def _populate(self) -> None:
        with tempfile.TemporaryDirectory(prefix="taintwarden-bench-") as name:
            folder = Path(name)
            with ControlPlane(folder) as control_plane:
                control_plane.apply_crds()
                control_plane.apply_manifests()
                for index in range(population.NAMESPACES):
                    control_plane.client.create_namespace(population.namespace_name(index))
                originals = asyncio.run(create(control_plane.admin_kubeconfig, self.shape))
                control_plane.stop_api_server()
                asyncio.run(stored.multiply(etcd_url(control_plane), originals, self.shape))
            self._data.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(folder / "etcd", self._data)


def etcd_url(control_plane: ControlPlane) -> str:
    """Return the client URL of the control plane's etcd."""
    option = "--listen-client-urls="
    return next(part for part in control_plane.etcd.command if part.startswith(option)).removeprefix(option)


async def create(kubeconfig: Path, shape: Shape) -> list[Json]:
    """Create nodes, ReplicaSets, and the first pod of each workload, with the status that kubelets would report."""
    async with Bulk.open(kubeconfig) as bulk:

        async def create_node(index: int) -> None:
            path = f"/api/v1/nodes/{population.node_name(index)}"
            await bulk.must("POST", "/api/v1/nodes", population.node(index))
            await bulk.must("PATCH", f"{path}/status", {"status": population.node_status()}, STRATEGIC_PATCH)
            await set_taints(bulk, index, [])  # admission adds not-ready to a new node

        async def create_replica_sets(workload: int) -> str:
            """Create all ReplicaSets of a Deployment. Returns the UID of the one whose pods run."""
            replicas = sum(population.workload_of(index) == workload for index in range(shape.pods))
            sets = population.replica_sets(workload, replicas)
            for namespace, body in sets:
                await bulk.must("POST", f"/apis/apps/v1/namespaces/{namespace}/replicasets", body)
            namespace, body = sets[0]
            found = await bulk.get(f"/apis/apps/v1/namespaces/{namespace}/replicasets/{body['metadata']['name']}")
            return str(found["metadata"]["uid"])

        async def create_pod(index: int) -> Json:
            workload = population.workload_of(index)
            owner_uid, node_name = await create_replica_sets(workload), population.node_name(index % shape.nodes)
            made = population.small_pod if shape.has_small_pods else population.pod
            namespace, body, status = made(workload, index, node_name, owner_uid)
            path = f"/api/v1/namespaces/{namespace}/pods"
            await bulk.must("POST", path, body)
            path += f"/{body['metadata']['name']}"
            await bulk.must("PATCH", f"{path}/status", {"status": status}, STRATEGIC_PATCH)
            return await bulk.get(path)

        await for_each(range(shape.nodes), create_node, CONCURRENCY)
        pods = [await create_pod(index) for index in range(population.WORKLOADS)]
        return sorted(pods, key=lambda pod: pod["metadata"]["name"])  # by workload


async def set_taints(bulk: Bulk, index: int, taints: list[Json]) -> None:
    """Replace a node's taints as `kubectl taint` does: without timeAdded."""
    path = f"/api/v1/nodes/{population.node_name(index)}"
    await bulk.must("PATCH", path, {"spec": {"taints": taints or None}}, MERGE_PATCH)
