"""A Kubernetes API server inside a Python process, for the demo, tests and benchmarks.

Plain HTTP on loopback. The same contract tests run against it and against kube-apiserver.

    cluster = LocalCluster(disruption=True, kubelet=True)
    cluster.create("nodes", {"metadata": {"name": "a"}})
    async with cluster.serve() as server:
        server.write_kubeconfig("kubeconfig")

The steps of a request: `http` (path, media type, faults) -> `operations` (create, patch, apply, delete, evict) ->
`kinds` (schema, admission, validation) -> `store` (revisions, history, watches).

Differences from a real server (it is less strict only where this list says so):

- no authentication, authorization, admission webhooks, quotas, priority and fairness, TLS, aggregated discovery, gzip,
  JSON patch, lists of metadata only, protobuf
- kubectl works as far as the quick start needs it: no schemas, tables of pods and nodes only
- workloads and volumes are read-only for clients; there are no service accounts or PriorityClasses
- every watch receives a write at once; a list is never stale
- unknown fields are always refused; other requests that are not served get 501, which no real server answers
- built-in kinds are checked in the parts that this project writes; other parts are stored unchecked
- CEL rules of custom kinds are not evaluated; a definition is established at once; only one version is served
- no garbage collection by owner, no deletion of namespaces or of objects with finalizers
- events do not expire; history is bounded by number, not by time
- server-side apply sets labels and annotations of nodes only, with force; managedFields contains nothing else

Forbidden here: importing the operator, kopf, or the kubernetes package.
"""

from localcluster.cluster import LocalCluster, Server
from localcluster.errors import ApiError
from localcluster.faults import Faults
from localcluster.store.store import Store

__all__ = ["ApiError", "Faults", "LocalCluster", "Server", "Store"]
