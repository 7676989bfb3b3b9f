"""Operator and webhook that are switched on and off, and who sees what becomes of pods and the labels of nodes."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from controlplane import Operator, Webhook, WorkingCluster, webhook_setup
from controlplane.api_server import free_port
from controlplane.following import Follower
from simulated.life.life import matches, true_labels
from simulated.life.town import Json
from taintwarden.api.placement_labels import mirrored


class Servants:
    """The operator and the webhook on a cluster."""

    def __init__(self, ground: WorkingCluster, folder: Path) -> None:
        self.ground = ground
        self.port = free_port()
        self.operator = Operator(ground.operator_kubeconfig(), folder)
        self.webhook = Webhook(ground.webhook_kubeconfig(), folder, self.port)
        self.has = {"operator": False, "webhook": False}
        self._worker = ThreadPoolExecutor(1, "servants")
        """A process ends with the thread that started it."""

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
