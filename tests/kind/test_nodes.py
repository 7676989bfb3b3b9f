"""Nodes that die and come back, with node-lifecycle as prompt as in a usual cluster."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
import yaml

from controlplane import wait_until
from controlplane.binaries import ROOT
from kind.control_plane import Component
from kind.installation import Installation
from kind.nodes import cut_off, frozen, switched_off
from kind.scene import KEY, LEAVE_SECONDS, Scene, above, is_ready

MONITOR_SECONDS = 16
SAMPLE = ROOT / "deploy" / "samples" / "replacing-built-in.yaml"
UNREACHABLE = "node.kubernetes.io/unreachable"


@pytest.fixture(scope="module")
def manager_arguments(cluster) -> Iterator[Callable[..., None]]:
    """Change arguments of the controller manager, which its kubelet then starts again. They come back in the end."""
    manager = Component(cluster, "kube-controller-manager")
    before = manager.manifest

    def change(**arguments: str) -> None:
        text = before
        for name, value in arguments.items():
            text, number = re.subn(rf"--{name.replace('_', '-')}=\S+", f"--{name.replace('_', '-')}={value}", text)
            assert number == 1, name
        manager.run_by(text)

    yield change
    manager.run_by(before)


@pytest.fixture(scope="module")
def prompt(manager_arguments) -> None:
    """A node counts as dead after seconds; for tests with nodes of their own it is an hour."""
    manager_arguments(node_monitor_grace_period=f"{MONITOR_SECONDS}s")


@pytest.fixture
def replacing(cluster) -> Iterator[None]:
    """The policy that does what the built-in controller would."""
    policy = yaml.safe_load(SAMPLE.read_text())
    policy["spec"]["mode"] = "Enforce"
    cluster.apply(policy)
    yield
    cluster.delete("taintevictionpolicies", policy["metadata"]["name"])


@pytest.mark.usefixtures("prompt", "replacing")
@pytest.mark.parametrize("away", [frozen, switched_off, cut_off])
def test_a_node_that_is_away_loses_its_pods_and_comes_back(
    scene: Scene, operator: Installation, away: Callable[[str], AbstractContextManager[None]]
) -> None:
    leading = operator.leader()["spec"]["nodeName"]
    node = next(one for one in scene.workers if one != leading)
    short = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    template = scene.template(grace_seconds=1, tolerations=[short])
    template["spec"]["affinity"] = preferring(node)
    scene.workload("deployments", "web", template, replicas=1)
    assert list(scene.wait_running().values()) == [node]
    with away(node):
        began = time.monotonic()
        scene.wait_running(off=node, seconds=MONITOR_SECONDS + 60)
        assert time.monotonic() - began > MONITOR_SECONDS / 2
    wait_until(lambda: is_ready(scene.cluster.get("nodes", node)), 90, f"{node} to be ready")

    def taints() -> set[str]:
        return {one["key"] for one in scene.cluster.get("nodes", node)["spec"].get("taints", [])}

    wait_until(lambda: not taints(), 60, "node-lifecycle to take its taints off")
    wait_until(lambda: len(scene.pods()) == 1, 60, "the kubelet to end what was evicted")
    operator.wait_complete()


def test_native_exists_leaves_decision_to_the_policy(scene: Scene, manager_arguments, operator: Installation) -> None:
    """The built-in controller evicts pods without a toleration; a native Exists leaves the decision to the policy."""
    manager_arguments(controllers="*,bootstrapsigner,tokencleaner")
    node = scene.workers[0]
    native = {"key": KEY, "operator": "Exists", "effect": "NoExecute"}
    extended = {"taintwarden.io/tolerations": f'[{{"key": "{KEY}", "operator": "Gt", "value": "950"}}]'}
    uids = {}
    for name, tolerations, annotations in (("web", [native], extended), ("plain", [], {}), ("gt", [above()], {})):
        template = scene.template(on=node, grace_seconds=1, tolerations=tolerations)
        template["metadata"] |= {"name": name, "annotations": annotations}
        uids[name] = scene.cluster.create("pods", template, scene.name)["metadata"]["uid"]
    scene.wait_running(3)
    scene.policy(mode="DryRun")
    scene.wait_gone("plain", uids["plain"], scene.taint(node, "980"))
    assert set(scene.running()) == {"web", "gt"}
    scene.wait_gone("gt", uids["gt"], scene.taint(node, "940"))
    assert set(scene.running()) == {"web"}
    since = time.monotonic()
    scene.cluster.patch("taintevictionpolicies", scene.name, {"spec": {"mode": "Enforce"}})
    scene.wait_gone("web", uids["web"], since, LEAVE_SECONDS)
    assert operator.leader()


def preferring(node: str) -> dict:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}}
