"""A Kubernetes API server inside the process: for the demo, for tests, for benchmarks.

Plain HTTP on loopback. The same contract tests run against it and against kube-apiserver.

    cluster = LocalCluster(disruption=True, kubelet=True)
    cluster.create("nodes", {"metadata": {"name": "a"}})
    async with cluster.serve() as server:
        server.write_kubeconfig("kubeconfig")

The steps of a request: `http` (path, media type, faults) -> `operations` (create, patch, apply, delete, evict) ->
`kinds` (schema, admission, validation) -> `store` (revisions, history, watches).

Differences from a real server (it is simpler, and less strict only where this list states it):

- no authentication, authorization, admission webhooks, quotas, priority and fairness, TLS, aggregated discovery, gzip,
  JSON patch, lists of metadata only, protobuf
- of kubectl what the quick start does: no schemas, tables of pods and nodes only
- of workloads and volumes clients read what the store was given; there are no service accounts and PriorityClasses
- every watch receives a write at once; a list is never stale
- what is not served is refused: unknown fields always, all else with 501, an answer that no real server gives
- built-in kinds are checked in the parts this project writes; the rest of a pod's or node's spec is stored unchecked
- CEL rules of custom kinds are not evaluated; a definition is established at once; one version of it is served
- no garbage collection by owner, no deletion of namespaces and of objects with finalizers
- events do not expire; history is bounded by number, not by time
- server-side apply sets labels and annotations of nodes, with force; managedFields has these alone

Forbidden here: importing the operator, kopf, or the kubernetes package.
"""

from localcluster.cluster import LocalCluster, Server
from localcluster.errors import ApiError
from localcluster.faults import Faults
from localcluster.store.store import Store

__all__ = ["ApiError", "Faults", "LocalCluster", "Server", "Store"]
