"""What breaks around the operator, on a real API server: the server, and the freshness of what it sees.

The outage is played once, in the middle of a wave of evictions with another deadline pending; each test judges one
thing about it. No pod may be forgotten, evicted twice, or evicted though it may stay. Restarts are in tests/blackbox.
"""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from controlplane import Cluster, ControlPlane, Link, Operator, sleep_until, wait_until
from controlplane.client import resource_path
from controlplane.cluster import is_evicted
from e2e.replay.pod_watch import PodWatch
from e2e.replay.stage import hold, release
from e2e.stories import (
    NO_LIMITS,
    PATIENCE_SECONDS,
    SLACK_SECONDS,
    PodRef,
    Scene,
    accepted,
    policies,
    taint,
    toleration,
)

POLICY = "wave"
PODS, PER_SECOND = 60, 10
RATED = {
    "taints": [{"key": "sla"}, {"key": "maintenance"}],
    "limits": {**NO_LIMITS, "evictionsPerSecond": PER_SECOND, "burst": 1},
}
LONG_WAIT_SECONDS = 60
pytestmark = pytest.mark.timeout(360)  # the first test of each disaster waits for all of it

MAINTENANCE = taint("now", "maintenance")
CRITICAL = toleration("Gt", "950")


@dataclass
class Outage:
    """An operator in front of a wave; moments are of the monotonic clock."""

    control_plane: ControlPlane
    operator: Operator
    scene: Scene
    wave: list[PodRef] = field(default_factory=list)
    tolerant: list[PodRef] = field(default_factory=list)
    pods: dict[str, PodRef] = field(default_factory=dict)
    moments: dict[str, float] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        return self.scene.cluster

    def note(self, what: str) -> float:
        self.moments[what] = time.monotonic()
        return self.moments[what]

    def prepare(self) -> None:
        """Nodes with the pods of the wave and with pods that tolerate what is coming."""
        nodes = [self.scene.node(taint("980"), name=f"wave-{index}") for index in range(3)]
        wave = [(f"wave-{index}", nodes[index % 3], CRITICAL) for index in range(PODS)]
        tolerant = [(f"tolerant-{index}", nodes[index % 3], toleration("Gt", "900")) for index in range(9)]
        with ThreadPoolExecutor(8) as pool:  # some hundred requests
            pods = list(pool.map(lambda given: self.scene.pod(*given), wave + tolerant))
        self.wave, self.tolerant = pods[:PODS], pods[PODS:]

    def begin(self) -> None:
        """The value of every node falls."""
        for index in range(3):
            self.scene.taint(f"{self.scene.namespace}-wave-{index}", taint("940"))
        self.note("fell")

    def gone(self) -> int:
        """How many evictions of the wave the server has accepted."""
        return sum(name.startswith("wave-") for name in accepted(self.control_plane, self.scene.namespace))

    def wait_half_way(self) -> None:
        wait_until(lambda: self.gone() >= PODS // 3, PATIENCE_SECONDS, "a third of the wave to be gone")
        assert self.gone() < PODS, "this machine is too busy to judge by"

    def is_evicted(self, pod: PodRef) -> bool:
        return is_evicted(self.cluster.find("pods", pod.name, self.scene.namespace))


@pytest.fixture(scope="class")
def outage(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    cluster, folder, run = own_control_plane.client, tmp_path_factory.mktemp("outage"), "outage"
    with policies(cluster, {POLICY: RATED}), PodWatch(cluster, run) as watch:
        operator = Operator(own_control_plane.operator_kubeconfig(), folder)
        scene = Scene(cluster, operator, watch, run, POLICY)
        cluster.create_namespace(scene.namespace)
        played = Outage(own_control_plane, operator, scene)
        try:
            played.prepare()
            operator.start()
            operator.wait_leading()
            go_away(played)
            operator.stop()
            yield played
        finally:
            operator.process.stop()
            scene.clear()


# -- the API server is killed in the middle of a wave and comes back when the lease has run out

AWAY_SECONDS = 20
SPARED_SECONDS = 60  # a deadline soon after the server is back


def go_away(outage: Outage) -> None:
    control_plane, scene, pods = outage.control_plane, outage.scene, outage.pods
    cleaned = scene.node(name="cleaned")
    pods["spared"] = scene.pod("spared", cleaned, toleration("Exists", "", SPARED_SECONDS, "maintenance"))
    scene.taint(cleaned, MAINTENANCE)
    outage.begin()
    outage.wait_half_way()
    control_plane.stop_api_server(kill=True)
    stopped = outage.note("stopped")
    sleep_until(stopped + AWAY_SECONDS)
    outage.moments["live while away"] = float(outage.operator.is_live())
    control_plane.start_api_server()
    outage.note("back")
    scene.taint(cleaned)
    assert time.monotonic() < outage.moments["fell"] + SPARED_SECONDS - 1, "this machine is too busy to judge by"
    with policies(outage.cluster, {"after": {}}):
        node = scene.node(taint("940"), name="after", policy="after")
        pods["after"] = scene.pod("after", node)
        wait_until(lambda: outage.is_evicted(pods["after"]), LONG_WAIT_SECONDS, "the new policy to act")
        outage.note("seen again")
        wait_until(lambda: all(map(outage.is_evicted, outage.wave)), LONG_WAIT_SECONDS, "the wave to be gone")
        sleep_until(outage.moments["fell"] + SPARED_SECONDS + SLACK_SECONDS)
    outage.moments["live at last"] = float(outage.operator.is_live())


class TestTheServerIsAway:
    def test_the_process_outlives_it(self, outage: Outage) -> None:
        assert outage.moments["live while away"] == outage.moments["live at last"] == 1.0
        started = [line for line in outage.operator.logs() if line.get("event") == "operator-started"]
        assert len(started) == 1
        assert outage.operator.process.exit_code == 0

    def test_it_waits_quietly(self, outage: Outage) -> None:
        """Nobody is served by hundreds of attempts a second, least of all a server that has just come back."""
        lines = Counter((line.get("event"), line.get("resource")) for line in outage.operator.logs())
        assert lines.pop(("eviction-settled", None)) < 10 * PODS
        assert {line: count for line, count in lines.items() if count > PODS + AWAY_SECONDS} == {}
        assert all(count < AWAY_SECONDS for (event, _), count in lines.items() if event == "watch-restarted")

    def test_nothing_is_lost(self, outage: Outage) -> None:
        assert [pod.name for pod in outage.wave if not outage.is_evicted(pod)] == []

    def test_no_pod_is_evicted_twice_and_none_that_may_stay(self, outage: Outage) -> None:
        """The server may have died between an eviction and its line in the audit log, so lines may be missing."""
        expected = Counter([*(pod.name for pod in outage.wave), "after"])
        assert accepted(outage.control_plane, outage.scene.namespace) <= expected

    def test_pods_that_tolerate_it_stay(self, outage: Outage) -> None:
        assert [pod.name for pod in outage.tolerant if outage.is_evicted(pod)] == []

    def test_what_it_saw_before_the_outage_evicts_nobody_after_it(self, outage: Outage) -> None:
        """The taint went as soon as the server was back, and before the deadline."""
        assert not outage.is_evicted(outage.pods["spared"])

    def test_it_sees_again_soon_after(self, outage: Outage) -> None:
        """A policy, a node and a pod that are all new."""
        back, seen = outage.moments["back"], outage.moments["seen again"]
        assert seen - back < 20 + outage.scene.watch.lost(back, seen)

    def test_leadership_was_given_up_meanwhile(self, outage: Outage) -> None:
        """Whoever cannot renew the lease must not act: another may hold it."""
        told = [line["event"] for line in outage.operator.logs() if line.get("event", "").startswith("leadership-")]
        assert told == ["leadership-gained", "leadership-lost", "leadership-gained", "leadership-lost"]


SILENT_SECONDS = 15  # longer than a watch may be silent before a node is read
FRESH = "fresh"


@pytest.fixture(scope="class")
def scene(own_control_plane: ControlPlane, link: Link, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    cluster, folder = own_control_plane.client, tmp_path_factory.mktemp("fresh")
    kubeconfig = own_control_plane.operator_kubeconfig(link.url)
    with (
        policies(cluster, {FRESH: {}}),
        Operator(kubeconfig, folder) as operator,
        PodWatch(cluster, "fresh") as watch,
    ):
        operator.wait_leading()
        scene = Scene(cluster, operator, watch, "fresh", FRESH)
        cluster.create_namespace(scene.namespace)
        yield scene
        scene.clear()


@pytest.fixture(scope="class")
def link(own_control_plane: ControlPlane) -> Link:
    return own_control_plane.link()


class TestWhatItSeesIsOld:
    """A pod bound just after a taint went must not be judged by the taint: upstream evicts it."""

    @staticmethod
    def knows(scene: Scene, link: Link, *nodes: str) -> bool:
        """Whether the history that the operator writes is written, and has come back in the watch."""
        found = [scene.cluster.get("nodes", node)["metadata"] for node in nodes]
        return all(
            "taintwarden.io/taint-history" in node.get("annotations", {})
            and link.has_delivered(resource_path("nodes"), node["resourceVersion"])
            for node in found
        )

    def test_a_pod_is_judged_by_the_node_it_was_bound_to(self, scene: Scene, link: Link) -> None:
        cleaned, tainted = scene.node(taint("940"), name="cleaned"), scene.node(taint("940"), name="tainted")
        began = time.monotonic()
        before = [scene.pod(f"before-{node}", node) for node in (cleaned, tainted)]
        for pod in before:
            scene.leaves(pod, began)
        wait_until(lambda: self.knows(scene, link, cleaned, tainted), 10, "the operator to see what it wrote")
        hold(link)
        scene.taint(cleaned)
        bound = time.monotonic()
        spared, leaves = scene.pod("spared", cleaned), scene.pod("leaves", tainted)
        scene.leaves(leaves, bound)
        scene.stays(spared, until=bound + 5)
        release(link)
        scene.stays(spared, until=time.monotonic() + SLACK_SECONDS)

    def test_a_value_that_recovers_while_the_watch_is_silent_spares_its_pods(self, scene: Scene, link: Link) -> None:
        """A connection may be open and dead: a node of which nothing is heard is read before pods of it are evicted."""
        node = scene.node(taint("980"), name="silent")
        pod = scene.pod("recovered", node, toleration("Gt", "950", SILENT_SECONDS))
        fell = scene.taint(node, taint("940"))
        scene.event(pod, "EvictionScheduled")
        hold(link)
        scene.taint(node, taint("980"))
        scene.stays(pod, until=fell + SILENT_SECONDS + SLACK_SECONDS)
        release(link)
        scene.event(pod, "EvictionCancelled")
