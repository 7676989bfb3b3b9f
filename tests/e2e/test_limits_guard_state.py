"""What a guard knows outlives the operator that knew it: the leader is killed, its successor knows as much.

One life of two operators, played once; each test judges one thing about it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from controlplane import ControlPlane, Json, Operator, wait_until
from controlplane.operator_process import LEAD_SECONDS
from e2e.limit_scenes import BAD, DEMANDING, GOOD, OBSERVED_SECONDS
from e2e.replay.pod_watch import PodWatch
from e2e.stories import PATIENCE_SECONDS, PodRef, Scene, accepted, complaints, conditions, events, policies

OPEN, SPENT = "guard-open", "guard-spent"
ALLOWED = 5
LIMITS = {"limits": {"base": "None", "guard": {"minPods": ALLOWED, "maxPercent": 20, "settleSeconds": 2}}}

pytestmark = pytest.mark.timeout(360)  # the first test waits for the whole life


@dataclass
class Life:
    """What happened; moments are of the monotonic clock."""

    control_plane: ControlPlane
    operators: list[Operator]
    scenes: dict[str, Scene]
    pods: dict[str, list[PodRef]] = field(default_factory=dict)
    before: Json = field(default_factory=dict)
    """Condition and status of the open guard when its leader was killed."""
    after: Json = field(default_factory=dict)
    """The same under the successor."""
    told: dict[str, int] = field(default_factory=dict)
    """How often each reason was told about the open guard, while it was."""

    def leader(self, but: Operator | None = None) -> Operator | None:
        alive = [operator for operator in self.operators if operator.process.is_running and operator is not but]
        return next((operator for operator in alive if operator.leads), None)

    def fill(self, name: str, policy: str, pods: int) -> str:
        """A node with so many pods, known by this name from now on."""
        scene = self.scenes[policy]
        node = scene.node(GOOD, name=name)
        self.pods[name] = [scene.pod(f"{name}-{index}", node, DEMANDING) for index in range(pods)]
        return node

    def evicted(self, name: str) -> list[str]:
        watch = self.scenes[OPEN].watch
        watch.check()
        return [pod.name for pod in self.pods[name] if watch.evicted_at(pod.uid) is not None]

    def guard(self, policy: str) -> Json:
        """The condition GuardTripped and what the status says of the guard."""
        cluster = self.control_plane.client
        status = cluster.get("taintevictionpolicies", policy).get("status", {})
        return {"condition": conditions(cluster, policy).get("GuardTripped", {}), "guard": status.get("guard", {})}

    def has_told(self, policy: str, pods: int) -> bool:
        """Whether the condition and the guard's record, of different writers, both tell of so many pods, each why."""
        found = self.guard(policy)
        would_evict, cause = found["guard"].get("wouldEvict"), found["guard"].get("cause")
        message = found["condition"].get("message", "")
        return would_evict == pods and str(pods) in message.split() and bool(cause) and "Still bad: node" in message

    def wait_open(self, policy: str, status: str) -> None:
        what = f"GuardTripped of {policy} to be {status}"
        wait_until(lambda: self.guard(policy)["condition"].get("status") == status, PATIENCE_SECONDS, what)


@pytest.fixture(scope="module")
def life(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    folder, cluster, run = tmp_path_factory.mktemp("guards"), own_control_plane.client, "guards"
    kubeconfig = own_control_plane.operator_kubeconfig()
    operators = [Operator(kubeconfig, folder, name=name) for name in ("first", "second")]
    with policies(cluster, {OPEN: LIMITS, SPENT: LIMITS}), PodWatch(cluster, run) as watch:
        scenes = {name: Scene(cluster, operators[0], watch, run, name) for name in (OPEN, SPENT)}
        for scene in scenes.values():
            cluster.create_namespace(scene.namespace)
        life = Life(own_control_plane, operators, scenes)
        try:
            live(life)
            yield life
        finally:
            for operator in operators:
                operator.process.stop()
            for scene in scenes.values():
                scene.clear()


def live(life: Life) -> None:
    """A guard opens, another lets pods go; their leader is killed; the same taints again, then the values come back."""
    cluster = life.control_plane.client
    for operator in life.operators:
        operator.start(wait_ready=False)
    for operator in life.operators:
        operator.wait_ready()
    leader = wait_until(life.leader, LEAD_SECONDS, "a leader")
    many, few = life.fill("many", OPEN, 2 * ALLOWED), life.fill("few", SPENT, ALLOWED - 1)
    for node in (many, few):
        cluster.set_taints(node, [BAD])
    life.wait_open(OPEN, "True")
    wait_until(lambda: len(life.evicted("few")) == ALLOWED - 1, PATIENCE_SECONDS, "the few to leave")
    wait_until(lambda: life.has_told(OPEN, 2 * ALLOWED), PATIENCE_SECONDS, "the guard to tell all that would leave")
    life.before = life.guard(OPEN)

    leader.kill9()
    more = life.fill("more", SPENT, ALLOWED - 1)
    cluster.set_taints(more, [BAD])
    wait_until(lambda: life.leader(but=leader), LEAD_SECONDS, "its successor")
    life.wait_open(SPENT, "True")
    time.sleep(OBSERVED_SECONDS)  # nothing tells that nothing happens
    life.after = life.guard(OPEN)

    cluster.set_taints(many, [GOOD])
    life.wait_open(OPEN, "False")
    wait_until(lambda: events(cluster, "default", OPEN, "GuardArmed"), PATIENCE_SECONDS, "the Event")
    life.told = {reason: len(events(cluster, "default", OPEN, reason)) for reason in ("GuardTripped", "GuardArmed")}


def test_an_open_guard_stays_open(life: Life) -> None:
    assert life.after["condition"]["status"] == "True"
    assert life.after["guard"]["open"] is True


def test_it_is_open_since_it_opened(life: Life) -> None:
    assert life.after["guard"]["since"] == life.before["guard"]["since"]
    assert life.after["condition"]["lastTransitionTime"] == life.before["condition"]["lastTransitionTime"]


def test_it_still_says_why(life: Life) -> None:
    assert life.after["guard"]["cause"] == life.before["guard"]["cause"] != ""
    assert life.after["guard"]["wouldEvict"] == life.before["guard"]["wouldEvict"] == 2 * ALLOWED
    assert life.after["condition"]["message"] == life.before["condition"]["message"]


def test_it_opens_once_and_closes_once(life: Life) -> None:
    assert life.told == {"GuardTripped": 1, "GuardArmed": 1}


def test_an_open_guard_let_nobody_go(life: Life) -> None:
    assert life.evicted("many") == []


def test_evictions_before_count_for_the_successor(life: Life) -> None:
    """Each wave alone is allowed; both in one window are not."""
    assert life.evicted("more") == []


def test_nothing_was_asked_for_twice(life: Life) -> None:
    namespace = life.scenes[SPENT].namespace
    assert accepted(life.control_plane, namespace) == {pod.name: 1 for pod in life.pods["few"]}


def test_nothing_was_complained_about(life: Life) -> None:
    assert [line for operator in life.operators for line in complaints(operator)] == []
