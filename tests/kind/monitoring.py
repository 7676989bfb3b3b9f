"""A Prometheus in a pod, as `make prometheus` builds it, beside an exporter whose values a story sets."""

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from controlplane import Cluster, Json, wait_until
from deploy.rendering import run
from deploy.rendering import tool as deploy_tool
from kind.nodes import ENGINE, on_node
from kind.scene import is_ready
from monitoring.promtool import tool

NAME = "prometheus"
IMAGE = "taintwarden-e2e/prometheus:built"
PORT, EXPORTER_PORT = 9090, 9100
LOAD_SECONDS = 300
READY_SECONDS = 120
WRITE = "import os; open('/data/new', 'w').write({text!r}); os.replace('/data/new', '/data/metrics')"


def load_image(cluster_name: str, node: str, folder: Path) -> None:
    """Make an image with Prometheus and nothing else, and bring it to a node."""
    root, archive = folder / "root.tar", folder / "image.tar"
    with tarfile.open(root, "w") as members:
        members.add(tool("prometheus"), "usr/local/bin/prometheus")
    changes = ["--change", "ENV PATH=/usr/local/bin", "--change", 'ENTRYPOINT ["prometheus"]']
    run(ENGINE, "import", *changes, root, IMAGE, seconds=LOAD_SECONDS)
    run(ENGINE, "save", "-o", archive, IMAGE, seconds=LOAD_SECONDS)
    load = [deploy_tool("kind"), "load", "image-archive", archive, "--name", cluster_name, "--nodes", node]
    run(*load, seconds=LOAD_SECONDS)
    root.unlink()
    archive.unlink()


class Monitoring:
    """Both in one pod, behind a Service.

    Args:
        cluster: where.
        namespace: a namespace of its own, which is there already.
        node: what runs the pod, and has the image.
        image: one with Python, for the exporter.
        scraped: another target, by its address, which keeps a connection of Prometheus open.

    """

    def __init__(self, cluster: Cluster, namespace: str, node: str, image: str, scraped: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._node = node
        self._image = image
        self._scraped = scraped
        self.url = f"http://{NAME}.{namespace}:{PORT}"

    def start(self) -> None:
        """Create all, and wait until Prometheus answers."""
        cluster, namespace = self._cluster, self._namespace
        configuration = {"prometheus.yaml": yaml.safe_dump(self._configuration())}
        cluster.create("configmaps", {"metadata": {"name": NAME}, "data": configuration}, namespace)
        service = {"selector": {"app": NAME}, "ports": [{"port": PORT}]}
        cluster.create("services", {"metadata": {"name": NAME}, "spec": service}, namespace)
        metadata = {"name": NAME, "labels": {"app": NAME}}
        cluster.create("pods", {"metadata": metadata, "spec": self._pod()}, namespace)
        wait_until(lambda: is_ready(cluster.get("pods", NAME, namespace)), READY_SECONDS, "Prometheus")

    def set(self, values: Mapping[str, float]) -> None:
        """What the exporter says of each node from now on."""
        text = "".join(f'node_availability{{node="{name}"}} {value}\n' for name, value in values.items())
        statuses = self._cluster.get("pods", NAME, self._namespace)["status"]["containerStatuses"]
        [container] = [one["containerID"].partition("://")[2] for one in statuses if one["name"] == "exporter"]
        on_node(self._node, "crictl", "exec", container, "python3", "-c", WRITE.format(text=text))

    def _configuration(self) -> Json:
        def job(name: str, target: str) -> Json:
            protocol = "PrometheusText0.0.4"  # the exporter names no type of its content
            return {
                "job_name": name,
                "static_configs": [{"targets": [target]}],
                "fallback_scrape_protocol": protocol,
            }

        jobs = [job("node", f"localhost:{EXPORTER_PORT}"), job("publisher", self._scraped)]
        return {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}

    def _pod(self) -> Json:
        def container(name: str, image: str, **more: Any) -> Json:
            return {"name": name, "image": image, "imagePullPolicy": "Never", **more}

        data = {"name": "data", "mountPath": "/data"}
        serve = ["python3", "-m", "http.server", str(EXPORTER_PORT), "--directory", "/data"]
        flags = ["--config.file=/etc/prometheus/prometheus.yaml", "--storage.tsdb.path=/data/tsdb"]
        configuration = {"name": "configuration", "mountPath": "/etc/prometheus"}
        ready = {"httpGet": {"path": "/-/ready", "port": PORT}, "periodSeconds": 1}
        return {
            "nodeName": self._node,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [
                container("exporter", self._image, command=serve, volumeMounts=[data]),
                container(NAME, IMAGE, args=flags, volumeMounts=[data, configuration], readinessProbe=ready),
            ],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "configuration", "configMap": {"name": NAME}}],
        }
