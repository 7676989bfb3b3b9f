"""Devices for real kubelets: DRA drivers in pods, which publish what a story writes into a file of their node."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from controlplane import Cluster, Json, wait_until
from kind.nodes import engine, on_node, write_file
from kind.scene import is_ready

SOURCE = Path(__file__).parent / "kubernetes"
NAME = "driver.example.com"
NAMESPACE = "device-driver"
FOLDER = "/var/lib/taintwarden-driver"
PLUGINS = ("/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry")
BUILD_SECONDS = 900
START_SECONDS = 120
RULES = [
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["*"]},
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
]


def build(folder: Path) -> Path:
    """The driver as a static program: whatever image its pod has can run it."""
    program = folder / "driver"
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./driver"]
    subprocess.run(command, cwd=SOURCE, env=environment, check=True, timeout=BUILD_SECONDS)
    return program


class NodeDriver:
    """The driver on its nodes, with two devices each, and a class for them.

    Args:
        cluster: where.
        nodes: which have devices.
        image: any that they have.

    """

    def __init__(self, cluster: Cluster, nodes: Sequence[str], image: str) -> None:
        self._cluster = cluster
        self._image = image
        self._taints: dict[tuple[str, str], Sequence[Json]] = {}
        self.nodes = nodes

    def start(self, program: Path) -> None:
        """Create all, and wait until the devices are published."""
        for node in self.nodes:
            on_node(node, "mkdir", "-p", FOLDER)
            engine("cp", str(program), f"{node}:{FOLDER}/driver")
            self._write(node)
        cluster, account = self._cluster, {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
        cluster.create_namespace(NAMESPACE)
        cluster.create("serviceaccounts", {"metadata": {"name": NAME}}, NAMESPACE)
        cluster.create("clusterroles", {"metadata": {"name": NAME}, "rules": RULES})
        cluster.create("clusterrolebindings", {"metadata": {"name": NAME}, "roleRef": role, "subjects": [account]})
        selector = {"cel": {"expression": f'device.driver == "{NAME}"'}}
        cluster.create("deviceclasses", {"metadata": {"name": NAME}, "spec": {"selectors": [selector]}})
        for node in self.nodes:
            cluster.create("pods", self._pod(node), NAMESPACE)
        wait_until(self._is_published, START_SECONDS, "the driver to publish its devices")

    def stop(self) -> None:
        """Remove all. The slices are the driver's."""
        self._cluster.delete("deviceclasses", NAME)
        self._cluster.remove_namespace(NAMESPACE)
        for resource in ("clusterrolebindings", "clusterroles"):
            self._cluster.delete(resource, NAME)
        for one in self._slices():
            self._cluster.delete("resourceslices", one["metadata"]["name"])
        for node in self.nodes:
            on_node(node, "rm", "-rf", FOLDER)

    def taint(self, device: tuple[str, str], key: str, value: str, effect: str = "NoSchedule") -> None:
        """A device, by its node and name, has this taint and no other; it has none without a value."""
        self._taints[device] = [{"key": key, "value": value, "effect": effect}] if value else []
        self._write(device[0])

    def well(self) -> None:
        """No device has a taint."""
        self._taints = {}
        for node in self.nodes:
            self._write(node)
        wait_until(lambda: not self._published_taints(), START_SECONDS, "the taints to be gone")

    def _write(self, node: str) -> None:
        devices = [{"name": name, "taints": self._taints.get((node, name), ())} for name in ("gpu-0", "gpu-1")]
        write_file(node, f"{FOLDER}/devices.json", json.dumps(devices))

    def _slices(self) -> list[Json]:
        return [one for one in self._cluster.items("resourceslices") if one["spec"]["driver"] == NAME]

    def _published_taints(self) -> list[Json]:
        return [
            taint for one in self._slices() for device in one["spec"]["devices"] for taint in device.get("taints", ())
        ]

    def _is_published(self) -> bool:
        found = {one["spec"]["nodeName"] for one in self._slices() if len(one["spec"].get("devices", ())) == 2}
        return found == set(self.nodes) and all(map(is_ready, self._cluster.items("pods", NAMESPACE)))

    def _pod(self, node: str) -> Json:
        paths = {"own": FOLDER} | dict(zip(("plugins", "registry"), PLUGINS, strict=True))
        container = {
            "name": "driver",
            "image": self._image,
            "imagePullPolicy": "Never",
            "command": [f"{FOLDER}/driver"],
            "env": [
                {"name": "DRIVER", "value": NAME},
                {"name": "NODE_NAME", "value": node},
                {"name": "DEVICES", "value": f"{FOLDER}/devices.json"},
            ],
            "securityContext": {"runAsUser": 0, "privileged": True},  # it makes sockets for the kubelet
            "volumeMounts": [{"name": name, "mountPath": path} for name, path in paths.items()],
        }
        spec = {
            "nodeName": node,
            "serviceAccountName": NAME,
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
            "volumes": [
                {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in paths.items()
            ],
        }
        return {"metadata": {"name": node}, "spec": spec}


def device_of(claims: Sequence[Json], pod: Mapping[str, str]) -> tuple[str, str]:
    """Pool and name of the device that a pod has by one of these claims. Raises LookupError."""
    for claim in claims:
        status = claim.get("status", {})
        if any(one["uid"] == pod["uid"] for one in status.get("reservedFor", ())):
            result = status["allocation"]["devices"]["results"][0]
            return result["pool"], result["device"]
    raise LookupError(f"no claim is reserved for {pod['name']}")
