"""Box: a cluster, the operator as a process, and the command line for one story of the black box.

A story creates its objects in namespaces of its own, on nodes that only its policies select, and judges what the API
server and its audit log show. Moments are of the monotonic clock.
"""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from controlplane import ControlPlane, Json, wait_until
from controlplane.cluster import IMAGE
from controlplane.eviction_denial import DENIED_LABEL
from controlplane.operator_process import BYTECODE, EXECUTABLE
from e2e.pod_watch import RUN_LABEL
from e2e.stories import SLACK_SECONDS, PodRef, Scene, accepted, calls, conditions, policy

FINE, ACT = 0, 10
"""Exit codes of `status`."""
STAYS, LEAVES = 0, 10
"""Exit codes of `explain`."""
THREADS = 8
COMMAND_SECONDS = 60
NO_LIMIT: Json = {
    "evictionsPerSecond": 10_000,
    "burst": 10_000,
    "perWorkload": {"maxUnavailable": "100%"},
    "guard": {"maxPercent": 100, "settleSeconds": 0},
}
"""Limits of a policy, all switched off. Stories have at most two bad nodes, which makes no zone unhealthy."""


def at_once(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Make these calls in some threads; returns what they return, in their order."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda call: call(), calls))


@dataclass
class Box(Scene):
    """The scene of one story: `policy` is the name of its first policy, and of its namespace."""

    control_plane: ControlPlane = field(kw_only=True)
    namespaces: list[str] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)

    def enforce(self, name: str = "", *, limits: Json = NO_LIMIT, **spec: Any) -> str:
        """Create a policy for the nodes of this story, without limits unless given, and wait until it is accepted."""
        name = f"{self.policy}-{name}" if name else self.policy
        self.cluster.create("taintevictionpolicies", policy(name, limits=limits, **spec))
        self.policies.append(name)
        self.wait_accepted(name)
        return name

    def edit(self, name: str = "", **spec: Any) -> None:
        """Merge this into the spec of a policy, and wait until the operator has accepted it."""
        name = name or self.policy
        self.cluster.patch("taintevictionpolicies", name, {"spec": spec})
        self.wait_accepted(name)

    def wait_accepted(self, name: str) -> None:
        """Wait until the newest version of a policy is in force."""

        def is_accepted() -> bool:
            generation = self.cluster.get("taintevictionpolicies", name)["metadata"]["generation"]
            found = conditions(self.cluster, name).get("Accepted", {})
            return (found.get("status"), found.get("observedGeneration")) == ("True", generation)

        self.wait(is_accepted, 30, f"{name} to be accepted")

    def wait_condition(self, kind: str, status: str, seconds: float = 30, name: str = "") -> Json:
        """Wait until a condition of a policy has this status; returns it."""

        def found() -> Json | None:
            condition = conditions(self.cluster, name or self.policy).get(kind, {})
            return condition if condition.get("status") == status else None

        return self.wait(found, seconds, f"{kind} to be {status}") or {}

    def add_namespaces(self, number: int, labels: Json | None = None) -> list[str]:
        """Create more namespaces of this story."""
        names = [f"{self.namespace}-{len(self.namespaces) + index}" for index in range(number)]
        self.namespaces += names
        at_once([lambda name=name: self.cluster.create_namespace(name, labels) for name in names])
        return names

    def crowd(
        self, namespaces: Sequence[str], number: int, node: str, *, annotations: Json | None = None, prefix: str = "pod"
    ) -> list[PodRef]:
        """Create `number` pods in each namespace, bound to a node. An eviction removes them at once."""

        def create(namespace: str, name: str) -> PodRef:
            metadata = {"name": name, "labels": {RUN_LABEL: self.run}, "annotations": annotations or {}}
            containers = [{"name": "main", "image": IMAGE}]
            spec = {"nodeName": node, "containers": containers, "terminationGracePeriodSeconds": 0}
            pod = self.cluster.create("pods", {"metadata": metadata, "spec": spec}, namespace)
            return PodRef(f"{namespace}/{name}", pod["metadata"]["uid"])

        named = [(namespace, f"{prefix}-{index}") for index in range(number) for namespace in namespaces]
        return at_once([lambda given=given: create(*given) for given in named])

    def deny(self, *namespaces: str) -> None:
        """Have the evictions of these namespaces refused from now on; needs `denial`."""
        self._label(namespaces, "true")

    def allow(self, *namespaces: str) -> None:
        """Have them accepted again."""
        self._label(namespaces, None)

    def _label(self, namespaces: Sequence[str], value: str | None) -> None:
        body = {"metadata": {"labels": {DENIED_LABEL: value}}}
        at_once([lambda name=name: self.cluster.patch("namespaces", name, body) for name in namespaces])

    def leaves_by(self, leader_since: float, pod: PodRef, since: float, seconds: float) -> None:
        """Call `leaves` with slack for the time in which no operator led, since earlier due pods come first."""
        self.leaves(pod, since, seconds, slack=SLACK_SECONDS + max(0.0, leader_since - since - seconds))

    def last_gone(self, pods: Sequence[PodRef], since: float, seconds: float) -> float:
        """Wait until the last of these pods is evicted; returns how long after a moment that was.

        The seconds that the machine lost meanwhile do not count. Raises TimeoutError, with how many are left.
        """

        try:
            wait_until(lambda: not self.left(pods), seconds, "pods to leave", self.watch.lost)
        except TimeoutError:
            limits = self.status().get("limits")
            raise TimeoutError(f"{self.left(pods)} of {len(pods)} pods stay; the policy says {limits}") from None
        last = max(self.watch.evicted_at(pod.uid) or since for pod in pods)
        return last - since - self.watch.lost(since, last)

    def left(self, pods: Sequence[PodRef]) -> int:
        """Number of these pods that are not evicted."""
        self.watch.check()
        return sum(self.watch.evicted_at(pod.uid) is None for pod in pods)

    def accepted(self, namespace: str = "") -> Counter[str]:
        """Number of the operator's evictions and deletions that the server accepted, by pod.

        It logs a call when it has answered it, and its watch may show before that the pod leaves: that is waited for.
        """
        namespace = namespace or self.namespace
        is_logged = lambda: self.watch.evicted(namespace) <= logged(self.control_plane, namespace)  # noqa: E731
        self.wait(is_logged, 30, f"the calls for the pods of {namespace} to be logged")
        return accepted(self.control_plane, namespace)

    def received(self, since: float) -> list[float]:
        """Times (since 1970) after `since` at which the server received the operator's calls for this story's pods."""
        stamps = (entry["requestReceivedTimestamp"] for entry in calls(self.control_plane, self.namespace))
        return sorted(at for stamp in stamps if (at := datetime.fromisoformat(stamp).timestamp()) > since)

    def run_command(self, *args: str) -> "subprocess.CompletedProcess[str]":
        """Run `taintwarden` as an administrator."""
        command = [str(EXECUTABLE), *args, f"--kubeconfig={self.control_plane.admin_kubeconfig}"]
        environment = {**os.environ, **BYTECODE}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False, env=environment
        )

    def explains(self, pod: PodRef) -> int:
        """The exit code of `explain pod`."""
        return self.run_command("explain", "pod", self._full(pod)).returncode

    def explanation(self, pod: PodRef) -> Json:
        """Output of `explain pod`."""
        return json.loads(self.run_command("explain", "pod", self._full(pod), "-o", "json").stdout)

    def _full(self, pod: PodRef) -> str:
        return pod.name if "/" in pod.name else f"{self.namespace}/{pod.name}"

    def status_code(self) -> int:
        """The exit code of `status` for the first policy."""
        return self.run_command("status", self.policy).returncode

    def delay(self, limit: str) -> str:
        """Message of a limit in the status of the first policy; empty if it delays no pod."""
        limits = self.status().get("limits", ())
        return next((one.get("message", "") for one in limits if one["limit"] == limit), "")

    def clear(self) -> None:
        """Remove everything of this story; policies first, so that nothing is evicted by the removal."""
        for name in self.policies:
            if self.cluster.find("taintevictionpolicies", name):
                self.cluster.delete("taintevictionpolicies", name)
        self.allow(self.namespace, *self.namespaces)
        for name in self.namespaces:
            self.cluster.delete_all("pods", name)
            self.cluster.delete("namespaces", name)
        super().clear()


def logged(control_plane: ControlPlane, namespace: str) -> Counter[str]:
    """Number of deletions and evictions by any client that the server accepted, by pod."""
    here = [entry for entry in control_plane.audit() if entry["objectRef"].get("namespace") == namespace]
    ends = [entry for entry in here if entry["verb"] == "delete" or "subresource" in entry["objectRef"]]
    return Counter(entry["objectRef"].get("name") for entry in ends if entry["responseStatus"]["code"] < 300)


NewBox = Callable[[], AbstractContextManager[Box]]
