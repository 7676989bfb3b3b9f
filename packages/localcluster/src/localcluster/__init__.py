"""A Kubernetes API server inside the process: for the demo, for tests, for benchmarks.

Plain HTTP on loopback, honest where it matters: the same contract tests run against it and against kube-apiserver.

    cluster = LocalCluster(disruption=True, kubelet=True)
    cluster.create("nodes", {"metadata": {"name": "a"}})
    async with cluster.serve() as server:
        server.write_kubeconfig("kubeconfig")

The way of a request: `http` (path, media type, faults) -> `operations` (create, patch, apply, delete, evict) ->
`kinds` (schema, admission, validation) and `merge` (patches, field owners) -> `store` (revisions, history, watches).

What differs from a real server (it is simpler, and kinder only where this list says so):

- no authorization, admission webhooks, quotas, priority and fairness, TLS, aggregated discovery, gzip, JSON patch,
  lists of metadata only; no protobuf, which `kubectl create namespace NAME` insists on (`kubectl create -f` does not)
- a pod needs no service account; a write is seen by every watch at once; a list is never behind
- built-in kinds are checked in the parts this project writes; the rest of a pod's or node's spec is stored as it comes
- CEL rules of custom kinds are not evaluated; a definition is established at once; one version of it is served
- nothing collects garbage by owner; a deleted namespace is emptied and removed in the same request
- events do not expire; history is bounded by number, not by time
- managedFields: one version, no consolidation of old managers; clients cannot rewrite them

Forbidden here: importing the operator, kopf, or the kubernetes package.
"""

from localcluster.cluster import LocalCluster, Server
from localcluster.errors import ApiError
from localcluster.faults import Faults
from localcluster.store.store import Store

__all__ = ["ApiError", "Faults", "LocalCluster", "Server", "Store"]
