"""The publisher in its pod: a value of Prometheus becomes a taint, and the operator in its pods evicts by it."""

import json
import logging
import time
import uuid
from collections.abc import Iterator

import pytest

from controlplane import Cluster, Json, wait_until
from kind.installation import Installation
from kind.monitoring import Monitoring, load_image
from kind.scene import KEY, Scene, above
from monitoring.loop import LABELS, SEEN_SECONDS, Publishing

log = logging.getLogger(__name__)
END_SECONDS = 30.0
"""Half of its grace."""
GOOD, FALLEN = 0.985, 0.945
RECORD = "published.taintwarden.io/sla"


class Loop(Publishing):
    """The first two workers have an availability, which Prometheus knows and the publisher publishes."""

    def __init__(self, client: Cluster, monitoring: Monitoring, workers: list[str]) -> None:
        super().__init__(client, monitoring.url)
        self.nodes = workers[:2]
        self._monitoring = monitoring

    def have(self, *values: float) -> None:
        """The nodes have these availabilities."""
        self._monitoring.set(dict(zip(self.nodes, values, strict=True)))

    def wait_values(self, *values: str) -> None:
        """Wait until the nodes have taints with these values."""
        self.wait_taints(dict(zip(self.nodes, values, strict=True)))

    def record(self, node: str) -> Json:
        """What the publisher has recorded of its taint on a node."""
        return json.loads(self.client.get("nodes", node)["metadata"]["annotations"][RECORD])


@pytest.fixture(scope="module")
def loop(
    cluster: Cluster,
    publisher: Installation,
    workers: list[str],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Loop]:
    """All of it, with the object `sla`, whose taints the nodes have."""
    namespace, node = f"monitoring-{uuid.uuid4().hex[:6]}", workers[2]
    name = request.config.getoption("--context").removeprefix("kind-")
    load_image(name, node, tmp_path_factory.mktemp("prometheus"))
    cluster.create_namespace(namespace)
    [pod] = publisher.pods()
    image = Installation(cluster).image
    monitoring = Monitoring(cluster, namespace, node, image, f"{pod['status']['podIP']}:8080")
    found = Loop(cluster, monitoring, workers)
    try:
        monitoring.start()
        for one in found.nodes:
            cluster.patch("nodes", one, {"metadata": {"labels": LABELS}})
        found.have(GOOD, GOOD)
        found.publish(KEY)
        found.wait_values("980", "980")
        yield found
    finally:
        for one in cluster.items("taintpublishers"):
            found.remove(one["metadata"]["name"])
        for one in found.nodes:
            cluster.patch("nodes", one, {"metadata": {"labels": dict.fromkeys(LABELS)}})
        cluster.delete("namespaces", namespace)


@pytest.fixture(autouse=True)
def recovered(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each story with the loop the nodes are good again."""
    yield
    if "loop" in request.fixturenames:
        loop: Loop = request.getfixturevalue("loop")
        loop.have(GOOD, GOOD)
        loop.wait_values("980", "980")


def preferring(node: str) -> Json:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}}


def test_its_probes_answer_and_one_replica_runs(publisher: Installation) -> None:
    """Its Deployment says so, and replaces it only once it is gone: two would write against each other."""
    [pod] = publisher.pods()
    assert publisher.proxied(pod, "/livez") == publisher.proxied(pod, "/readyz") == "ok\n"
    assert publisher.restarts(pod) == 0
    spec = publisher.deployment["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_a_value_that_falls_moves_the_pods_that_compare(loop: Loop, scene: Scene) -> None:
    """And one that recovers changes the taint again, which moves nobody."""
    fallen, other = loop.nodes
    scene.workload("deployments", "web", scene.template(tolerations=[above()], affinity=preferring(fallen)), replicas=1)
    [(web, node)] = scene.wait_running().items()
    assert node == fallen
    uid = scene.cluster.get("pods", web, scene.name)["metadata"]["uid"]
    scene.pod("tolerant", on=fallen, tolerations=[above(value="100")])
    scene.wait_running(2)
    scene.policy()
    scene.wait_enforcing()
    loop.have(FALLEN, GOOD)
    since = time.monotonic()
    scene.wait_gone(web, uid, since, SEEN_SECONDS)
    moved = wait_until(lambda: scene.running("web-"), SEEN_SECONDS, "web to run elsewhere") or {}
    assert fallen not in moved.values()
    assert loop.taints() == {fallen: "940", other: "980"}
    assert scene.running()["tolerant"] == fallen
    evicted = [one for one in scene.cluster.items("events", scene.name) if one["reason"] == "Evicted"]
    assert ["sla=940:NoExecute is not tolerated" in one["note"] for one in evicted] == [True]
    told = [one["message"] for one in loop.events(KEY, "TaintsPublished")]
    assert any(f"{fallen} sla=980 -> 940 (from 945)" in message for message in told)
    loop.have(GOOD, GOOD)
    loop.wait_values("980", "980")
    assert scene.running("web-") == moved


def test_a_pod_that_is_deleted_ends_in_order_and_the_next_one_continues(loop: Loop, publisher: Installation) -> None:
    """Well within its grace, with 0 and without a complaint. What is published stays as it is."""
    before = [loop.record(node) for node in loop.nodes]
    [pod] = publisher.pods()
    ended = publisher.stop(pod)
    lines = [json.loads(line) for line in ended.log]
    assert ended.code == 0
    assert ended.seconds < END_SECONDS
    assert [line for line in lines if line["level"] not in ("info", "debug")] == []
    assert lines[-1]["event"] == "process-stopped"
    publisher.wait_complete()
    [following] = publisher.pods()
    wait_until(lambda: publisher.metric(following, "taintwarden_publisher_answers_total") > 1, SEEN_SECONDS, "rounds")
    assert [loop.record(node) for node in loop.nodes] == before
    loop.have(FALLEN, GOOD)
    loop.wait_values("940", "980")


def test_a_pod_that_is_deleted_as_it_starts_is_gone_at_once(publisher: Installation) -> None:
    """SIGTERM ends it while it imports, and not SIGKILL after its grace."""
    assert publisher.stop_starting() < END_SECONDS
