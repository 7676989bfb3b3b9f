"""The operator as it is installed: its pods, its Lease, and ways to disturb them."""

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane import OPERATOR_NAMESPACE, ApiError, Cluster, Json, wait_until
from kind.nodes import kill_container, on_node
from kind.scene import is_ready

log = logging.getLogger(__name__)
SECONDS = 120
NAME = "taintwarden"
WEBHOOK = "taintwarden-webhook"
EXTENDER = "taintwarden-scheduler-extender"
PUBLISHER = "taintwarden-publisher"
KubeCtl = Callable[..., str]
"""Runs kubectl with these words; returns what it prints."""
KEPT = "taintwarden-e2e/kept"
"""A finalizer of a pod whose end is looked at."""
READ = """\
import ssl, urllib.request
unverified = ssl.create_default_context()
unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
request = urllib.request.Request("https://localhost:{port}/metrics", headers={{"Authorization": "Bearer {token}"}})
print(urllib.request.urlopen(request, timeout=10, context=unverified).read().decode())
"""


@dataclass(frozen=True)
class Ended:
    """A container that is not there any more. Seconds are from its deletion until its kubelet reported the end."""

    code: int
    seconds: float
    log: list[str]


class Installation:
    """One Deployment in the namespace of the operator: its own, or that of the webhook, an extender or a publisher.

    `token` is of an account that may get protected metrics.
    """

    def __init__(self, cluster: Cluster, name: str = NAME, token: str = ""):
        self.cluster = cluster
        self.name = name
        self._token = token

    @property
    def deployment(self) -> Json:
        return self.cluster.get("deployments", self.name, OPERATOR_NAMESPACE)

    @property
    def image(self) -> str:
        return self.deployment["spec"]["template"]["spec"]["containers"][0]["image"]

    def pods(self) -> list[Json]:
        """The replicas that are to stay."""
        return [pod for pod in self.all_pods() if "deletionTimestamp" not in pod["metadata"]]

    def all_pods(self) -> list[Json]:
        """All pods, including terminating ones, which answer for a while."""
        return self.cluster.items("pods", OPERATOR_NAMESPACE, labelSelector=f"app.kubernetes.io/name={self.name}")

    def holder(self) -> str:
        """The identity in the Lease; empty without one."""
        lease = self.cluster.find("leases", NAME, OPERATOR_NAMESPACE)
        return (lease or {}).get("spec", {}).get("holderIdentity") or ""

    def leader(self) -> Json:
        """The pod that holds the Lease."""

        def leading() -> Json | None:
            holder = self.holder().partition("_")[0]
            return next((pod for pod in self.pods() if pod["metadata"]["name"] == holder), None)

        return wait_until(leading, SECONDS, "a leader") or {}

    def leader_among(self, nodes: Sequence[str]) -> Json:
        """The leader, once it is on one of these nodes. One on another node makes way: that is the API server's own."""

        def found() -> Json | None:
            leader = self.leader()
            if leader["spec"]["nodeName"] in nodes:
                return leader
            self.cluster.delete("pods", leader["metadata"]["name"], OPERATOR_NAMESPACE)
            self.wait_complete()
            return None

        return wait_until(found, SECONDS, "a leader on a worker") or {}

    def scale(self, replicas: int) -> None:
        self.cluster.patch("deployments", self.name, {"spec": {"replicas": replicas}}, OPERATOR_NAMESPACE)
        self.wait_complete(replicas)
        wait_until(lambda: len(self.all_pods()) == replicas, SECONDS, "the others to be gone")

    def wait_complete(self, replicas: int | None = None) -> None:
        """Wait until all replicas are of the newest template and Ready, and no others are there."""

        def complete() -> bool:
            deployment = self.deployment
            wanted = deployment["spec"]["replicas"] if replicas is None else replicas
            status = deployment.get("status", {})
            is_observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
            counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
            return is_observed and counts == [wanted] * 3 and len(self.pods()) == wanted

        wait_until(complete, SECONDS, "all replicas of the operator")

    def wait_budget(self) -> None:
        """Wait until its controller has seen that a replica may go: it may still count one that was replaced."""

        def allows() -> bool:
            status: Json = self.cluster.get("poddisruptionbudgets", self.name, OPERATOR_NAMESPACE).get("status", {})
            return bool(status.get("disruptionsAllowed"))

        wait_until(allows, SECONDS, "the budget to allow a disruption")

    def replace_restarted(self) -> None:
        """Make new pods of those whose container was started again: for them kubelets wait ever longer."""
        for pod in self.pods():
            if self.restarts(pod):
                self.cluster.delete("pods", pod["metadata"]["name"], OPERATOR_NAMESPACE)
        self.wait_complete()
        self.leader()

    def crash(self, pod: Json) -> None:
        """End the container of a replica with SIGKILL."""
        kill_container(pod["spec"]["nodeName"], container_id(pod))

    def execute(self, pod: Json, code: str) -> str:
        """Run Python code in the container of a replica; what it prints."""
        return on_node(pod["spec"]["nodeName"], "crictl", "exec", container_id(pod), "python3", "-c", code)

    def restarts(self, pod: Json) -> int:
        now = self.cluster.get("pods", pod["metadata"]["name"], OPERATOR_NAMESPACE)
        return now["status"]["containerStatuses"][0]["restartCount"]

    def wait_restarted(self, pod: Json) -> None:
        """Wait until the container of this pod was started again, and is Ready."""
        name, before = pod["metadata"]["name"], pod["status"]["containerStatuses"][0]["restartCount"]

        def restarted() -> bool:
            now = self.cluster.get("pods", name, OPERATOR_NAMESPACE)
            return now["status"]["containerStatuses"][0]["restartCount"] > before and is_ready(now)

        wait_until(restarted, SECONDS, f"{name} to be ready again")

    def proxied(self, pod: Json, path: str) -> Any:
        """Answer of a replica on its port for probes and metrics, through the API server."""
        name = f"{pod['metadata']['name']}:8080"

        def answer() -> Any:
            try:
                return self.cluster.request("GET", f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{name}/proxy{path}")
            except ApiError as error:
                if error.status != 503:  # its container starts again, which its kubelet has not reported yet
                    raise
                return None

        return wait_until(answer, SECONDS, f"{name} to answer")

    def metrics(self, pod: Json) -> str:
        """Metrics of a replica, as a client with the right gets them.

        Protected ones are read inside its container: the API server passes no token on to a pod.
        """
        ports = {port["name"]: port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]}
        if "metrics" not in ports:
            return self.proxied(pod, "/metrics")
        name, code = pod["metadata"]["name"], READ.format(port=ports["metrics"], token=self._token)

        def answer() -> str | None:
            try:
                return self.execute(self.cluster.get("pods", name, OPERATOR_NAMESPACE), code)
            except RuntimeError as error:  # its container starts again
                log.info("%s", error)
                return None

        return wait_until(answer, SECONDS, f"metrics of {name}") or ""

    def metric(self, pod: Json, name: str) -> float:
        found = re.search(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", self.metrics(pod), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def log(self, pod: Json) -> str:
        return self.cluster.request("GET", log_path(pod))

    def stop(self, pod: Json) -> Ended:
        """Delete a replica, as a drain or an upgrade does; how its container ended, and the lines of its log."""
        name = pod["metadata"]["name"]
        lines = self.cluster.lines(log_path(pod), {"follow": "true"})
        read = [next(lines)]  # from now on nothing of the log can be missed
        self.cluster.patch("pods", name, {"metadata": {"finalizers": [KEPT]}}, OPERATOR_NAMESPACE)
        since = time.monotonic()
        self.cluster.delete("pods", name, OPERATOR_NAMESPACE)
        read += lines

        def terminated() -> Json | None:
            [status] = self.cluster.get("pods", name, OPERATOR_NAMESPACE)["status"]["containerStatuses"]
            return status["state"].get("terminated")

        try:
            state = wait_until(terminated, SECONDS, f"{name} to end") or {}
            took = time.monotonic() - since
            log.info("%s ended after %.1f s", name, took)
            return Ended(state["exitCode"], took, read)
        finally:
            self.cluster.patch("pods", name, {"metadata": {"finalizers": None}}, OPERATOR_NAMESPACE)

    def stop_starting(self) -> float:
        """Delete a pod of the Deployment's template as soon as its container runs; how many seconds it takes to go."""
        template = self.deployment["spec"]["template"]
        body = {"metadata": {"name": "brief"}, "spec": {**template["spec"], "restartPolicy": "Never"}}
        self.cluster.create("pods", body, OPERATOR_NAMESPACE)

        def status() -> Json:
            pod = self.cluster.find("pods", "brief", OPERATOR_NAMESPACE) or {}
            return pod.get("status", {})

        wait_until(lambda: status().get("containerStatuses", [{}])[0].get("started"), 60, "its container")
        since = time.monotonic()
        self.cluster.delete("pods", "brief", OPERATOR_NAMESPACE)
        wait_until(lambda: not status(), SECONDS, "it to be gone")
        return time.monotonic() - since

    def ready(self) -> list[Json]:
        return [pod for pod in self.pods() if is_ready(pod)]


def log_path(pod: Json) -> str:
    return f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{pod['metadata']['name']}/log"


def container_id(pod: Json) -> str:
    [status] = pod["status"]["containerStatuses"]
    return status["containerID"].partition("://")[2]
