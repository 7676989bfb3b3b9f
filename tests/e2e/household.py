"""One workload of each kind of owner, with a key and nodes of its own, and what is seen of it."""

import time
import uuid
from collections.abc import Callable, Iterator

from controlplane import Json, WorkingCluster, wait_until
from controlplane.cluster import IMAGE, SCHEDULER
from e2e.placement_table import Outcome, Owner
from e2e.stories import annotation, policy
from simulated.life.life import matches
from taintwarden_placement.node_labels.names import value_label

POOL = "taintwarden-e2e/household"
DRIVER = "example.com/driver"
NEW, OLD = "2.0.0", "1.0.0"
GOOD, BAD = "980", "700"
SECONDS = 80.0
APPS = {
    Owner.DEPLOYMENT: "deployment",
    Owner.DAEMON_SET: "daemonset",
    Owner.BARE: "bare",
}


class Household:
    """Two good nodes and a bad one. Pods tolerate values above 950, by their annotation.

    Args:
        ground: where it is.
        effect: of the taints.
        evicts: whether the policy evicts.

    """

    def __init__(self, ground: WorkingCluster, effect: str = "NoSchedule", *, evicts: bool = False) -> None:
        self.ground = ground
        self.client = ground.client
        self.effect = effect
        self._refused: set[str] = set()
        self.key = self.name = f"house-{uuid.uuid4().hex[:6]}"
        self.spec: Json = {
            "taints": [{"key": self.key, "effects": [effect] if evicts else [], "placement": True}],
            "versionLabels": [DRIVER],
            "nodeSelector": {},
        }
        self.first, self.second, self.bad = (f"{self.name}-{name}" for name in ("first", "second", "bad"))

    # -- what there is ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Its namespace, nodes and policy."""
        self.client.create_namespace(self.name, {"taintwarden.io/inject": "true"})
        for node, value in ((self.first, GOOD), (self.second, GOOD), (self.bad, BAD)):
            self._add_node(node, {POOL: self.name, DRIVER: OLD if value == BAD else NEW}, value)
        self.client.create("taintevictionpolicies", policy(self.name, **self.spec))
        self.wait_labels({self.first: GOOD, self.bad: BAD})
        wait_until(self.is_completed, SECONDS, "pods to be completed")

    def _add_node(self, name: str, labels: dict[str, str], value: str) -> None:
        self.client.create_node(name, labels, self.taints(value))

    def is_completed(self) -> bool:
        """Return True if a pod that is created now gets node affinity."""
        return "affinity" in self.rehearsed(self.template("probe"))

    def rehearsed(self, template: Json) -> Json:
        """The spec with which a pod of a template would be stored."""
        pod = {**template, "metadata": {**template["metadata"], "name": "probe"}}
        spec: Json = self.client.create("pods", pod, self.name, dryRun="All")["spec"]
        return spec

    def clear(self) -> None:
        """Remove all of it."""
        if self.client.find("taintevictionpolicies", self.name):
            self.client.delete("taintevictionpolicies", self.name)
        self.client.remove_namespace(self.name)
        self._remove_nodes()

    def _remove_nodes(self) -> None:
        self.client.delete_all("nodes", labelSelector=f"{POOL}={self.name}")

    def taints(self, value: str) -> list[Json]:
        return [{"key": self.key, "value": value, "effect": self.effect}]

    def set_value(self, node: str, value: str) -> float:
        """Change the taint of a node; the moment."""
        at = time.monotonic()
        self.client.set_taints(node, self.taints(value))
        return at

    def set_policy(self, **spec: object) -> None:
        self.client.patch("taintevictionpolicies", self.name, {"spec": spec})

    def annotations(self, bound: str = "950") -> dict[str, str]:
        return annotation({"key": self.key, "operator": "Gt", "value": bound})

    def template(self, app: str, bound: str = "950") -> Json:
        spec = {
            "containers": [{"name": "main", "image": IMAGE}],
            "nodeSelector": {POOL: self.name},
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
        }
        return {"metadata": {"labels": {"app": app}, "annotations": self.annotations(bound)}, "spec": spec}

    # -- workloads ----------------------------------------------------------------------------------------------------

    def create_all(self) -> None:
        """Create one workload of each kind."""
        for owner in Owner:
            self.create(owner)

    def create(self, owner: Owner) -> None:
        """The workload of a kind."""
        app = APPS[owner]
        makes: dict[Owner, Callable[[str], None]] = {
            Owner.DEPLOYMENT: lambda app: self._workload("deployments", app, replicas=2),
            Owner.DAEMON_SET: lambda app: self._workload("daemonsets", app),
            Owner.BARE: self.bare,
        }
        makes[owner](app)

    def _workload(self, resource: str, app: str, **spec: object) -> None:
        body = {"selector": {"matchLabels": {"app": app}}, "template": self.template(app), **spec}
        self.client.create(resource, {"metadata": {"name": app}, "spec": body}, self.name)

    def bare(self, name: str, bound: str = "950") -> None:
        """A pod without an owner."""
        template = self.template(name, bound)
        self.client.create("pods", {**template, "metadata": {**template["metadata"], "name": name}}, self.name)

    # -- what is seen -------------------------------------------------------------------------------------------------

    def pods(self, app: str) -> list[Json]:
        """Those that are there and not leaving."""
        found = self.client.items("pods", self.name, labelSelector=f"app={app}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def where(self, owner: Owner) -> list[str]:
        """The nodes of the pods that are bound, in order."""
        found = (pod["spec"].get("nodeName") for pod in self.pods(APPS[owner]))
        return sorted(node for node in found if node)

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until something is seen."""
        try:
            wait_until(is_so, SECONDS, f"{what} in {self.name}")
        except TimeoutError as error:
            where = {one: self.where(one) for one in Owner}
            raise TimeoutError(f"{error}; {where}; {list(self._troubles())}") from error

    def _troubles(self) -> Iterator[str]:
        """Why pods are not there, or not bound, as far as controllers and the scheduler say."""
        for pod in self.client.items("pods", self.name):
            for condition in pod["status"].get("conditions", ()):
                if condition["status"] != "True":
                    yield f"{pod['metadata']['name']}: {condition['type']}: {condition.get('message', '')}"
        for event in self.client.items("events", self.name):
            if event["type"] == "Warning":
                yield f"{event['regarding']['name']}: {event['reason']}: {event.get('note', '')}"

    def wait_running(self) -> None:
        """One pod of each, two of the Deployment and of the DaemonSet."""
        numbers = {owner: 2 if owner in (Owner.DEPLOYMENT, Owner.DAEMON_SET) else 1 for owner in Owner}
        self.wait(lambda: all(len(self.where(owner)) == number for owner, number in numbers.items()), "all pods to run")

    def wait_labels(self, values: dict[str, str | None]) -> None:
        """Wait until labels repeat these values; None: that there is no such taint."""
        label = value_label(self.key)
        self.wait(
            lambda: all(
                self.client.get("nodes", node)["metadata"]["labels"].get(label) == value
                for node, value in values.items()
            ),
            f"labels {values}",
        )

    def uids(self) -> dict[Owner, dict[str, str]]:
        """The pods of each owner by UID, each with its node."""
        return {
            owner: {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in self.pods(app)}
            for owner, app in APPS.items()
        }

    def unmatched(self, owner: Owner) -> list[str]:
        """Pods that do not match their own node."""
        found = []
        for pod in self.pods(APPS[owner]):
            node = pod["spec"].get("nodeName")
            if node and not matches(pod, self.client.get("nodes", node)["metadata"]["labels"]):
                found.append(pod["metadata"]["name"])
        return found

    def runs_on_first(self, owner: Owner) -> bool:
        """Return True if a pod of the owner runs on the first node, as its kubelet reports."""
        pods = (pod for pod in self.pods(APPS[owner]) if pod["spec"].get("nodeName") == self.first)
        return any(pod["status"].get("phase") == "Running" for pod in pods)

    def see_pod(self, kind: str, pod: Json) -> None:
        """Remember which pods their kubelet refused: controllers delete some of them at once."""
        if pod["metadata"]["namespace"] == self.name and pod["status"].get("reason") == "NodeAffinity":
            self._refused.add(pod["metadata"]["uid"])

    def failures(self, before: dict[str, str]) -> list[str]:
        """Those pods that the kubelet of the first node has refused, since they do not match it."""
        return sorted(uid for uid, node in before.items() if node == self.first and uid in self._refused)

    def _after_failure(self, owner: Owner) -> Outcome:
        alive = [pod["spec"].get("nodeName") for pod in self.pods(APPS[owner]) if pod["status"]["phase"] != "Failed"]
        if not alive:
            return Outcome.FAILED
        return Outcome.FAILED_REPLACED if set(alive) == {self.second} else Outcome.PENDING

    def seen(self, owner: Owner, before: dict[str, str], since: float) -> Outcome:
        """Return the outcome for the pods that an owner had."""
        now = self.uids()[owner]
        left = {one.uid: one for one in self.ground.availability.departures("", since)}
        here = {uid: node for uid, node in before.items() if node == self.first}
        if len(self.failures(before)) == len(here):
            return self._after_failure(owner)
        stayed = here.keys() & now.keys()
        if stayed == here.keys():
            if owner is Owner.DAEMON_SET and self.bad in now.values():
                return Outcome.SPREADS
            return Outcome.STAYS_FALLEN if self.unmatched(owner) else Outcome.STAYS
        evicted = all(left[uid].evicted for uid in here)
        if owner is Owner.DAEMON_SET:
            return Outcome.REMOVED if not evicted and self.first not in now.values() else Outcome.REPLACED
        if not now:
            return Outcome.GONE
        return Outcome.REPLACED if evicted and set(now.values()) == {self.second} else Outcome.PENDING
