"""What breaks around the operator, on a real API server: its process, the server, the freshness of what it sees.

Each of the two disasters is played once, in the middle of a wave of evictions with other deadlines pending; each test
judges one thing about it. Nothing may be lost, nothing happen twice, and nobody leave who may stay.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from pathlib import Path

import pytest

from controlplane import Cluster, ControlPlane, Link, Operator, sleep_until, wait_until
from controlplane.client import resource_path
from controlplane.cluster import is_evicted
from e2e.replay.pod_watch import PodWatch
from e2e.replay.stage import hold, release
from e2e.stories import (
    EARLY_SECONDS,
    NO_LIMITS,
    PATIENCE_SECONDS,
    SLACK_SECONDS,
    PodRef,
    Scene,
    accepted,
    calls,
    complaints,
    denials,
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
STALL_SECONDS = 1  # calls reach the server less evenly than they are sent: the first ones open connections
pytestmark = pytest.mark.timeout(360)  # the first test of each disaster waits for all of it

MAINTENANCE = taint("now", "maintenance")
CRITICAL = toleration("Gt", "950")


@dataclass
class Disaster:
    """One operator in front of a wave; moments are of the monotonic clock."""

    control_plane: ControlPlane
    operator: Operator
    scene: Scene
    wave: list[PodRef] = field(default_factory=list)
    tolerant: list[PodRef] = field(default_factory=list)
    pods: dict[str, PodRef] = field(default_factory=dict)
    moments: dict[str, float] = field(default_factory=dict)
    denied: int = 0

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

    def left_at(self, pod: str) -> float:
        """When a pod of these was evicted."""
        at = self.scene.watch.evicted_at(self.pods[pod].uid)
        assert at is not None, f"{pod} was not evicted"
        return at

    def is_evicted(self, pod: PodRef) -> bool:
        return is_evicted(self.cluster.find("pods", pod.name, self.scene.namespace))


def disaster(control_plane: ControlPlane, folder: Path, tell: Callable[[Disaster], None]) -> Iterator[Disaster]:
    """Play one disaster and clean up behind it."""
    cluster = control_plane.client
    with policies(cluster, {POLICY: RATED}), PodWatch(cluster, run := f"run-{folder.name}") as watch:
        operator = Operator(control_plane.operator_kubeconfig(), folder)
        scene = Scene(cluster, operator, watch, run, POLICY)
        cluster.create_namespace(scene.namespace)
        played = Disaster(control_plane, operator, scene)
        try:
            played.prepare()
            operator.start()
            operator.wait_leading()
            denied = denials(cluster)
            tell(played)
            played.denied = denials(cluster) - denied
            operator.stop()
            yield played
        finally:
            operator.process.stop()
            scene.clear()


# -- kill -9 in the middle of a wave: the next process waits for the lease, takes over and goes on

KEPT_SECONDS = 45  # a deadline after the wave, which takes 6 s and some 20 without a leader
MISSED_SECONDS = 12  # one that passes while nobody leads, and not before the leader is killed
SHORT_SECONDS = 4


@pytest.fixture(scope="class")
def killed(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disaster]:
    yield from disaster(own_control_plane, tmp_path_factory.mktemp("killed"), kill)


def kill(disaster: Disaster) -> None:
    scene, pods = disaster.scene, disaster.pods
    good = taint("980")
    nodes = {
        "tolerated": scene.node(name="tolerated"),
        "violated": scene.node(good, name="violated"),
        "missed": scene.node(name="missed"),
        "recovers": scene.node(good, name="recovers"),
        "falls-unseen": scene.node(good, name="falls-unseen"),
        "cleaned": scene.node(name="cleaned"),
    }
    for name, given in {
        "tolerated": toleration("Exists", "", KEPT_SECONDS, "maintenance"),
        "violated": toleration("Gt", "950", KEPT_SECONDS),
        "missed": toleration("Exists", "", MISSED_SECONDS, "maintenance"),
        "recovers": toleration("Gt", "950", MISSED_SECONDS),
        "falls-unseen": toleration("Gt", "950", SHORT_SECONDS),
        "cleaned": toleration("Exists", "", MISSED_SECONDS, "maintenance"),
    }.items():
        pods[name] = scene.pod(name, nodes[name], given)
    for name in ("tolerated", "missed", "cleaned"):
        disaster.moments[name] = scene.taint(nodes[name], MAINTENANCE)
    for name in ("violated", "recovers"):
        disaster.moments[name] = scene.taint(nodes[name], taint("940"))
    disaster.begin()
    disaster.wait_half_way()
    disaster.operator.kill9()
    disaster.note("killed")
    scene.taint(nodes["recovers"], taint("960"))
    scene.taint(nodes["cleaned"])
    disaster.moments["falls-unseen"] = scene.taint(nodes["falls-unseen"], taint("940"))
    disaster.operator.start()
    disaster.operator.wait_leading()
    disaster.note("leads")
    wait_until(lambda: all(map(disaster.is_evicted, disaster.wave)), LONG_WAIT_SECONDS, "the wave to be gone")
    latest = max(disaster.moments["tolerated"], disaster.moments["violated"])
    scene.stays(*disaster.tolerant, until=latest + KEPT_SECONDS + SLACK_SECONDS)


class TestTheProcessIsKilled:
    def test_the_whole_wave_is_gone(self, killed: Disaster) -> None:
        assert [pod.name for pod in killed.wave if killed.scene.watch.evicted_at(pod.uid) is None] == []

    def test_no_pod_is_evicted_twice_and_none_that_may_stay(self, killed: Disaster) -> None:
        others = ["tolerated", "violated", "missed", "falls-unseen"]
        expected = Counter([*(pod.name for pod in killed.wave), *others])
        assert accepted(killed.control_plane, killed.scene.namespace) == expected

    @pytest.mark.parametrize("name", ["tolerated", "violated"])
    def test_a_deadline_is_where_it_was(self, killed: Disaster, name: str) -> None:
        """Whether the taint tells its time or, as after `kubectl taint` and a change of the value, only we know it."""
        due = killed.moments[name] + KEPT_SECONDS
        at = killed.left_at(name)
        assert due - EARLY_SECONDS <= at <= due + killed.scene.slack(due, at)

    def test_a_deadline_that_passed_meanwhile_is_made_up_for(self, killed: Disaster) -> None:
        at, leads = killed.left_at("missed"), killed.moments["leads"]
        assert killed.moments["killed"] < at < leads + PODS / PER_SECOND + killed.scene.slack(leads, at)

    @pytest.mark.parametrize("name", ["recovers", "cleaned"])
    def test_what_became_good_meanwhile_counts(self, killed: Disaster, name: str) -> None:
        assert killed.scene.watch.evicted_at(killed.pods[name].uid) is None

    def test_what_became_bad_meanwhile_gets_its_whole_grace(self, killed: Disaster) -> None:
        assert killed.left_at("falls-unseen") >= killed.moments["falls-unseen"] + SHORT_SECONDS - EARLY_SECONDS

    def test_the_rate_holds_over_both_lives(self, killed: Disaster) -> None:
        asked = calls(killed.control_plane, killed.scene.namespace)
        ahead = time.time() - time.monotonic()
        moments = [datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp() - ahead for entry in asked]
        for first, last in combinations(sorted(moments), 2):
            sent_within = last - first + STALL_SECONDS + killed.scene.lost(first, last)
            assert sum(first <= at <= last for at in moments) <= PER_SECOND * sent_within + 1

    def test_the_shipped_rights_suffice(self, killed: Disaster) -> None:
        assert killed.denied == 0
        assert complaints(killed.operator) == []


# -- the API server is killed in the middle of a wave and comes back when the lease has run out

AWAY_SECONDS = 20
SPARED_SECONDS = 75  # a deadline soon after the server is back


@pytest.fixture(scope="class")
def outage(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disaster]:
    yield from disaster(own_control_plane, tmp_path_factory.mktemp("outage"), go_away)


def go_away(disaster: Disaster) -> None:
    control_plane, scene, pods = disaster.control_plane, disaster.scene, disaster.pods
    cleaned = scene.node(name="cleaned")
    pods["spared"] = scene.pod("spared", cleaned, toleration("Exists", "", SPARED_SECONDS, "maintenance"))
    scene.taint(cleaned, MAINTENANCE)
    disaster.begin()
    disaster.wait_half_way()
    control_plane.stop_api_server(kill=True)
    stopped = disaster.note("stopped")
    sleep_until(stopped + AWAY_SECONDS)
    disaster.moments["live while away"] = float(disaster.operator.is_live())
    control_plane.start_api_server()
    disaster.note("back")
    scene.taint(cleaned)
    assert time.monotonic() < disaster.moments["fell"] + SPARED_SECONDS - 1, "this machine is too busy to judge by"
    with policies(disaster.cluster, {"after": {}}):
        node = scene.node(taint("940"), name="after", policy="after")
        pods["after"] = scene.pod("after", node)
        wait_until(lambda: disaster.is_evicted(pods["after"]), LONG_WAIT_SECONDS, "the new policy to act")
        disaster.note("seen again")
        wait_until(lambda: all(map(disaster.is_evicted, disaster.wave)), LONG_WAIT_SECONDS, "the wave to be gone")
        sleep_until(disaster.moments["fell"] + SPARED_SECONDS + SLACK_SECONDS)
    disaster.moments["live at last"] = float(disaster.operator.is_live())


class TestTheServerIsAway:
    def test_the_process_outlives_it(self, outage: Disaster) -> None:
        assert outage.moments["live while away"] == outage.moments["live at last"] == 1.0
        started = [line for line in outage.operator.logs() if line.get("event") == "operator-started"]
        assert len(started) == 1
        assert outage.operator.process.exit_code == 0

    def test_it_waits_quietly(self, outage: Disaster) -> None:
        """Nobody is served by hundreds of attempts a second, least of all a server that has just come back."""
        lines = Counter((line.get("event"), line.get("resource")) for line in outage.operator.logs())
        assert lines.pop(("eviction-settled", None)) < 10 * PODS
        assert {line: count for line, count in lines.items() if count > PODS + AWAY_SECONDS} == {}
        assert all(count < AWAY_SECONDS for (event, _), count in lines.items() if event == "watch-restarted")

    def test_nothing_is_lost(self, outage: Disaster) -> None:
        assert [pod.name for pod in outage.wave if not outage.is_evicted(pod)] == []

    def test_no_pod_is_evicted_twice_and_none_that_may_stay(self, outage: Disaster) -> None:
        """The server may have died between an eviction and its line in the audit log, so lines may be missing."""
        expected = Counter([*(pod.name for pod in outage.wave), "after"])
        assert accepted(outage.control_plane, outage.scene.namespace) <= expected

    def test_pods_that_tolerate_it_stay(self, outage: Disaster) -> None:
        assert [pod.name for pod in outage.tolerant if outage.is_evicted(pod)] == []

    def test_what_it_saw_before_the_outage_evicts_nobody_after_it(self, outage: Disaster) -> None:
        """The taint went as soon as the server was back, and before the deadline."""
        assert not outage.is_evicted(outage.pods["spared"])

    def test_it_sees_again_soon_after(self, outage: Disaster) -> None:
        """A policy, a node and a pod that are all new."""
        back, seen = outage.moments["back"], outage.moments["seen again"]
        assert seen - back < 20 + outage.scene.watch.lost(back, seen)

    def test_leadership_was_given_up_meanwhile(self, outage: Disaster) -> None:
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
