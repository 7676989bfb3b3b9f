"""The migration page step by step: its commands as written, beside the built-in controller and then without it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from controlplane import Cluster, Json, Operator, Process, WorkingCluster, is_evicted, wait_until
from controlplane.binaries import ROOT
from docs.pages import Page
from e2e.runbook import SHOWN, Desk, commands

pytestmark = pytest.mark.timeout(300)

PAGE = ROOT / "docs" / "migration.md"
SAMPLE = ROOT / "deploy" / "samples" / "replacing-built-in.yaml"
BUILT_IN = "taint-eviction-controller,node-lifecycle-controller"
"""The one needs an index of the other, which leaves nodes alone for so long:"""
PATIENT = ("--node-monitor-grace-period=900s",)
NODE, ZONE, SPACE = "a1", "zone-a", "shop"
TRIAL: Json = {"key": "example.com/trial", "value": "1", "effect": "NoExecute"}
WAIT_SECONDS = 60.0


@pytest.fixture(scope="module")
def ground(own_working_cluster: WorkingCluster) -> WorkingCluster:
    """One node that can be spared, which the words of the page name."""
    client = own_working_cluster.client
    client.create_node(NODE, {"topology.kubernetes.io/zone": ZONE}, [])
    client.create_namespace(SPACE)
    return own_working_cluster


@pytest.fixture(scope="module")
def built_in(ground: WorkingCluster) -> Process:
    """The controller that is replaced, in a kube-controller-manager of its own."""
    return ground.start_controller_manager(BUILT_IN, PATIENT)


@pytest.fixture(scope="module")
def desk(ground: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Where the commands are typed, while the operator runs."""
    folder = tmp_path_factory.mktemp("migration")
    with Operator(ground.operator_kubeconfig(), folder) as operator:
        operator.wait_leading()
        yield Desk(folder / "desk", ground.admin_kubeconfig)


def as_kubernetes() -> Json:
    """The policy that the page refers to."""
    blocks = Page(ROOT / "docs" / "policies.md").blocks
    text = next(one.text for one in blocks if one.language == "yaml" and "name: as-kubernetes" in one.text)
    found: Json = yaml.safe_load(text)
    return found


def reasons(cluster: Cluster) -> dict[str, list[str]]:
    """The pods that Events are about, by reason."""
    found: dict[str, list[str]] = {}
    for event in cluster.items("events", SPACE):
        about = event.get("regarding") or event["involvedObject"]
        found.setdefault(event["reason"], []).append(about["name"])
    return found


def about(cluster: Cluster, reason: str) -> set[str]:
    return set(reasons(cluster).get(reason, []))


@contextmanager
def held(process: Process) -> Iterator[None]:
    """It stands still for a while."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def test_it_is_replaced_step_by_step(ground: WorkingCluster, desk: Desk, built_in: Process) -> None:
    client, steps = ground.client, iter(list(filter(None, map(str.strip, commands(PAGE, "Replace it")))))

    def follow(number: int) -> list[str]:
        """Type the next commands. Each has to work; what it shows may be a problem."""
        said = []
        for _ in range(number):
            done = desk.type(next(steps), {})
            assert done.code in SHOWN, (done.command, done.output)
            said.append(done.output)
        return said

    # 2. Take stock.
    before = [client.create_pod(f"before-{number}", SPACE, node=NODE)["metadata"]["name"] for number in range(5)]
    follow(2)
    # 3. Both are seen for the same pod.
    client.apply(as_kubernetes())
    wait_until(lambda: "True" in _accepted(client, "as-kubernetes"), WAIT_SECONDS, "the policy to be accepted")
    with held(built_in):  # or all might be gone before the operator has seen the taint
        client.set_taints(NODE, [TRIAL])
        wait_until(lambda: about(client, "EvictionDryRun"), WAIT_SECONDS, "the operator to report them")
    wait_until(lambda: not client.items("pods", SPACE), WAIT_SECONDS, "the built-in controller to evict the pods")
    wait_until(lambda: about(client, "TaintManagerEviction") == set(before), WAIT_SECONDS, "its Events")
    rehearsed, actual, _ = follow(3)
    assert "pod/before-" in rehearsed
    assert all(f"pod/{name}" in actual for name in before)
    client.set_taints(NODE, [])
    # 4. What a whole zone would do.
    client.apply(yaml.safe_load(SAMPLE.read_text()))
    follow(1)
    # 5. Enforce, then remove the other.
    follow(2)
    # 6. Switch it off.
    built_in.stop()
    # 7. Verify.
    client.create_pod("after", SPACE, node=NODE)
    follow(1)
    wait_until(lambda: "after" in reasons(client).get("Evicted", []), WAIT_SECONDS, "the Event of the operator")
    assert is_evicted(client.find("pods", "after", SPACE))
    evicted, by_built_in, _ = follow(3)
    assert "pod/after" in evicted
    assert "pod/after" not in by_built_in
    assert list(steps) == []


def test_going_back(ground: WorkingCluster, desk: Desk) -> None:
    """The built-in controller runs again before the policy is paused."""
    again = ground.start_controller_manager(BUILT_IN, PATIENT)
    [pause] = [one.strip() for one in commands(PAGE, "Go back") if "taintwarden pause" in one]
    done = desk.type(pause, {})
    assert done.code == 0, done.output
    ground.client.create_pod("back", SPACE, node=NODE)
    ground.client.set_taints(NODE, [TRIAL])
    wait_until(
        lambda: "back" in reasons(ground.client).get("TaintManagerEviction", []),
        WAIT_SECONDS,
        "the built-in controller",
    )
    assert "back" not in reasons(ground.client).get("Evicted", [])
    again.stop()


def _accepted(client: Cluster, name: str) -> str:
    status = client.get("taintevictionpolicies", name).get("status", {})
    return next((one["status"] for one in status.get("conditions", []) if one["type"] == "Accepted"), "")
