"""Creation of the scenario's objects in a cluster."""

import json
from collections.abc import Sequence

from localcluster import LocalCluster
from taintwarden.api.tolerations import TOLERATIONS_ANNOTATION
from taintwarden.api.types import GROUP, POLICY_KIND, VERSION
from taintwarden_demo.scenario import NAMESPACE, POLICY, TAINT, Node, Object, Scenario, Workload

OPERATOR_NAMESPACE = "taintwarden-system"
WORKLOAD_LABEL = "app"
VALUE_LABEL = f"value-or-max.{GROUP}/{TAINT}"


def build_world(cluster: LocalCluster, scenario: Scenario, definitions: Sequence[Object]) -> None:
    """Create definitions, policy, nodes and workloads. Pods start when the cluster is served."""
    for name in (OPERATOR_NAMESPACE, NAMESPACE):
        cluster.create("namespaces", {"metadata": {"name": name}})
    for definition in definitions:
        cluster.create("customresourcedefinitions", definition)
    cluster.create("taintevictionpolicies", policy(scenario))
    for node in scenario.nodes:
        _create_node(cluster, node)
    for workload in scenario.workloads:
        owner = _create_owners(cluster, workload)
        for name in workload.nodes:
            create_pod(cluster, workload, owner, name)


def policy(scenario: Scenario) -> Object:
    """Return the policy as a user would write it."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": POLICY_KIND,
        "metadata": {"name": POLICY},
        "spec": {
            "taints": [{"key": TAINT, "valueType": "Integer", "placement": True}],
            "timing": {"violationGraceSeconds": scenario.grace_seconds},
            "limits": {"evictionsPerSecond": 5, "burst": 10},
        },
    }


def create_pod(cluster: LocalCluster, workload: Workload, owner: Object, node: str = "") -> str:
    """Create a pod of ``workload`` and return its name. Without a node it stays Pending."""
    metadata: Object = {
        "generateName": f"{owner['name']}-",
        "namespace": NAMESPACE,
        "labels": {WORKLOAD_LABEL: workload.name},
        "ownerReferences": [owner],
    }
    if workload.extended:
        metadata["annotations"] = {TOLERATIONS_ANNOTATION: json.dumps(workload.extended)}
    spec: Object = {
        "containers": [{"name": workload.name, "image": f"registry.example/{workload.name}:1.0"}],
        "tolerations": list(workload.tolerations),
    }
    if workload.above is not None:
        spec["affinity"] = {"nodeAffinity": _above(workload.above)}
    if node:
        spec["nodeName"] = node
    name: str = cluster.create("pods", {"metadata": metadata, "spec": spec})["metadata"]["name"]
    return name


def _above(value: str) -> Object:
    """Return the node affinity that the webhook adds, for the label to which the operator copies the taint."""
    above = {"key": VALUE_LABEL, "operator": "Gt", "values": [value]}
    terms = [{"matchExpressions": [above]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def set_value(cluster: LocalCluster, node: str, value: str) -> None:
    """Change the value of a taint as ``kubectl taint --overwrite`` does, without ``timeAdded``."""

    def change(stored: Object) -> None:
        for taint in stored["spec"]["taints"]:
            if taint["key"] == TAINT:
                taint["value"] = value

    cluster.store.modify("nodes", node, "", change)


def _create_node(cluster: LocalCluster, node: Node) -> None:
    """Create a Ready node in the store. A node that a client creates would get a not-ready taint."""
    labels = {
        "kubernetes.io/hostname": node.name,
        "topology.kubernetes.io/zone": node.zone,
        "example.com/capacity": node.capacity,
        VALUE_LABEL: node.sla,  # as if the kubelet had registered the node with it
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": None}
    cluster.store.create(
        "nodes",
        {
            "metadata": {"name": node.name, "labels": labels},
            "spec": {"taints": [{"key": TAINT, "value": node.sla, "effect": "NoExecute"}]},
            "status": {"conditions": [ready], "nodeInfo": {"kubeletVersion": "v1.36.0"}},
        },
    )


def _create_owners(cluster: LocalCluster, workload: Workload) -> Object:
    """Create the controller of the pods and their budget. Returns the owner reference for the pods."""
    selector = {"matchLabels": {WORKLOAD_LABEL: workload.name}}
    metadata: Object = {"name": workload.name, "namespace": NAMESPACE, "labels": {WORKLOAD_LABEL: workload.name}}
    if workload.daemon_set:
        # A DaemonSet controller would set this. The number of expected pods has no other source.
        status = {"desiredNumberScheduled": len(workload.nodes)}
        body = {"metadata": metadata, "spec": {"selector": selector}, "status": status}
        daemon_set = cluster.store.create("daemonsets", body)["metadata"]
        return _reference("DaemonSet", workload.name, daemon_set["uid"])
    spec = {"replicas": len(workload.nodes), "selector": selector}
    deployment = cluster.store.create("deployments", {"metadata": metadata, "spec": spec})["metadata"]
    owned = {**metadata, "name": f"{workload.name}-1"}
    owned["ownerReferences"] = [_reference("Deployment", deployment["name"], deployment["uid"])]
    replica_set = cluster.store.create("replicasets", {"metadata": owned, "spec": spec})["metadata"]
    if workload.max_unavailable is not None:
        budget = {"maxUnavailable": workload.max_unavailable, "selector": selector}
        cluster.create("poddisruptionbudgets", {"metadata": metadata, "spec": budget})
    return _reference("ReplicaSet", replica_set["name"], replica_set["uid"])


def _reference(kind: str, name: str, uid: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
