"""Stories about placement: a namespace whose pods the webhook completes, and where these pods go."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controlplane import Json, Webhook, WorkingCluster, webhook_setup
from controlplane.api_server import free_port
from controlplane.cluster import SCHEDULER, condition
from e2e.limit_scenes import SCENE_LABEL, LimitScene
from e2e.pod_watch import RUN_LABEL
from e2e.stories import POLICY_LABEL, RunningStories, Story, annotation, running_stories
from taintwarden_placement.node_labels.names import value_label

DOOR_SECONDS = 60.0  # certificates are made and trusted while other stories begin
PLACED_SECONDS = 60.0
MIRRORED_SECONDS = 40.0


@dataclass
class PlacementScene(LimitScene):
    """A scene on the working cluster. Pods want the story's nodes only, by a node selector."""

    # -- before

    def wait_completed(self, *tolerations: Json) -> None:
        """Have the namespace's pods completed by the webhook, and wait until one with these extended ones would be."""
        label = {"taintwarden.io/inject": "true"}
        self.cluster.patch("namespaces", self.namespace, {"metadata": {"labels": label}})
        keys = {toleration["key"] for toleration in tolerations}

        def completed() -> bool:
            return keys <= {native.get("key") for native in self.rehearsed(*tolerations).get("tolerations", [])}

        self.wait(completed, DOOR_SECONDS, "pods to be completed by the webhook")

    def opt_in(self, *tolerations: Json) -> None:
        """Call `wait_completed`, and wait until such a pod would get node affinity."""
        self.wait_completed(*tolerations)
        self.wait(lambda: "affinity" in self.rehearsed(*tolerations), DOOR_SECONDS, "pods to be placed")

    def rehearsed(self, *tolerations: Json, spec: Json | None = None) -> Json:
        """The spec with which a pod with these extended tolerations would be stored."""
        metadata = {"name": "rehearsed", "annotations": annotation(*tolerations)}
        body = {
            "containers": [{"name": "main", "image": "none"}],
            "automountServiceAccountToken": False,
            **(spec or {}),
        }
        pod = self.cluster.create("pods", {"metadata": metadata, "spec": body}, self.namespace, dryRun="All")
        return pod["spec"]

    def place_node(self, name: str, *taints: Json, labels: Mapping[str, str] | None = None) -> str:
        """Create a node of this story; returns its full name."""
        return self.node(*taints, name=name, labels={SCENE_LABEL: self.namespace, **(labels or {})})

    def add_node(self, name: str, *taints: Json, **more: Any) -> str:
        """Add a node as kubelets do: it registers with its taints and is Ready later, when it is labelled already."""
        full = f"{self.namespace}-{name}"
        labels = {POLICY_LABEL: self.policy, SCENE_LABEL: self.namespace}
        self.cluster.create_node(full, labels, taints, ready=False)
        for one in taints:
            self.wait_mirrored({full: one["value"]}, one["key"])
        status = {"conditions": [condition("Ready")], **more}
        self.cluster.patch("nodes", full, {"status": status}, subresource="status", kind="strategic")
        self.cluster.set_taints(full, taints)
        return full

    def place(self, name: str, *tolerations: Json, spec: Json | None = None, **more: Any) -> str:
        """Create a pod for the scheduler with these extended tolerations, if any; returns its name."""
        labels = {RUN_LABEL: self.run, "app": name}
        given = {"annotations": annotation(*tolerations) if tolerations else {}, "labels": labels, **more}
        selected = {"nodeSelector": {SCENE_LABEL: self.namespace}, "schedulerName": SCHEDULER}
        self.cluster.create_pod(name, self.namespace, spec={**selected, **(spec or {})}, **given)
        return name

    def wait_mirrored(self, nodes: Mapping[str, str | None], key: str = "sla") -> None:
        """Wait until nodes carry these values as labels; None: the label is not there."""
        self.wait_labels(nodes, value_label(key))

    def wait_labels(self, nodes: Mapping[str, str | None], label: str | None) -> None:
        """Wait until nodes have a label with these values; None: it is not there."""

        def found() -> dict[str, str | None]:
            return {node: self.cluster.get("nodes", node)["metadata"]["labels"].get(label) for node in nodes}

        self.wait(lambda: found() == nodes, MIRRORED_SECONDS, f"the labels of {nodes}")

    # -- where pods are

    def placed(self, app: str) -> list[str]:
        """The nodes of an app's pods that are not terminating, in order; pods without a node are left out."""
        pods = self.cluster.items("pods", self.namespace, labelSelector=f"app={app}")
        alive = [pod["spec"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return sorted(spec["nodeName"] for spec in alive if spec.get("nodeName"))

    def wait_placed(self, app: str, *nodes: str) -> None:
        """Wait until an app's pods are on these nodes, each as often as it is named."""
        what = f"{app} to be on {nodes}"
        try:
            self.wait(lambda: self.placed(app) == sorted(nodes), PLACED_SECONDS, what)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it is on {self.placed(app)}, pending: {self.pending(app)}") from error

    def pending(self, app: str) -> list[str]:
        """Why the scheduler does not place an app's pods, one text for each that it has tried to."""
        pods = self.cluster.items("pods", self.namespace, labelSelector=f"app={app}")
        found = [one for pod in pods for one in pod.get("status", {}).get("conditions", [])]
        # The reason stays when the pod is bound later.
        return [one["message"] for one in found if one.get("reason") == "Unschedulable" and one["status"] == "False"]

    def wait_pending(self, app: str, *why: str, pods: int = 1) -> None:
        """Wait until `pods` pods of an app find no node, and the scheduler reports one of these reasons for each.

        It may have tried before it knew of any node.
        """

        def is_reported() -> bool:
            reasons = self.pending(app)
            return len(reasons) == pods and all(any(text in reason for text in why) for reason in reasons)

        what = f"{pods} of {app} to be unschedulable for: {' or '.join(why)}"
        try:
            self.wait(is_reported, PLACED_SECONDS, what)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the scheduler says {self.pending(app)}") from error

    def ever_placed(self) -> set[str]:
        """All nodes on which the scheduler ever put a pod of this story, by its Events, which come a moment later."""
        pods = self.cluster.items("pods", self.namespace)
        here = {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

        def scheduled_nodes() -> set[str]:
            events = self.cluster.items("events", self.namespace)
            return {event["note"].rsplit(" ", 1)[1] for event in events if event["reason"] == "Scheduled"}

        self.wait(lambda: here <= scheduled_nodes(), PLACED_SECONDS, f"Events about pods on {here}")
        return scheduled_nodes()


@contextmanager
def placing(
    request: pytest.FixtureRequest,
    ground: WorkingCluster,
    folder: Path,
    stories: Sequence[Story],
    specs: Mapping[str, Json],
) -> Iterator[RunningStories]:
    """Play stories with an operator that the API server asks about pods."""
    port, on = free_port(), partial(PlacementScene, ground=ground)
    webhook_setup.install(ground.client, port)
    try:
        with Webhook(ground.webhook_kubeconfig(), folder, port):
            webhook_setup.trust(ground)
            with running_stories(request, ground, folder, stories, specs, scene=on) as running:
                yield running
    finally:
        webhook_setup.remove(ground.client)
