"""The shipped webhooks for a webhook process that runs outside the cluster.

Only the way is another one: the Service is an alias of this machine, and the port is that of the process. Names,
certificates, rules and rights are those that are shipped.
"""

import copy
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controlplane import Cluster, Target, Webhook
from controlplane.api_server import free_port
from controlplane.binaries import ROOT, binary
from controlplane.manifests import documents
from controlplane.operator_process import EXECUTABLE
from controlplane.waiting import wait_until

Json = dict[str, Any]
NAMESPACE, NAME = "taintwarden-system", "taintwarden-webhook"
SERVICES, SECRETS = "services", "secrets"
CONFIGURATIONS = {
    kind: f"admissionregistration.k8s.io/v1/{kind}webhookconfigurations" for kind in ("validating", "mutating")
}
TRUSTED_SECONDS = 60
HEARD_SECONDS = 60
"""Seconds until the API server has observed other webhooks."""
SHIPPED = {
    document["kind"]: document for path, document in documents(ROOT / "deploy" / "base") if path.stem == "webhooks"
}


def remove_configurations(cluster: Cluster) -> None:
    """Remove the configurations, so that the API server calls no webhook."""
    for resource in CONFIGURATIONS.values():
        if cluster.find(resource, "taintwarden"):
            cluster.delete(resource, "taintwarden")


def remove(cluster: Cluster) -> None:
    """Remove all objects of the webhooks, which would affect tests without them."""
    remove_configurations(cluster)
    for resource in (SERVICES, SECRETS):
        if cluster.find(resource, NAME, NAMESPACE):
            cluster.delete(resource, NAME, NAMESPACE)


def install(cluster: Cluster, port: int) -> None:
    """Apply deploy/base/webhooks.yaml, with a Service that leads to this port of this machine."""
    alias = {**SHIPPED["Service"], "spec": {"type": "ExternalName", "externalName": "localhost"}}
    for document in (alias, SHIPPED["Secret"]):
        cluster.apply(document)
    lead_to(cluster, port)


def lead_to(cluster: Cluster, port: int) -> None:
    """Have the API server call another port, as if the Service had other pods. Fields of the operator stay."""
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        document = copy.deepcopy(SHIPPED[kind])
        for webhook in document["webhooks"]:
            webhook["clientConfig"]["service"]["port"] = port
        cluster.apply(document)


def webhooks(cluster: Cluster) -> list[Json]:
    return [
        webhook for resource in CONFIGURATIONS.values() for webhook in cluster.get(resource, "taintwarden")["webhooks"]
    ]


def distrust(cluster: Cluster) -> None:
    """Take the caBundle from a webhook."""
    taken = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    cluster.patch(CONFIGURATIONS["mutating"], "taintwarden", taken, kind="json")


def trust(target: Target, *more: str) -> str:
    """Run what the Job of the installation runs, with its rights. Returns what it says."""
    where = [f"--kubeconfig={target.trust_kubeconfig()}", f"--namespace={NAMESPACE}", f"--wait={TRUSTED_SECONDS}"]
    command = [str(EXECUTABLE), "webhook-trust", *where, *more]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=2 * TRUSTED_SECONDS).stdout


def reviews(webhook: Webhook, /, **labels: str) -> float:
    """Number of reviews that it has answered."""
    return webhook.metric("taintwarden_admission_requests_total", **labels)


def wait_asked(cluster: Cluster, webhook: Webhook) -> None:
    """Until the API server asks this one, seen by a rehearsed policy that it has to look at."""
    before = reviews(webhook)
    probe = {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": {"name": "probe"},
        "spec": {"taints": [{"key": "probe"}]},
    }

    def is_asked() -> bool:
        cluster.create("taintevictionpolicies", probe, dryRun="All")
        return reviews(webhook) > before

    wait_until(is_asked, HEARD_SECONDS, "the webhooks to be asked")


def inject(cluster: Cluster, namespace: str) -> None:
    """Have the pods of a namespace completed, and wait until they are: the API server sees a label a moment later."""
    cluster.patch("namespaces", namespace, {"metadata": {"labels": {"taintwarden.io/inject": "true"}}})
    wait_completed(cluster, namespace)


def wait_completed(cluster: Cluster, namespace: str) -> None:
    """Wait until a rehearsed pod of this namespace is completed."""
    extended = json.dumps([{"key": "probe", "operator": "Gt", "value": "1"}])
    metadata = {"name": "probe", "annotations": {"taintwarden.io/tolerations": extended}}
    spec = {"containers": [{"name": "main", "image": "none"}], "automountServiceAccountToken": False}

    def is_completed() -> bool:
        pod = cluster.create("pods", {"metadata": metadata, "spec": spec}, namespace, dryRun="All")
        return "probe" in {one.get("key") for one in pod["spec"].get("tolerations", [])}

    wait_until(is_completed, HEARD_SECONDS, f"pods of {namespace} to be completed")


@contextmanager
def opened(target: Target, folder: Path) -> Iterator[Webhook]:
    """One webhook that the API server calls, with the shipped rights, and nothing of it afterwards."""
    port = free_port()
    install(target.client, port)
    try:
        with Webhook(target.webhook_kubeconfig(), folder, port) as webhook:
            trust(target)
            wait_asked(target.client, webhook)
            yield webhook
    finally:
        remove(target.client)


class Kubectl:
    """kubectl as the administrator: what a person types, and reads."""

    def __init__(self, kubeconfig: Path):
        self._command = [str(binary("kubectl")), f"--kubeconfig={kubeconfig}"]

    def apply(self, *objects: Json) -> tuple[int, str]:
        """`kubectl apply -f -`: exit code, and what it said on both streams."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        command = [*self._command, "apply", "-f", "-"]
        done = subprocess.run(
            command, input=json.dumps(listed), capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stdout + done.stderr
