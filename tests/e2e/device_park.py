"""Nodes with devices: a small driver that publishes them, and workloads whose claims the real scheduler allocates.

Tests that share a cluster are stories: functions of a Park, which are played side by side, each in a park of its own.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from controlplane import Cluster, Json, WorkingCluster, wait_until
from controlplane.cluster import IMAGE, SCHEDULER
from e2e.stories import annotation, policy, selected

SECONDS = 60.0
CLAIM = "gpu"


class Driver:
    """Publishes one pool for each node, as drivers do: one slice, whose taints it writes.

    Args:
        cluster: where.
        name: of the driver.

    """

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster
        self._devices: dict[str, dict[str, Json]] = {}
        self._generations: dict[str, int] = {}

    def slice_name(self, pool: str) -> str:
        return f"{pool}-{self.name.partition('.')[0]}"

    def publish(self, node: str, devices: Mapping[str, Json]) -> None:
        """The devices of a node by name, in one slice."""
        self._devices[node] = dict(devices)
        self._generations[node] = 1
        spec = {"driver": self.name, "pool": self._pool(node), "nodeName": node, "devices": self._list(node)}
        self._cluster.create("resourceslices", {"metadata": {"name": self.slice_name(node)}, "spec": spec})

    def taint(self, pool: str, device: str, *taints: Json) -> None:
        """Write these taints of a device, and no others."""
        self._devices[pool][device]["taints"] = list(taints)
        self._generations[pool] += 1
        spec = {"pool": self._pool(pool), "devices": self._list(pool)}
        self._cluster.patch("resourceslices", self.slice_name(pool), {"spec": spec})

    def clear(self) -> None:
        for pool in self._devices:
            self._cluster.delete("resourceslices", self.slice_name(pool))

    def _pool(self, pool: str) -> Json:
        return {"name": pool, "generation": self._generations[pool], "resourceSliceCount": 1}

    def _list(self, pool: str) -> list[Json]:
        return [{"name": name, **device} for name, device in self._devices[pool].items()]


class Park:
    """Nodes with two GPUs each, a driver for them, and a policy for the driver's taints.

    Args:
        ground: the cluster.
        nodes: how many.

    """

    def __init__(self, ground: WorkingCluster, nodes: int = 2) -> None:
        self.client = ground.client
        self.ground = ground
        self.name = f"park-{uuid.uuid4().hex[:6]}"
        self.driver = Driver(self.client, f"{self.name}.example.com")
        self.key = f"{self.driver.name}/health"
        self.extended = f"{self.driver.name}/gpu"
        """The extended resource for which the scheduler makes claims."""
        self.nodes = [f"{self.name}-{number}" for number in range(nodes)]

    def begin(self) -> None:
        """Its namespace, nodes, devices and their class."""
        self.client.create_namespace(self.name)
        selectors = [{"cel": {"expression": f'device.driver == "{self.driver.name}"'}}]
        spec = {"selectors": selectors, "extendedResourceName": self.extended}
        self.client.create("deviceclasses", {"metadata": {"name": self.name}, "spec": spec})
        for node in self.nodes:
            self.client.create_node(node, {"park": self.name})
            self.driver.publish(
                node, {f"gpu-{number}": {"attributes": {"model": {"string": "H100"}}} for number in (0, 1)}
            )

    def clear(self) -> None:
        """Remove all of it."""
        if self.client.find("taintevictionpolicies", self.name):
            self.client.delete("taintevictionpolicies", self.name)
        self.client.remove_namespace(self.name)
        self.client.delete_all("resourceclaims", self.name)
        self.client.delete("deviceclasses", self.name)
        self.driver.clear()
        self.client.delete_all("nodes", labelSelector=f"park={self.name}")

    def set_policy(self, devices: Json | None = None, **spec: object) -> None:
        """Create the policy; it is for the driver's taints, whatever their key, without limits by default."""
        selected = {"key": self.key, "driver": self.driver.name, **(devices or {})}
        body = policy(self.name, **{"nodeSelector": {}, "devices": [selected], **spec})
        del body["spec"]["taints"]
        self.client.create("taintevictionpolicies", body)

    def bad(self, value: str = "", effect: str = "NoExecute") -> Json:
        """A taint."""
        return {"key": self.key, "value": value, "effect": effect}

    def claim(self, name: str = CLAIM, *tolerations: Json, template: bool = False) -> None:
        """A claim for one GPU, or a template for such claims, which tolerates this of its taints."""
        body = self.claim_body(name, *tolerations)
        if template:
            body["spec"] = {"spec": body["spec"]}
        self.client.create("resourceclaimtemplates" if template else "resourceclaims", body, self.name)

    def claim_body(self, name: str, *tolerations: Json) -> Json:
        exactly = {"deviceClassName": self.name, "tolerations": list(tolerations)}
        return {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}

    def pod_spec(self, claim: str = CLAIM, *, template: bool = False) -> Json:
        named = "resourceClaimTemplateName" if template else "resourceClaimName"
        return {
            "containers": [{"name": "main", "image": IMAGE, "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", named: claim}],
            "nodeSelector": {"park": self.name},
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
        }

    def pod(self, name: str, *accepted: Json, claim: str = CLAIM) -> tuple[str, str]:
        """A pod with such a claim, placed by the scheduler; `accepted` is its annotation. Returns pool and device."""
        self.run(name, self.pod_spec(claim), *accepted)
        return self.device_of(name)

    def run(self, name: str, spec: Json, *accepted: Json) -> None:
        """A pod, placed by the scheduler."""
        metadata = {"name": name, "labels": {"app": name}, "annotations": annotation(*accepted) if accepted else {}}
        self.client.create("pods", {"metadata": metadata, "spec": spec}, self.name)
        wait_until(lambda: self._is_running(name), SECONDS, f"pod {name} to run")

    def _is_running(self, name: str) -> bool:
        self.ground.kubelet.check()
        return bool(self.client.get("pods", name, self.name).get("status", {}).get("phase") == "Running")

    def device_of(self, pod: str) -> tuple[str, str]:
        """Pool and name of the device that is allocated to a pod."""
        uid = self.client.get("pods", pod, self.name)["metadata"]["uid"]
        for claim in self.client.items("resourceclaims", self.name):
            status = claim.get("status", {})
            if any(one["uid"] == uid for one in status.get("reservedFor", [])):
                result = status["allocation"]["devices"]["results"][0]
                return result["pool"], result["device"]
        raise AssertionError(f"no claim is reserved for {pod}")

    def left(self, *names: str) -> Sequence[str]:
        """Those of these pods that are gone, or end."""
        found = {one["metadata"]["name"]: one for one in self.client.items("pods", self.name)}
        return [name for name in names if name not in found or "deletionTimestamp" in found[name]["metadata"]]

    def running_but(self, name: str) -> str:
        """The one running pod that is not this one and stays; empty while there is none."""
        running = self.client.items("pods", self.name, fieldSelector="status.phase=Running")
        found = [one["metadata"] for one in running if "deletionTimestamp" not in one["metadata"]]
        others = [one["name"] for one in found if one["name"] != name]
        return others[0] if len(others) == 1 else ""

    def wait_left(self, *names: str) -> None:
        wait_until(lambda: len(self.left(*names)) == len(names), SECONDS, f"{', '.join(names)} to leave {self.name}")

    def condition(self, kind: str) -> Json:
        """A condition of the policy; empty if it has none of this type."""
        status = self.client.get("taintevictionpolicies", self.name).get("status", {})
        return next((one for one in status.get("conditions", []) if one["type"] == kind), {})

    def wait_known(self) -> None:
        """Wait until the policy knows the devices."""
        wait_until(lambda: self.condition("DevicesKnown").get("status") == "True", SECONDS, "devices to be known")


ParkStory = Callable[[Park], None]
Endings = dict[ParkStory, "Future[None]"]
"""The result of each raises what its story raised."""


class ParkStories(list[ParkStory]):
    """The stories of one module."""

    def add(self, story: ParkStory) -> ParkStory:
        """Play this function too."""
        self.append(story)
        return story


@contextmanager
def opened(ground: WorkingCluster) -> Iterator[Park]:
    """A park, which is removed at the end."""
    park = Park(ground)
    park.begin()
    try:
        yield park
    finally:
        park.clear()


@contextmanager
def played(request: pytest.FixtureRequest, ground: WorkingCluster, stories: ParkStories) -> Iterator[Endings]:
    """Play the selected stories."""
    chosen = [story for story in stories if story in selected(request)]

    def play(story: ParkStory) -> None:
        with opened(ground) as park:
            story(park)

    with ThreadPoolExecutor(max(1, len(chosen)), "park") as pool:
        yield {story: pool.submit(play, story) for story in chosen}
