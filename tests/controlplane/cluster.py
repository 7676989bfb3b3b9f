"""Changes that tests make to a cluster: nodes with taints, pods that run, budgets.

No kubelet and, unless started, no controller is there: the helpers write what those would write, status included.
"""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.client import ApiError, Client, Json
from controlplane.comparisons import in_annotation
from controlplane.waiting import wait_until

IMAGE = "registry.k8s.io/pause:3.10"  # named, never pulled: nothing runs a container here
SCHEDULER = "default-scheduler"
NOBODY = "nobody"  # schedules pods that a test binds itself: on a cluster of others a scheduler would be faster
HEARD_SECONDS = 60


def now() -> str:
    """The time as Kubernetes writes it: whole seconds, UTC."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, *, holds: bool | None = True) -> Json:
    return {
        "type": kind,
        "status": "Unknown" if holds is None else str(holds),
        "reason": "Test",
        "lastTransitionTime": now(),
    }


def is_evicted(pod: Json | None) -> bool:
    """True if the pod is gone or terminating: without a kubelet a pod with a grace period stays Terminating."""
    return pod is None or "deletionTimestamp" in pod["metadata"]


class Cluster(Client):
    """A client with the verbs that tests share."""

    native_comparisons = True
    """True if spec.tolerations may hold Gt and Lt. Otherwise created objects have them in the annotation."""

    def create(
        self, resource: str, body: Json, namespace: str = "", *, name: str = "", subresource: str = "", **query: Any
    ) -> Json:
        """Create an object as the client does, with comparisons in the field that this cluster accepts."""
        fitting = body if self.native_comparisons or subresource else in_annotation(resource, body)
        return super().create(resource, fitting, namespace, name=name, subresource=subresource, **query)

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> Json:
        """Create a namespace with its default service account, without which admission refuses every pod."""
        body = {"metadata": {"name": name, "labels": dict(labels or {})}}
        namespace = self.create("namespaces", body)
        try:
            self.create("serviceaccounts", {"metadata": {"name": "default"}}, name)
        except ApiError as error:
            if error.status != 409:  # a controller manager was faster
                raise
        return namespace

    def remove_namespace(self, name: str) -> None:
        """Force its pods out and delete it; without its controller it stays Terminating, empty of pods.

        Pods are deleted after their controllers, and before the namespace, in which no pod can be evicted any more.
        Their budgets stay: an operator watches them apart, and would evict a pod whose end it has not seen yet.
        """
        for resource in ("deployments", "replicasets", "statefulsets", "daemonsets", "batch/v1/jobs", "pods"):
            self.delete_all(resource, name)
        self.delete("namespaces", name)

    def create_node(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Json] = (),
        *,
        ready: bool | None = True,
        annotations: Mapping[str, str] | None = None,
    ) -> Json:
        """Create a node that carries exactly these taints.

        Admission adds not-ready:NoSchedule to a new node; a Ready node loses it, as node-lifecycle would see to.
        `ready` is None for a node whose kubelet is silent: then node-lifecycle leaves unreachable where it is.
        """
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **(labels or {})}
        metadata = {"name": name, "labels": labels, "annotations": dict(annotations or {})}
        self.create("nodes", {"metadata": metadata, "spec": {"taints": list(taints)}})
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "250"}
        status = {"conditions": [condition("Ready", holds=ready)], "capacity": capacity, "allocatable": capacity}
        node = self.patch("nodes", name, {"status": status}, subresource="status", kind="strategic")
        return self.set_taints(name, taints) if ready else node

    def set_taints(self, node: str, taints: Sequence[Json]) -> Json:
        """Replace spec.taints, as `kubectl taint` does: without timeAdded unless given."""
        return self.patch("nodes", node, {"spec": {"taints": list(taints)}})

    def create_pod(
        self,
        name: str,
        namespace: str = "default",
        node: str = "",
        *,
        tolerations: Sequence[Json] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        owner: Json | None = None,
        phase: str = "Running",
        ready: bool = True,
        grace_seconds: int = 1,
        spec: Json | None = None,
    ) -> Json:
        """Create a pod, on a node if one is given, with the status a kubelet would report. `spec` overrides fields.

        `owner` is an ownerReference without `controller`, such as {"apiVersion", "kind", "name", "uid"}.
        Without a node it waits to be bound, and no scheduler touches it unless `spec` names one.
        With grace 0 an eviction removes the pod at once; otherwise it stays Terminating.
        """
        metadata: Json = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
        if owner:
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        body: Json = {
            "containers": [{"name": "main", "image": IMAGE}],
            "terminationGracePeriodSeconds": grace_seconds,
            "tolerations": list(tolerations),
            "automountServiceAccountToken": False,
            **({"nodeName": node} if node else {"schedulerName": NOBODY}),
            **(spec or {}),
        }
        pod = self.create("pods", {"metadata": metadata, "spec": body}, namespace)
        return self.report_phase(name, namespace, phase, ready=ready) if node else pod

    def report_phase(
        self, name: str, namespace: str, phase: str, *, ready: bool = True, containers: Sequence[Json] = ()
    ) -> Json:
        """Write the status of a bound pod, as its kubelet would: of these containers, too."""
        runs = phase == "Running"
        conditions = [condition("Ready", holds=runs and ready), condition("ContainersReady", holds=runs and ready)]
        status: Json = {"phase": phase, "startTime": now(), "conditions": [condition("PodScheduled"), *conditions]}
        if containers and runs:
            state = {"ready": ready, "started": True, "restartCount": 0, "imageID": ""}
            run = state | {"state": {"running": {"startedAt": now()}}}
            status["containerStatuses"] = [{"name": one["name"], "image": one["image"], **run} for one in containers]
        return self.patch("pods", name, {"status": status}, namespace, subresource="status", kind="strategic")

    def annotate(self, resource: str, name: str, annotations: Mapping[str, str | None], namespace: str = "") -> Json:
        """Set annotations; None removes one."""
        return self.patch(resource, name, {"metadata": {"annotations": dict(annotations)}}, namespace)

    def evict(self, name: str, namespace: str) -> Json:
        """Ask for an eviction as an administrator would. Raises ApiError, 429 when a budget forbids it."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        return self.create("pods", body, namespace, name=name, subresource="eviction")

    def create_pdb(
        self, name: str, namespace: str, selector: Mapping[str, str], *, disruptions_allowed: int = 0
    ) -> Json:
        """Create a PodDisruptionBudget with the status that the disruption controller would compute."""
        spec = {"minAvailable": 1, "selector": {"matchLabels": dict(selector)}}
        self.create("poddisruptionbudgets", {"metadata": {"name": name}, "spec": spec}, namespace)
        return self.set_disruptions_allowed(name, namespace, disruptions_allowed)

    def set_disruptions_allowed(self, name: str, namespace: str, disruptions_allowed: int) -> Json:
        """Report the budget as observed. Without the controller evictions use it up."""
        generation = self.get("poddisruptionbudgets", name, namespace)["metadata"]["generation"]
        pods = 1 + disruptions_allowed
        counts = {"currentHealthy": pods, "desiredHealthy": 1, "expectedPods": pods}
        status = {"observedGeneration": generation, "disruptionsAllowed": disruptions_allowed, **counts}
        return self.patch("poddisruptionbudgets", name, {"status": status}, namespace, subresource="status")

    def wait_evicted(self, name: str, namespace: str, timeout_seconds: float = 60) -> None:
        """Wait until the pod is gone or Terminating. Raises TimeoutError."""
        what = f"the eviction of {namespace}/{name}"
        wait_until(lambda: is_evicted(self.find("pods", name, namespace)), timeout_seconds, what)

    def wait_allowed(self, verb: str, group: str, resource: str, namespace: str = "", name: str = "") -> None:
        """Wait until the server allows this client a request: it observes roles and bindings a moment later."""
        attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name}
        body = {"spec": {"resourceAttributes": attributes}}
        is_allowed = lambda: self.create("selfsubjectaccessreviews", body)["status"]["allowed"]  # noqa: E731
        wait_until(is_allowed, HEARD_SECONDS, f"the right to {verb} {resource}")

    def refusal(self, method: str, path: str, body: Json | None = None) -> str:
        """Send a request as a dry run, and return the server's refusal; empty if it would accept it."""
        try:
            self.request(method, path, body, {"dryRun": "All"})
        except ApiError as error:
            return str(error)
        return ""
