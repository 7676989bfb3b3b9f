"""Leadership on a real API server: one operator of several acts, another soon after it, and `kopf run` as well.

The first part is one life of two operators, played once: the leader is killed, its successor gets SIGTERM. Each
test judges one thing about it.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from controlplane import Cluster, ControlPlane, Json, Operator, Process, wait_until
from controlplane.api_server import LOOPBACK, free_port
from controlplane.health import is_healthy
from controlplane.operator_process import BYTECODE, LEAD_SECONDS, READY_SECONDS
from e2e.pod_watch import PodWatch
from e2e.stories import (
    EARLY_SECONDS,
    PATIENCE_SECONDS,
    Scene,
    accepted,
    complaints,
    denials,
    policies,
    taint,
)

POLICY = "led"
POLICIES: dict[str, Json] = {POLICY: {}}
LEASE_SECONDS, RETRY_SECONDS = 15, 2  # how long a lease outlives its holder, and how often others look
TAKEOVER_SECONDS = LEASE_SECONDS + RETRY_SECONDS
HANDOVER_SECONDS = RETRY_SECONDS + 1

pytestmark = pytest.mark.timeout(360)  # the first test waits for the whole life


@dataclass
class Life:
    """Observations of two operators; moments are of the monotonic clock."""

    scene: Scene
    operators: dict[str, Operator]
    leaders_at_first: list[str] = field(default_factory=list)
    moments: dict[str, float] = field(default_factory=dict)
    exit_code: int | None = None
    evictions: dict[str, float] = field(default_factory=dict)
    denied: int = 0

    def note(self, what: str) -> float:
        self.moments[what] = time.monotonic()
        return self.moments[what]

    def between(self, first: str, second: str) -> float:
        return self.moments[second] - self.moments[first]

    def lost(self, first: str, second: str) -> float:
        """Return the seconds that the machine lost between two moments."""
        return self.scene.watch.lost(self.moments[first], self.moments[second])

    def leaders(self) -> list[str]:
        """The operators that say they lead."""
        alive = {name: operator for name, operator in self.operators.items() if operator.process.is_running}
        return [name for name, operator in alive.items() if operator.leads]

    def wait_leader(self, but: str = "") -> str:
        """Wait until another one leads and return its name."""
        return wait_until(lambda: [name for name in self.leaders() if name != but], LEAD_SECONDS, "a leader")[0]


@pytest.fixture(scope="module")
def life(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    folder, cluster, run = tmp_path_factory.mktemp("led"), own_control_plane.client, "led"
    kubeconfig = own_control_plane.operator_kubeconfig()
    operators = {name: Operator(kubeconfig, folder, name=name) for name in ("first", "second")}
    denied = denials(cluster)
    with (
        policies(cluster, POLICIES),
        PodWatch(cluster, run) as watch,
    ):
        scene = Scene(cluster, operators["first"], watch, run, POLICY)
        cluster.create_namespace(scene.namespace)
        life = Life(scene, operators)
        try:
            live(life)
            life.denied = denials(cluster) - denied
            yield life
        finally:
            stop_all(life)
            scene.clear()


def live(life: Life) -> None:
    """One operator leads, evicts and is killed; its successor gets SIGTERM. Deadlines are in tests/blackbox."""
    for operator in life.operators.values():
        operator.start(wait_ready=False)
    for operator in life.operators.values():
        operator.wait_ready()
    leader = life.wait_leader()
    life.leaders_at_first = life.leaders()
    evict(life, "of-the-first")
    counted = lambda: {name: evictions(operator) for name, operator in life.operators.items()}  # noqa: E731
    wait_until(lambda: any(counted().values()), PATIENCE_SECONDS, "the eviction to be counted")
    life.evictions = counted()

    life.note("killed")
    life.operators[leader].kill9()
    life.moments["renewed"] = stamped(life, "renewTime")
    successor = life.wait_leader(but=leader)
    life.moments["succeeded"] = stamped(life, "acquireTime")
    evict(life, "of-the-successor")
    life.operators[leader].start()  # it follows now

    life.note("sigterm")
    life.exit_code = life.operators[successor].process.stop()
    life.wait_leader(but=successor)
    life.moments["handed over"] = stamped(life, "acquireTime")
    evict(life, "of-the-last")
    stop_all(life)  # the next test has an operator of its own


def stop_all(life: Life) -> None:
    for operator in life.operators.values():
        operator.process.stop()


def evict(life: Life, name: str) -> None:
    """Have a pod evicted by the leader."""
    node = life.scene.node(name=name)
    pod = life.scene.pod(name, node)
    tainted = life.scene.taint(node, taint("940"))
    life.scene.leaves(pod, tainted, slack=PATIENCE_SECONDS)


def evictions(operator: Operator) -> float:
    return operator.metric("taintwarden_evictions_total", outcome="evicted")


def test_one_of_two_leads(life: Life) -> None:
    assert len(life.leaders_at_first) == 1


def test_only_the_leader_evicts(life: Life) -> None:
    [leader] = life.leaders_at_first
    assert life.evictions == {name: float(name == leader) for name in life.operators}


def test_a_killed_leader_is_succeeded_when_its_lease_runs_out(life: Life) -> None:
    assert life.between("renewed", "succeeded") > LEASE_SECONDS - EARLY_SECONDS
    assert life.between("killed", "succeeded") < TAKEOVER_SECONDS + 2 + life.lost("killed", "succeeded")


def test_a_leader_that_gets_sigterm_exits_with_zero(life: Life) -> None:
    assert life.exit_code == 0


def test_a_leader_that_gets_sigterm_releases_its_lease_at_once(life: Life) -> None:
    lost = life.lost("sigterm", "handed over")
    assert life.between("sigterm", "handed over") < HANDOVER_SECONDS + 1 + lost


def test_no_pod_was_evicted_twice(own_control_plane: ControlPlane, life: Life) -> None:
    left = ("of-the-first", "of-the-successor", "of-the-last")
    assert accepted(own_control_plane, life.scene.namespace) == Counter(left)


def test_the_shipped_rights_suffice(life: Life) -> None:
    assert life.denied == 0
    assert [line for operator in life.operators.values() for line in complaints(operator)] == []


def test_kopf_run_evicts_and_stops_in_order(
    own_control_plane: ControlPlane, create_policy: Callable[..., object], namespace: str, tmp_path: Path
) -> None:
    """Plain `kopf run`, for people who know kopf: settings come from the environment."""
    cluster, port = own_control_plane.client, free_port()
    environment = {
        "TAINTWARDEN_KUBECONFIG": str(own_control_plane.operator_kubeconfig()),
        "TAINTWARDEN_HTTP_HOST": LOOPBACK,
        "TAINTWARDEN_HTTP_PORT": str(port),
    }
    command = [Path(sys.executable).with_name("kopf"), "run", "-A", "-m", "taintwarden.kopf_run"]
    process = Process("kopf", command, tmp_path / "kopf.log", {**BYTECODE, **environment}, patience_seconds=20)
    create_policy({"nodeSelector": {"matchLabels": {"run": namespace}}, "taints": [{"key": "sla"}]})
    cluster.create_node(f"{namespace}-p1", {"run": namespace}, [taint("940")])
    cluster.create_pod("p1", namespace, f"{namespace}-p1")
    try:
        process.start()
        process.wait_ready(lambda: is_healthy(f"http://{LOOPBACK}:{port}/readyz"), READY_SECONDS)
        cluster.wait_evicted("p1", namespace, LEASE_SECONDS + PATIENCE_SECONDS)
        assert lease_holder(cluster)
        assert process.stop() == 0, process.tail()
    finally:
        process.stop()
    assert lease_holder(cluster) == ""
    assert "Traceback" not in process.log.read_text()


def stamped(life: Life, field: str) -> float:
    """The moment that the lease names, by the clock of its holder: `renewTime`, or `acquireTime` of who leads."""
    lease = life.scene.cluster.get("leases", "taintwarden", "taintwarden-system")
    return time.monotonic() - (time.time() - datetime.fromisoformat(lease["spec"][field]).timestamp())


def lease_holder(cluster: Cluster) -> str:
    return cluster.get("leases", "taintwarden", "taintwarden-system")["spec"].get("holderIdentity", "")
