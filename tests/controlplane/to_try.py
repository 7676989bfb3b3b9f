"""The cluster of `make cluster`: six nodes, the operator, the webhook, a policy, and pods that the webhook completes.

With `slo` the nodes have no taint: an exporter has the availability of each, a real Prometheus reads it, and the
publisher waits for an object that says what to publish. docs/slo-tutorial.md is about that.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from controlplane import Json, Operator, WorkingCluster, wait_until, webhook_setup
from controlplane.target import PUBLISHER
from controlplane.working_cluster import CONTROLLERS
from monitoring.loop import Loop, measured
from monitoring.promtool import tool

COMPLETED_SECONDS = 60
FOR_PEOPLE = ("serviceaccount-controller", "namespace-controller")
"""People create and delete namespaces without the helpers of the tests."""
FOR_PUBLISHER = ("clusterrole-aggregation-controller",)
"""Adds the keys that an administrator allows to the role of the publisher."""
NODES = {"zone-a": 2, "zone-b": 2, "zone-c": 2}
TAINT = {"key": "sla", "value": "980", "effect": "NoExecute"}
NAMESPACE, HOSTNAME = "shop", "kubernetes.io/hostname"
WEB, BATCH = 950, 800
"""Above which value the pods of each Deployment stay."""


@dataclass(frozen=True)
class ToTry:
    """The cluster to try, and the processes started with it."""

    cluster: WorkingCluster
    nodes: list[str]
    operator: Operator
    loop: Loop | None
    """Exporter, Prometheus and publisher, if they were started."""

    @property
    def variables(self) -> dict[str, str]:
        """Environment of a person's shell in addition to a kubeconfig and a path."""
        return {"EXPORTER": self.loop.exporter.url, "PROMETHEUS": self.loop.prometheus.url} if self.loop else {}


@contextmanager
def opened(folder: Path | None = None, *, slo: bool = False) -> Iterator[ToTry]:
    """Start it, each process with the rights that are shipped for it.

    Raises MissingBinariesError, or with `slo` MissingPrometheusError, with what to do.
    """
    if slo:
        tool("prometheus")
    controllers = (*CONTROLLERS, *FOR_PEOPLE, *(FOR_PUBLISHER if slo else ()))
    with WorkingCluster(folder, controllers=controllers) as cluster, ExitStack() as stack:
        cluster.apply_crds()
        cluster.apply_manifests()
        if slo:
            cluster.apply_manifests(PUBLISHER)
        names = cluster.create_zones("node", NODES, {}, *([] if slo else [TAINT]))
        operator = stack.enter_context(Operator(cluster.operator_kubeconfig(), cluster.folder))
        stack.enter_context(webhook_setup.opened(cluster, cluster.folder))
        loop = stack.enter_context(measured(cluster, names)) if slo else None
        _apply_policy(cluster)
        wait_until(lambda: _are_labelled(cluster), COMPLETED_SECONDS, "all nodes to be labelled for the scheduler")
        if slo:
            _deploy(cluster, "web", 12, WEB, spread=HOSTNAME)
            _deploy(cluster, "batch", 6, BATCH, spread=HOSTNAME)
            budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
            cluster.client.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget}, NAMESPACE)
        else:
            _deploy(cluster, "web", 6, WEB)
        yield ToTry(cluster, names, operator, loop)


def _apply_policy(cluster: WorkingCluster) -> None:
    """Create the README's example in a namespace whose pods the webhook completes."""
    cluster.client.create_namespace(NAMESPACE, {"taintwarden.io/inject": "true"})
    policy: Json = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy", "metadata": {"name": "sla"}}
    taint = {"key": "sla", "valueType": "Integer", "placement": True}
    cluster.client.create("taintevictionpolicies", policy | {"spec": {"taints": [taint]}})
    wait_until(lambda: "affinity" in _completed(cluster), COMPLETED_SECONDS, "pods to be completed by the webhook")


def _are_labelled(cluster: WorkingCluster) -> bool:
    """Return True if all nodes have labels of placement: before, the first pods would share few nodes."""
    labels = (node["metadata"]["labels"] for node in cluster.client.items("nodes"))
    return all("value-or-max.taintwarden.io/sla" in one for one in labels)


def _tolerations(least: int) -> dict[str, str]:
    one = f'"key": "sla", "operator": "Gt", "value": "{least}", "effect": "NoExecute", "violationGraceSeconds": 30'
    return {"taintwarden.io/tolerations": f"[{{{one}}}]"}


def _deploy(cluster: WorkingCluster, name: str, replicas: int, least: int, **more: str) -> None:
    annotations = _tolerations(least)
    cluster.wait_complete(
        cluster.create_deployment(name, NAMESPACE, replicas, node_selector={}, annotations=annotations, **more)
    )


def _completed(cluster: WorkingCluster) -> Json:
    """The spec with which a pod of a Deployment would be stored."""
    metadata = {"name": "trial", "annotations": _tolerations(WEB)}
    spec = {"containers": [{"name": "main", "image": "none"}], "automountServiceAccountToken": False}
    pod = cluster.client.create("pods", {"metadata": metadata, "spec": spec}, NAMESPACE, dryRun="All")
    found: Json = pod["spec"]
    return found
