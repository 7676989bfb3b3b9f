"""A story's own namespace, policy and tainted nodes on the kind cluster, and what it waits for there."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from api.policy_cases import policy
from controlplane import Cluster, Json, wait_until

log = logging.getLogger(__name__)  # --log-cli-level=INFO shows how long everything took
KEY = "sla"
GOOD, BAD = "980", "900"
LIMIT = "950"
RUN_SECONDS = 60
LEAVE_SECONDS = 30
SLACK_SECONDS = 4.0  # two cores, a dozen containers
# Ends this number of seconds after SIGTERM; more than the grace is a program that ignores SIGTERM.
WAITS = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep({seconds}), sys.exit({code})))
time.sleep(1e6)
"""


def taint(value: str, effect: str = "NoExecute", key: str = KEY) -> Json:
    return {"key": key, "value": value, "effect": effect}


def above(**more: Any) -> Json:
    """A native toleration; this cluster has the feature gate for Gt."""
    return {"key": KEY, "operator": "Gt", "value": LIMIT, "effect": "NoExecute", **more}


class Scene:
    """The objects of one story. All that it creates is in its namespace, or undone by `end`."""

    def __init__(self, cluster: Cluster, name: str, image: str, workers: Sequence[str]):
        self.cluster = cluster
        self.name = name
        self.image = image
        self.workers = workers
        self._tainted: set[tuple[str, str]] = set()

    # -- what there is

    def policy(self, **spec: Any) -> None:
        """Acts on the taint everywhere, but only on this story's pods."""
        selected = {
            "taints": [{"key": KEY, "valueType": "Integer"}],
            "podSelector": {"matchLabels": {"story": self.name}},
        }
        self.cluster.create("taintevictionpolicies", policy({**selected, **spec}, self.name))

    def status(self) -> Json:
        return self.cluster.get("taintevictionpolicies", self.name).get("status", {})

    def wait_enforcing(self) -> None:
        """Wait until an operator says that the policy is in force."""

        def enforces() -> bool:
            conditions = {one["type"]: one["status"] for one in self.status().get("conditions", [])}
            return conditions.get("Enforcing") == "True"

        wait_until(enforces, LEAVE_SECONDS, f"{self.name} to be in force")

    def taint(self, node: str, value: str = BAD, *, effect: str = "NoExecute", key: str = KEY) -> float:
        """Give a node this value; the moment at which it had it."""
        self._tainted.add((node, key))
        self.cluster.set_taints(node, [*self._other_taints(node, key), taint(value, effect, key)])
        return time.monotonic()

    def untaint(self, node: str, key: str = KEY) -> None:
        self.cluster.set_taints(node, self._other_taints(node, key))

    def _other_taints(self, node: str, key: str) -> list[Json]:
        return [one for one in self.cluster.get("nodes", node)["spec"].get("taints", []) if one["key"] != key]

    def template(
        self,
        *,
        stop_seconds: float = 0,
        exit_code: int = 0,
        grace_seconds: int = 30,
        on: str = "",
        tolerations: Sequence[Json] = (),
        **spec: Any,
    ) -> Json:
        """A pod that runs a program which ends `stop_seconds` after SIGTERM."""
        container = {
            "name": "main",
            "image": self.image,
            "imagePullPolicy": "Never",
            "command": ["python3", "-c", WAITS.format(seconds=stop_seconds, code=exit_code)],
            **spec.pop("container", {}),
        }
        body = {
            "containers": [container],
            "terminationGracePeriodSeconds": grace_seconds,
            "tolerations": [*tolerations],
            "automountServiceAccountToken": False,
            **({"nodeName": on} if on else {}),
            **spec,
        }
        labels = {"story": self.name, "app": "web"}
        return {"metadata": {"labels": labels}, "spec": body}

    def pod(self, name: str, **more: Any) -> str:
        """Create a bare pod; its UID."""
        template = self.template(**more)
        template["metadata"]["name"] = name
        return self.cluster.create("pods", template, self.name)["metadata"]["uid"]

    def workload(self, resource: str, name: str, template: Json, **spec: Any) -> None:
        selector = {"selector": {"matchLabels": {"app": "web"}}} if resource != "batch/v1/jobs" else {}
        self.cluster.create(
            resource, {"metadata": {"name": name}, "spec": {**selector, "template": template, **spec}}, self.name
        )

    # -- what happens

    def pods(self) -> list[Json]:
        return self.cluster.items("pods", self.name, labelSelector="app=web")

    def running(self) -> dict[str, str]:
        """Pods that are Ready and stay, with their nodes."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.pods()
            if "deletionTimestamp" not in pod["metadata"] and is_ready(pod)
        }

    def wait_running(self, number: int = 1, *, off: str = "", seconds: float = RUN_SECONDS) -> dict[str, str]:
        """Wait until `number` pods are Ready, none of them on the node `off`."""

        def found() -> dict[str, str] | None:
            running = {name: node for name, node in self.running().items() if node != off}
            return running if len(running) >= number else None

        return (
            wait_until(found, seconds, f"{number} pods of {self.name} to be ready{f' off {off}' if off else ''}") or {}
        )

    def wait_gone(self, name: str, uid: str, since: float, seconds: float = LEAVE_SECONDS) -> float:
        """Wait until this pod is gone, not only leaving; how many seconds it took since then."""

        def gone() -> bool:
            pod = self.cluster.find("pods", name, self.name)
            return pod is None or pod["metadata"]["uid"] != uid

        wait_until(gone, seconds, f"{name} to be gone")
        took = time.monotonic() - since
        log.info("%s was gone after %.1f s", name, took)
        return took

    def end(self) -> None:
        for node, key in self._tainted:
            self.untaint(node, key)
        if self.cluster.find("taintevictionpolicies", self.name):
            self.cluster.delete("taintevictionpolicies", self.name)
        self.cluster.delete("namespaces", self.name)


def is_ready(pod: Mapping[str, Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))
