"""An exporter with an availability for each node, a real Prometheus, the publisher, and the operator beside it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from controlplane import Cluster, ControlPlane, Json, Publisher, wait_until
from controlplane.api_server import LOOPBACK
from controlplane.target import PUBLISHER
from e2e.conftest import FEATURE_GATES
from monitoring.server import Prometheus

KEYS = ("sla", "example.com/sla", "mass", "bad", "tested")
"""What the account may publish here."""
LABELS = {"loop": "yes"}
RECORD = "published.taintwarden.io/sla"
SEEN_SECONDS = 45
"""A scrape, a round, and a machine under load."""
AGGREGATED = "taintwarden.io/aggregate-to-publisher"


class Exporter:
    """Serves what nodes have, as a text that Prometheus scrapes."""

    def __init__(self) -> None:
        self.values: dict[str, float | str] = {}
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def text(self) -> str:
        return "".join(f'node_availability{{node="{name}"}} {value}\n' for name, value in dict(self.values).items())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Loop:
    """The whole of it, on one control plane."""

    def __init__(
        self, control_plane: ControlPlane, exporter: Exporter, prometheus: Prometheus, publisher: Publisher
    ) -> None:
        self.control_plane = control_plane
        self.publisher = publisher
        self.exporter = exporter
        self.prometheus = prometheus

    @property
    def client(self) -> Cluster:
        return self.control_plane.client

    def publish(self, name: str, **fields: Any) -> Json:
        """Create a TaintPublisher that asks often and follows at once."""
        spec = {
            "mode": "Publish",
            "key": name,
            "url": self.prometheus.url,
            "query": "1000 * node_availability",
            "steps": [0, 900, 940, 960, 980],
            "hysteresis": 2,
            "intervalSeconds": 1,
            "minDwellSeconds": 0,
            "maxChangedNodes": "100%",
            "nodeSelector": {"matchLabels": LABELS},
        }
        kind = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintPublisher", "metadata": {"name": name}}
        return self.client.create("taintpublishers", {**kind, "spec": {**spec, **fields}})

    def taints(self, key: str = "sla") -> dict[str, str]:
        """The value of the key on each node that has one."""
        found = {}
        for node in self.client.items("nodes", labelSelector="loop=yes"):
            for taint in node["spec"].get("taints", ()):
                if taint["key"] == key:
                    found[node["metadata"]["name"]] = taint["value"]
        return found

    def wait_taints(self, wanted: Mapping[str, str], key: str = "sla") -> None:
        wait_until(lambda: self.taints(key) == wanted, SEEN_SECONDS, f"{key} to be {dict(wanted)}")

    def condition(self, name: str, kind: str) -> Json:
        found = self.client.get("taintpublishers", name).get("status", {}).get("conditions", ())
        return next((one for one in found if one["type"] == kind), {})

    def wait_reason(self, name: str, kind: str, reason: str) -> Json:
        """Wait until a condition has a reason."""
        hit = lambda: (one := self.condition(name, kind)).get("reason") == reason and one  # noqa: E731
        return wait_until(hit, SEEN_SECONDS, f"{kind} of {name} to be {reason}")

    def events(self, name: str, reason: str) -> list[Json]:
        """Those about an object."""
        return [
            one
            for one in self.client.items("v1/events", "default")
            if (one["involvedObject"].get("name"), one["reason"]) == (name, reason)
        ]

    def rounds(self, name: str) -> float:
        """How many the publisher has played of an object."""
        return self.publisher.metric("taintwarden_publisher_answers_total", publisher=name)

    def remove(self, name: str) -> None:
        """Delete an object, and wait until its finalizer is gone."""
        self.client.delete("taintpublishers", name)
        wait_until(lambda: not self.client.find("taintpublishers", name), SEEN_SECONDS, f"{name} to be gone")


def key_role(*keys: str) -> Json:
    """What lets the account publish these keys."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "test-publisher-keys", "labels": {AGGREGATED: "true"}},
        "rules": [
            {
                "apiGroups": ["taintwarden.io"],
                "resources": ["taintkeys"],
                "resourceNames": list(keys),
                "verbs": ["publish"],
            }
        ],
    }


def allow(control_plane: ControlPlane, *keys: str) -> None:
    """Give the right, and wait until Kubernetes has added it to the account's role."""
    control_plane.client.apply(key_role(*keys))
    found = lambda: control_plane.client.get("clusterroles", "taintwarden-publisher-keys").get("rules")  # noqa: E731
    wait_until(found, SEEN_SECONDS, "the role of the keys to be aggregated")


@contextmanager
def installed(folder: Path) -> Iterator[ControlPlane]:
    """A control plane with what is shipped for operator and publisher."""
    with ControlPlane(folder, feature_gates=FEATURE_GATES) as started:
        started.apply_crds()
        started.apply_manifests()
        started.apply_manifests(PUBLISHER)
        started.start_controller_manager("clusterrole-aggregation-controller")
        allow(started, *KEYS)
        yield started


@contextmanager
def running(control_plane: ControlPlane, names: list[str]) -> Iterator[Loop]:
    """Nodes with a good availability, and what turns it into taints."""
    exporter = Exporter()
    exporter.values = dict.fromkeys(names, 0.985)
    for name in names:
        control_plane.client.create_node(name, LABELS)
    try:
        with Publisher(control_plane.publisher_kubeconfig(), control_plane.folder) as publisher:
            targets = {"exporter": exporter.url, "publisher": publisher.url}
            with Prometheus(control_plane.folder / "prometheus", targets) as prometheus:
                prometheus.wait_scraped(targets)
                yield Loop(control_plane, exporter, prometheus, publisher)
    finally:
        exporter.close()
