"""The real scheduler with the scheduler extender as shipped, and with extenders that fail."""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from controlplane import Cluster, ControlPlane, Extender, Json, wait_until
from controlplane.api_server import LOOPBACK, free_port
from controlplane.cluster import SCHEDULER
from controlplane.target import EXTENDER, MANIFESTS

NAMESPACE, NAME = "taintwarden-system", "taintwarden-scheduler-extender"
SHIPPED: Json = yaml.safe_load((EXTENDER / "kube-scheduler.yaml").read_text())
PLACED_SECONDS = 30.0
SERVED_SECONDS = 30.0
BEAT_SECONDS = 3.0
NODE_LABEL = "scene"
"""Nodes and pods of one test find each other by it."""


def installed(ground: ControlPlane) -> None:
    """Install the CRDs and the extender's component, without the Deployment."""
    ground.apply_crds()
    ground.apply_manifests(*MANIFESTS, EXTENDER)
    _, secret = yaml.safe_load_all((EXTENDER / "service.yaml").read_text())
    ground.client.apply(secret)


def certificate(cluster: Cluster, folder: Path) -> Path:
    """The file that a scheduler trusts the extender by."""

    def content() -> Mapping[str, str]:
        return cluster.get("secrets", NAME, NAMESPACE).get("data") or {}

    wait_until(lambda: "ca.crt" in content(), SERVED_SECONDS, "the certificate of the extender")
    path = folder / "extender.crt"
    path.write_bytes(base64.b64decode(content()["ca.crt"]))
    return path


def configuration(*extenders: Json, scheduler: str = SCHEDULER) -> Json:
    """The shipped configuration with these extenders."""
    return {**SHIPPED, "extenders": list(extenders), "profiles": [{"schedulerName": scheduler}]}


def shipped_extender(port: int, ca: Path) -> Json:
    """The extender's entry as shipped, with another URL and CA file."""
    (entry,) = SHIPPED["extenders"]
    return {**entry, "urlPrefix": f"https://{LOOPBACK}:{port}", "tlsConfig": {**entry["tlsConfig"], "caFile": str(ca)}}


@dataclass
class SchedulingScene:
    """The nodes and pods of one test, in a namespace of its own."""

    cluster: Cluster
    namespace: str
    scheduler: str = SCHEDULER

    def node(self, name: str, *taints: Json, **labels: str) -> str:
        """Create a Ready node; returns its full name."""
        full = f"{self.namespace}-{name}"
        named = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
        self.cluster.create_node(full, {NODE_LABEL: self.namespace, **named}, taints)
        return full

    def pod(
        self, name: str, *tolerations: Json, affinity: Any = None, native: Any = None, spec: Json | None = None
    ) -> str:
        """Create a pod for the scheduler: extended tolerations in the annotation, with a native Exists beside them."""
        given = {"tolerations": list(tolerations) or None, "node-affinity": affinity}
        annotations = {
            f"taintwarden.io/{key}": value if isinstance(value, str) else json.dumps(value)
            for key, value in given.items()
            if value is not None
        }
        beside = [{"key": key, "operator": "Exists"} for key in {one["key"] for one in tolerations}]
        selected = {"nodeSelector": {NODE_LABEL: self.namespace}, "schedulerName": self.scheduler}
        placed = {"tolerations": native if native is not None else beside, **selected, **(spec or {})}
        self.cluster.create_pod(name, self.namespace, annotations=annotations, spec=placed)
        return name

    def wait_placed(self, pod: str, node: str) -> None:
        """Wait until the pod is bound, and to this node."""
        try:
            self._wait(lambda: bool(self.node_of(pod)), f"{pod} to be placed")
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self.reason(pod)}") from error
        assert self.node_of(pod) == node

    def wait_both_known(self, node: str) -> None:
        """Wait until the scheduler knows this node, ``which="best"``, and so those that were created before it.

        A pod that prefers a node gets another one while there is only that.
        """
        chosen = {NODE_LABEL: self.namespace, "which": "best"}
        first = self.pod("first", {"key": "any", "operator": "Exists"}, spec={"nodeSelector": chosen})
        self.wait_placed(first, node)

    def wait_pending(self, pod: str, why: str) -> None:
        """Wait until the scheduler reports that no node suits the pod, with `why` in its reason."""
        try:
            self._wait(lambda: why in self.reason(pod), f"{pod} to be unschedulable")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it is on {self.node_of(pod)!r}: {self.reason(pod)}") from error

    def _wait(self, is_seen: Callable[[], bool], what: str) -> None:
        """Wait, while a node changes now and then, as the report of a kubelet does.

        An extender that had not yet observed a change is called once more at the next one.
        """
        beats_at = time.monotonic() + BEAT_SECONDS

        def seen() -> bool:
            nonlocal beats_at
            if time.monotonic() > beats_at:
                beats_at = time.monotonic() + BEAT_SECONDS
                for node in self.cluster.items("nodes", labelSelector=f"{NODE_LABEL}={self.namespace}")[:1]:
                    label = {"metadata": {"labels": {"beat": str(int(beats_at))}}}
                    self.cluster.patch("nodes", node["metadata"]["name"], label)
            return is_seen()

        wait_until(seen, PLACED_SECONDS, what)

    def node_of(self, pod: str) -> str:
        node: str = self.cluster.get("pods", pod, self.namespace)["spec"].get("nodeName", "")
        return node

    def reason(self, pod: str) -> str:
        """Return the scheduler's last reason, as `kubectl describe pod` shows it."""
        status = self.cluster.get("pods", pod, self.namespace).get("status", {})
        found = [one["message"] for one in status.get("conditions", []) if one.get("reason") == "Unschedulable"]
        return found[0] if found else ""


@contextmanager
def serving(ground: ControlPlane, folder: Path) -> Iterator[tuple[Extender, Json]]:
    """A running extender with the shipped rights, and its entry in a scheduler's configuration.

    The scheduler has a certificate for it, without which no reason would have a value.
    """
    port, mine = free_port(), ground.client_certificate("scheduler")
    assert ground.ca is not None
    flags = (f"--webhook-client-ca={ground.ca}", "--webhook-client-names=scheduler")
    with Extender(ground.extender_kubeconfig(), folder, port, args=flags) as extender:
        entry = shipped_extender(port, certificate(ground.client, folder))
        entry["tlsConfig"] |= {"certFile": str(mine.certificate), "keyFile": str(mine.key)}
        yield extender, entry
