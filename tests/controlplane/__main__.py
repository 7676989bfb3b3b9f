"""A cluster to try things on, until it is interrupted: that of the tests with nodes, operator, webhook, a Deployment.

Started by `make cluster`. Pods have no containers: a stand-in for kubelets says that they run.
"""

import os
import signal
import sys
from pathlib import Path

from controlplane import webhook_setup
from controlplane.binaries import MissingBinariesError, binaries_folder
from controlplane.client import Json
from controlplane.operator_process import EXECUTABLE, Operator
from controlplane.waiting import wait_until
from controlplane.working_cluster import CONTROLLERS, WorkingCluster

COMPLETED_SECONDS = 60
FOR_PEOPLE = ("serviceaccount-controller", "namespace-controller")
"""People create and delete namespaces without the helpers of the tests."""
NODES = {"zone-a": 2, "zone-b": 2, "zone-c": 2}
TAINT = {"key": "sla", "value": "980", "effect": "NoExecute"}
NAMESPACE, REPLICAS = "shop", 6
TOLERATIONS = '[{"key": "sla", "operator": "Gt", "value": "950", "effect": "NoExecute", "violationGraceSeconds": 30}]'


def main() -> int:
    """Run it; the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        path = os.pathsep.join(map(str, (EXECUTABLE.parent, binaries_folder())))
        with WorkingCluster(controllers=(*CONTROLLERS, *FOR_PEOPLE)) as cluster:
            cluster.apply_crds()
            cluster.apply_manifests()
            names = cluster.create_zones("node", NODES, {}, TAINT)
            with (
                Operator(cluster.operator_kubeconfig(), cluster.folder),
                webhook_setup.opened(cluster, cluster.folder),
            ):
                deploy(cluster)
                say(cluster, names, path)
                while True:
                    signal.pause()
    except MissingBinariesError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 0


def deploy(cluster: WorkingCluster) -> None:
    """The Deployment and the policy of the README: its pods are completed by the webhook."""
    cluster.client.create_namespace(NAMESPACE, {"taintwarden.io/inject": "true"})
    policy: Json = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy", "metadata": {"name": "sla"}}
    taint = {"key": "sla", "valueType": "Integer", "placement": True}
    cluster.client.create("taintevictionpolicies", policy | {"spec": {"taints": [taint]}})
    wait_until(lambda: "affinity" in completed(cluster), COMPLETED_SECONDS, "pods to be completed by the webhook")
    annotations = {"taintwarden.io/tolerations": TOLERATIONS}
    web = cluster.create_deployment("web", NAMESPACE, REPLICAS, node_selector={}, annotations=annotations)
    cluster.wait_complete(web)


def completed(cluster: WorkingCluster) -> Json:
    """The spec with which a pod of the Deployment would be stored."""
    metadata = {"name": "trial", "annotations": {"taintwarden.io/tolerations": TOLERATIONS}}
    spec = {"containers": [{"name": "main", "image": "none"}], "automountServiceAccountToken": False}
    pod = cluster.client.create("pods", {"metadata": metadata, "spec": spec}, NAMESPACE, dryRun="All")
    found: Json = pod["spec"]
    return found


def say(cluster: WorkingCluster, nodes: list[str], path: str) -> None:
    """What to type in another terminal."""
    log = Path(cluster.folder) / "taintwarden.log"
    sys.stdout.write(
        f"\nKubernetes {cluster.version()} with nodes {nodes[0]} to {nodes[-1]}, the operator and the webhook (logs\n"
        f"beside {log}),\nthe policy sla, and the Deployment {NAMESPACE}/web.\n"
        f"\nIn another terminal:\n\n  export KUBECONFIG={cluster.admin_kubeconfig} PATH={path}:$PATH\n\nCtrl-C ends.\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
