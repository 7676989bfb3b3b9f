"""From a metric to a taint: an exporter with an availability for each node, a real Prometheus, and the publisher."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from controlplane import Cluster, ControlPlane, Json, Publisher, wait_until
from monitoring.exporter import Exporter
from monitoring.server import Prometheus

SEEN_SECONDS = 45
"""A scrape, a round, and a machine under load."""
LABELS = {"loop": "yes"}
GOOD = 0.985
"""The availability of nodes at first."""
AGGREGATED = "taintwarden.io/aggregate-to-publisher"


class Publishing:
    """TaintPublishers that ask the Prometheus of this URL, and what comes of them on the nodes with LABELS."""

    def __init__(self, client: Cluster, url: str) -> None:
        self.client = client
        self.url = url

    def publish(self, name: str, **fields: Any) -> Json:
        """Create a TaintPublisher that asks often and follows at once."""
        spec = {
            "mode": "Publish",
            "key": name,
            "url": self.url,
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

    def condition(self, name: str, kind: str) -> Json:
        found = self.client.get("taintpublishers", name).get("status", {}).get("conditions", ())
        return next((one for one in found if one["type"] == kind), {})

    def wait_reason(self, name: str, kind: str, reason: str) -> Json:
        """Wait until a condition has a reason."""
        hit = lambda: (one := self.condition(name, kind)).get("reason") == reason and one  # noqa: E731
        return wait_until(hit, SEEN_SECONDS, f"{kind} of {name} to be {reason}")

    def remove(self, name: str) -> None:
        """Delete an object, and wait until its finalizer is gone."""
        self.client.delete("taintpublishers", name)
        wait_until(lambda: not self.client.find("taintpublishers", name), SEEN_SECONDS, f"{name} to be gone")


@dataclass(frozen=True)
class Loop:
    """The whole of it, on one control plane."""

    exporter: Exporter
    prometheus: Prometheus
    publisher: Publisher


def allow(control_plane: ControlPlane, *keys: str) -> None:
    """Let the account publish these keys, and wait until Kubernetes has added that to its role."""
    metadata = {"name": "test-publisher-keys", "labels": {AGGREGATED: "true"}}
    rule = {"apiGroups": ["taintwarden.io"], "resources": ["taintkeys"], "resourceNames": [*keys], "verbs": ["publish"]}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    control_plane.client.apply({**kind, "metadata": metadata, "rules": [rule]})
    found = lambda: control_plane.client.get("clusterroles", "taintwarden-publisher-keys").get("rules")  # noqa: E731
    wait_until(found, SEEN_SECONDS, "the role of the keys to be aggregated")


@contextmanager
def measured(control_plane: ControlPlane, names: list[str]) -> Iterator[Loop]:
    """Nodes have a good availability, and a publisher with the shipped rights waits for objects."""
    with Exporter() as exporter:
        exporter.values = dict.fromkeys(names, GOOD)
        with Publisher(control_plane.publisher_kubeconfig(), control_plane.folder) as publisher:
            targets = {"exporter": exporter.url, "publisher": publisher.url}
            with Prometheus(control_plane.folder / "prometheus", targets) as prometheus:
                prometheus.wait_scraped(targets)
                yield Loop(exporter, prometheus, publisher)
