"""The household of tests/e2e on the nodes of the kind cluster, whose kubelets run its pods."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from controlplane import Cluster, Json, wait_until
from controlplane.availability import Availability
from e2e.household import APPS, DRIVER, POOL, Household
from e2e.placement_table import Owner
from kind.scene import WAITS, is_ready

CANARY = "taintwarden-e2e/canary"
JUDGED_SECONDS = 120
Command = Callable[..., tuple[int, str]]
"""Runs `taintwarden` with these words as the administrator: exit code and standard output."""


@dataclass(frozen=True)
class Ground:
    """The cluster, and who left on it."""

    client: Cluster
    availability: Availability


class Home(Household):
    """Three workers of the cluster: the first two are good, the third is bad.

    Args:
        ground: where it is.
        command: removes labels in the end.
        workers: their names.
        image: one with Python, which they have.

    """

    def __init__(self, ground: Ground, command: Command, workers: Sequence[str], image: str) -> None:
        super().__init__(ground)
        self._command = command
        self._image = image
        self.first, self.second, self.bad = workers

    def _add_node(self, name: str, labels: dict[str, str], value: str) -> None:
        self.client.patch("nodes", name, {"metadata": {"labels": labels}})
        self.set_value(name, value)

    def _remove_nodes(self) -> None:
        for node in (self.first, self.second, self.bad):
            labels = {"labels": {POOL: None, DRIVER: None, CANARY: None}}
            self.client.patch("nodes", node, {"metadata": labels, "spec": {"taints": [], "unschedulable": False}})
        for key in (self.key, DRIVER):
            self._command("placement", "remove", key, "--yes", "--force")

    def template(self, app: str, bound: str = "950") -> Json:
        """As there. Its program ends at SIGTERM with a failure: a pod that ends in order may count as finished."""
        template = super().template(app, bound)
        [container] = template["spec"]["containers"]
        program = ["python3", "-c", WAITS.format(seconds=0, code=1)]
        container |= {"image": self._image, "imagePullPolicy": "Never", "command": program}
        return template

    def _claim(self, name: str, spec: Json) -> None:
        """The controller for volumes binds it."""
        self.client.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec}, self.name)

    def fill(self) -> None:
        """One workload of each kind, whose pods run on the first node. The other good one is free."""
        self.client.patch("nodes", self.second, {"spec": {"unschedulable": True}})
        self.create_all()
        self.wait_running()
        self.wait(self.is_ready, "all pods to be ready")
        self.client.patch("nodes", self.second, {"spec": {"unschedulable": False}})

    def refused(self) -> set[str]:
        """The pods that a kubelet refused, since they do not match their node.

        By its Events: the reason in the status of a pod is overwritten when its containers have ended.
        """
        events = self.client.items("events", self.name)
        return {one["regarding"]["uid"] for one in events if one["reason"] == "NodeAffinity"}

    def failures(self, before: dict[str, str]) -> list[str]:
        """Those pods of the first node that its kubelet has refused."""
        return sorted(self.refused() & {uid for uid, node in before.items() if node == self.first})

    def states(self, owner: Owner) -> list[tuple[str, str, str]]:
        """Name, phase and node of its pods."""
        pods = self.pods(APPS[owner])
        return [(one["metadata"]["name"], one["status"]["phase"], one["spec"].get("nodeName", "")) for one in pods]

    def is_ready(self) -> bool:
        """Whether all pods on the first node are."""
        pods = [pod for pod in self.client.items("pods", self.name) if pod["spec"].get("nodeName") == self.first]
        return all(map(self.runs_on_first, Owner)) and all(map(is_ready, pods))

    @contextmanager
    def judged_again(self) -> Iterator[None]:
        """Within, the kubelet of the first node starts again: wait until it has looked at all pods.

        The last of them is one that does not match the node any more, which the kubelet has to refuse: kubelets look
        at pods in the order of their creation.
        """
        self.client.patch("nodes", self.first, {"metadata": {"labels": {CANARY: self.name}}})
        template = self.template("canary")
        term = {"matchExpressions": [{"key": CANARY, "operator": "In", "values": [self.name]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        exists = {"key": self.key, "operator": "Exists"}
        spec = template["spec"] | {"affinity": {"nodeAffinity": required}, "tolerations": [exists]}
        created = {"metadata": {"generateName": "canary-", "labels": {"app": "canary"}}, "spec": spec}
        metadata = self.client.create("pods", created, self.name)["metadata"]
        name, uid = metadata["name"], metadata["uid"]

        def phase() -> str:
            return self.client.get("pods", name, self.name)["status"]["phase"]

        wait_until(lambda: phase() == "Running", JUDGED_SECONDS, f"{name} to run")
        self.client.patch("nodes", self.first, {"metadata": {"labels": {CANARY: None}}})
        yield
        wait_until(lambda: uid in self.refused(), JUDGED_SECONDS, f"the kubelet to refuse {name}")
        self.client.delete("pods", name, self.name, grace_seconds=0)


@contextmanager
def home(cluster: Cluster, command: Command, workers: Sequence[str], image: str) -> Iterator[Home]:
    """A household with running pods."""
    with Availability(cluster) as availability:
        found = Home(Ground(cluster, availability), command, workers, image)
        try:
            found.begin()
            found.fill()
            yield found
        finally:
            found.clear()
