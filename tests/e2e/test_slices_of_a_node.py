"""A kubelet writes devices with the certificate of its node, while pods of other nodes are evicted.

One story, played once. Before the operator starts a node has many ResourceSlices of one pool, and a policy selects
taints of devices of every driver; while pods of another node are evicted, the node renames its slices all the time.
"""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from controlplane import ApiError, Cluster, ControlPlane, Json, Operator
from controlplane.operator_process import BYTECODE, EXECUTABLE
from e2e.answered import FIRST_SECONDS, LATEST_SECONDS, TAINT, Seen, Unharmed
from e2e.stories import policy

pytestmark = pytest.mark.timeout(300)  # the first test waits for the whole story

NAMESPACE, NODE, WRITING, POLICY = "slices", "evicting", "writing", "slices"
SLICES, DEVICES, THREADS = 2_000, 64, 8
VICTIMS, EVERY_SECONDS = 20, 0.5
EXPLAINED_SECONDS = 20.0
"""Maximum duration of `explain`: two seconds on an idle machine, a minute if each slice costs the work of all."""


@dataclass
class Story(Seen):
    refused: str = ""
    """Why the node may write no slice of another one."""
    renamed: int = 0
    explained: subprocess.CompletedProcess[str] | None = None
    explained_seconds: float = 0.0
    left_out: float = 0.0


def slice_of(name: str, node: str = WRITING) -> Json:
    taint = {"key": "gpu.example.com/health", "value": name, "effect": "NoExecute"}
    devices = [{"name": f"{name}-{number}", "taints": [taint]} for number in range(DEVICES)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": SLICES}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def story(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder, cluster, played = tmp_path_factory.mktemp("slices"), own_control_plane.client, Story()
    with ExitStack() as stack:
        cluster.create_namespace(NAMESPACE)
        stack.callback(cluster.delete_all, "pods", NAMESPACE)
        for node in (NODE, WRITING):
            cluster.create_node(node)
            stack.callback(cluster.delete, "nodes", node)
        cluster.create("taintevictionpolicies", policy(POLICY, nodeSelector={}, devices=[{"key": "*"}]))
        stack.callback(cluster.delete, "taintevictionpolicies", POLICY)
        stack.callback(cluster.delete_all, "resourceslices")
        certificate = own_control_plane.client_certificate(f"system:node:{WRITING}", "system:nodes")
        kubelet = Cluster(own_control_plane.server, own_control_plane.ca, certificate=certificate)
        stack.callback(kubelet.close)
        try:
            kubelet.create("resourceslices", slice_of("foreign", NODE))
        except ApiError as error:
            played.refused = str(error)
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda number: kubelet.create("resourceslices", slice_of(f"a-{number}")), range(SLICES)))
        operator = stack.enter_context(Operator(own_control_plane.operator_kubeconfig(), folder))
        operator.wait_leading()
        play(played, own_control_plane, operator, kubelet)
        played.judge(operator)
        played.left_out = operator.metric("taintwarden_undecodable_objects_total", resource="resourceslices")
        yield played


def play(played: Story, target: ControlPlane, operator: Operator, kubelet: Cluster) -> None:
    cluster, ended = target.client, threading.Event()
    played.make_due(cluster, NAMESPACE, NODE, VICTIMS, EVERY_SECONDS)
    threads = [
        threading.Thread(target=rename, args=(played, kubelet, ended)),
        threading.Thread(target=played.probe, args=(operator, ended)),
    ]
    for thread in threads:
        thread.start()
    try:
        cluster.set_taints(NODE, [TAINT])
        began = time.monotonic()
        played.explained = explain(f"victim-{VICTIMS - 1}", target.admin_kubeconfig)
        played.explained_seconds = time.monotonic() - began
        ends_at = began + FIRST_SECONDS + VICTIMS * EVERY_SECONDS + LATEST_SECONDS
        while cluster.find("pods", f"victim-{VICTIMS - 1}", NAMESPACE) and time.monotonic() < ends_at:
            time.sleep(0.5)  # a pod that stays is judged below, with the times of all
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def rename(played: Story, kubelet: Cluster, ended: threading.Event) -> None:
    """A slice has another name, one after the other and as fast as the API server takes it."""
    while not ended.is_set():
        number, turn = played.renamed % SLICES, played.renamed // SLICES
        kubelet.delete("resourceslices", f"{'ab'[turn % 2]}-{number}")
        kubelet.create("resourceslices", slice_of(f"{'ba'[turn % 2]}-{number}"))
        played.renamed += 1


def explain(pod: str, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **BYTECODE, "KUBECONFIG": str(kubeconfig)}
    command = [str(EXECUTABLE), "explain", "pod", f"{NAMESPACE}/{pod}"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_a_kubelet_may_write_slices_of_its_own_node_alone(story):
    assert "can only create ResourceSlice with the same NodeName" in story.refused


class TestOthers(Unharmed):
    pass


def test_the_command_answers(story):
    assert "sla=900:NoExecute" in story.explained.stdout
    assert story.explained_seconds < EXPLAINED_SECONDS


def test_dropped_slices_are_counted(story):
    assert story.left_out > SLICES / 2
