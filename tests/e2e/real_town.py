"""A town on the real control plane: `Town` of the simulated lives, with nodes, a key and a namespace of its own."""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from controlplane import ApiError, Operator, Webhook, WorkingCluster, wait_until, webhook_setup
from controlplane.api_server import free_port
from controlplane.cluster import IMAGE, SCHEDULER
from controlplane.following import Follower
from controlplane.lateness import chosen
from e2e.stories import annotation, policy
from simulated.life.life import matches, true_labels
from simulated.life.town import Json
from taintwarden.cli import main
from taintwarden.engine.model import Taint, TaintSelector
from taintwarden.engine.placement import mirrored, neutral_labels, node_labels

POOL = "taintwarden-e2e/town"
HEARD_SECONDS = 0.4 + max(chosen().watch_seconds)
"""Until the webhook and the operator have heard of a change: nothing tells that they have."""
LABEL_SECONDS = 20.0
PLACED_SECONDS = 5.0
RETRIED_SECONDS = 25.0
"""Until the scheduler has tried again: it backs off for up to ten seconds."""


_COMMANDS = threading.Lock()


class Servants:
    """The operator and the webhook of all towns on a cluster. Commands are run one at a time: they use this process."""

    def __init__(self, ground: WorkingCluster, folder: Path) -> None:
        self.ground = ground
        self.port = free_port()
        self.operator = Operator(ground.operator_kubeconfig(), folder)
        self.webhook = Webhook(ground.webhook_kubeconfig(), folder, self.port)
        self.has = {"operator": False, "webhook": False}
        self._worker = ThreadPoolExecutor(1, "servants")
        """A process ends with the thread that started it, and towns have threads of their own."""

    def switch(self, name: str, *, on: bool) -> None:
        """Start or stop one of them."""
        self._worker.submit(self._switch, name, on=on).result()

    def _switch(self, name: str, *, on: bool) -> None:
        if self.has[name] == on:
            return
        process = self.operator if name == "operator" else self.webhook
        if on:
            process.start()
            if name == "operator":
                process.wait_leading()
            else:
                webhook_setup.trust(self.ground)
                webhook_setup.wait_asked(self.ground.client, self.webhook)
        else:
            process.stop()
        self.has[name] = on

    def command(self, *words: str) -> tuple[int, str]:
        """Run `taintwarden` as the administrator: exit code and standard output."""
        with _COMMANDS:
            done = CliRunner().invoke(main, [*words, "--kubeconfig", str(self.ground.admin_kubeconfig)])
            if done.exception and not isinstance(done.exception, SystemExit):
                raise done.exception
            return done.exit_code, done.stdout


@contextmanager
def served(ground: WorkingCluster, folder: Path) -> Iterator[Servants]:
    """Both run, and pods of namespaces that ask for it are completed."""
    servants = Servants(ground, folder)
    webhook_setup.install(ground.client, servants.port)
    try:
        servants.switch("webhook", on=True)
        servants.switch("operator", on=True)
        yield servants
    finally:
        for process in (servants.operator, servants.webhook):
            process.process.stop()
        webhook_setup.remove(ground.client)


class Onlooker:
    """Sees every change of nodes and pods: which running pods stopped matching their node without a reason."""

    def __init__(self, ground: WorkingCluster) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[str, Json] = {}
        self._pods: dict[str, Json] = {}
        self._found: list[tuple[str, str]] = []
        """Namespace of the pod, and what happened."""
        self._followers = [
            Follower(ground.client, name, see) for name, see in (("nodes", self._node), ("pods", self._pod))
        ]

    def __enter__(self) -> "Onlooker":
        for follower in self._followers:
            follower.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for follower in self._followers:
            follower.__exit__()

    def found(self, namespace: str) -> list[str]:
        """What happened to pods of a namespace."""
        for follower in self._followers:
            follower.check()
        with self._lock:
            return [text for space, text in self._found if space == namespace]

    def _pod(self, kind: str, pod: Json) -> None:
        with self._lock:
            uid = pod["metadata"]["uid"]
            if kind == "DELETED" or "deletionTimestamp" in pod["metadata"]:
                self._pods.pop(uid, None)
            else:
                self._pods[uid] = pod

    def _node(self, kind: str, node: Json) -> None:
        with self._lock:
            name = node["metadata"]["name"]
            before = self._nodes.pop(name, None)
            if kind == "DELETED":
                return
            self._nodes[name] = node
            if before is None or before["metadata"]["uid"] != node["metadata"]["uid"]:
                return
            old, new = before["metadata"]["labels"], node["metadata"]["labels"]
            for pod in self._pods.values() if old != new else ():
                if pod["spec"].get("nodeName") == name and matches(pod, old) and not matches(pod, new):
                    self._judge(pod, node, old, new)

    def _judge(self, pod: Json, node: Json, old: Json, new: Json) -> None:
        about = [key for key in new.keys() | old.keys() if mirrored(key) and old.get(key) != new.get(key)]
        keys = {found.key for label in about if (found := mirrored(label))}
        if all(matches(pod, true_labels(node, key)) for key in keys):
            changed = {label: (old.get(label), new.get(label)) for label in about}
            text = f"{pod['metadata']['name']} on {node['metadata']['name']}: {changed}"
            self._found.append((pod["metadata"]["namespace"], text))


@dataclass
class RealTown:
    """See :class:`Town`."""

    servants: Servants
    onlooker: Onlooker
    key: str
    namespace: str = field(default_factory=lambda: f"town-{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        self.client = self.servants.ground.client
        self._number = 0
        self._policy: Json | None = None
        self.client.create_namespace(self.namespace)

    @property
    def has_operator(self) -> bool:
        return self.servants.has["operator"]

    def _taints(self, value: str | None, effect: str) -> list[Json]:
        return [] if value is None else [{"key": self.key, "value": value, "effect": effect}]

    def set_taint(self, node: str, value: str | None, effect: str) -> None:
        self.client.set_taints(node, self._taints(value, effect))

    def add_node(self, value: str | None, effect: str) -> str:
        self._number += 1
        name = f"{self.namespace}-n{self._number}"
        self.client.create_node(name, {POOL: self.namespace}, self._taints(value, effect))
        return name

    def remove_node(self, node: str) -> None:
        self.client.delete("nodes", node)
        for pod in self.client.items("pods", self.namespace):
            if pod["spec"].get("nodeName") == node:
                self._force(pod)

    def _force(self, pod: Json) -> None:
        try:
            self.client.delete("pods", pod["metadata"]["name"], self.namespace, grace_seconds=0)
        except ApiError as error:
            if error.status != 404:
                raise

    def set_policy(self, spec: Json | None) -> None:
        self._policy = spec
        if self.client.find("taintevictionpolicies", self.namespace):
            self.client.delete("taintevictionpolicies", self.namespace)
        if spec is not None:
            self.client.create("taintevictionpolicies", policy(self.namespace, **{**spec, "nodeSelector": {}}))
        time.sleep(HEARD_SECONDS)  # that the webhook has heard of it is told nowhere

    def set_profile(self, value: str | None) -> None:
        if self.client.find("tolerationprofiles", "p", self.namespace):
            self.client.delete("tolerationprofiles", "p", self.namespace)
        if value is not None:
            head = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TolerationProfile", "metadata": {"name": "p"}}
            spec = {"tolerations": [self._above(value)]}
            self.client.create("tolerationprofiles", {**head, "spec": spec}, self.namespace)
        time.sleep(HEARD_SECONDS)  # that the webhook has heard of it is told nowhere

    def _above(self, value: str) -> Json:
        return {"key": self.key, "operator": "Gt", "value": value}

    def set_injection(self, *, on: bool) -> None:
        labels = {"taintwarden.io/inject": str(on).lower()}
        self.client.patch("namespaces", self.namespace, {"metadata": {"labels": labels}})
        time.sleep(HEARD_SECONDS)  # that the webhook has heard of it is told nowhere

    def set_operator(self, *, on: bool) -> None:
        self.servants.switch("operator", on=on)

    def set_webhook(self, *, on: bool) -> None:
        self.servants.switch("webhook", on=on)

    def create(self, name: str, value: str | None) -> None:
        app = {"app": name}
        spec = {
            "containers": [{"name": "main", "image": IMAGE}],
            "nodeSelector": {POOL: self.namespace},
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
        }
        metadata: Json = {"labels": app, "annotations": {} if value is None else annotation(self._above(value))}
        body = {"replicas": 1, "selector": {"matchLabels": app}, "template": {"metadata": metadata, "spec": spec}}
        self.client.create("replicasets", {"metadata": {"name": name}, "spec": body}, self.namespace)

    def delete(self, name: str) -> None:
        self.client.delete("replicasets", name, self.namespace)

    def delete_pod(self, name: str) -> None:
        if (pod := self.pods().get(name)) is not None:
            self._force(pod)

    def remove_labels(self) -> bool:
        code, _ = self.servants.command("placement", "remove", self.key, "--yes")
        return code == 0

    def settle(self) -> None:
        """Labels say what they should, and the scheduler has tried each pod. Pods that bounce are never done."""
        if self.has_operator:
            wait_until(self._is_labelled, LABEL_SECONDS, f"the labels of {self.key}: {self._labels()}")
        end = time.monotonic() + PLACED_SECONDS
        while time.monotonic() < end and not all(map(_is_decided, self.pods().values())):
            time.sleep(0.1)

    def _labels(self) -> dict[str, Json]:
        nodes = self.nodes().items()
        return {name: self._of_key(node["metadata"]["labels"]) for name, node in nodes}

    def _of_key(self, labels: Json) -> Json:
        return {one: text for one, text in labels.items() if (about := mirrored(one)) and about.key == self.key}

    def _is_labelled(self) -> bool:
        policy = self._policy
        placed = policy is not None and policy["mode"] != "DryRun" and policy["taints"][0].get("placement")
        for node in self.nodes().values():
            taints = [Taint(one["key"], one["value"], one["effect"]) for one in node["spec"].get("taints", ())]
            wanted = node_labels(taints, [TaintSelector(self.key, placement=True)]).labels
            found, neutral = self._of_key(node["metadata"]["labels"]), neutral_labels([self.key])
            if found != wanted if placed else found not in ({}, neutral):
                return False
        return True

    def nodes(self) -> dict[str, Json]:
        found = self.client.items("nodes", labelSelector=f"{POOL}={self.namespace}")
        return {node["metadata"]["name"]: node for node in found}

    def pods(self) -> dict[str, Json]:
        alive = (pod for pod in self.client.items("pods", self.namespace) if "deletionTimestamp" not in pod["metadata"])
        return {pod["metadata"]["labels"]["app"]: pod for pod in alive}

    def mismatches(self) -> list[str]:
        return self.onlooker.found(self.namespace)

    def explain(self, name: str) -> tuple[str, str]:
        pod = self.pods().get(name)
        if pod is None:
            return "it is being created", "see what the scheduler says"
        _, said = self.servants.command("explain", "pod", f"{self.namespace}/{pod['metadata']['name']}", "-o", "json")
        if not said:  # it is gone by now
            return "it is gone", "see what the scheduler says"
        answer = json.loads(said)
        if answer["fate"] != "Pending":
            return answer["reason"], "see what the scheduler says"
        if "what the scheduler says" in answer["remedy"]:
            self._await(name)
        return answer["reason"], answer["remedy"]

    def _await(self, name: str) -> None:
        """The scheduler tries again, sooner or later."""
        end = time.monotonic() + RETRIED_SECONDS
        while time.monotonic() < end:
            pod = self.pods().get(name)
            if pod is not None and pod["spec"].get("nodeName"):
                return
            time.sleep(0.2)

    def clear(self) -> None:
        """Remove all of it."""
        if self.client.find("taintevictionpolicies", self.namespace):
            self.client.delete("taintevictionpolicies", self.namespace)
        self.client.remove_namespace(self.namespace)
        for node in self.nodes():
            self.client.delete("nodes", node)


def _is_decided(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return bool(pod["spec"].get("nodeName")) or any(one.get("reason") == "Unschedulable" for one in conditions)
