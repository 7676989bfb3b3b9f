"""What a kubelet may write of devices, with the certificate of its node, while pods of other nodes are evicted.

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
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from controlplane import ApiError, Cluster, ControlPlane, Json, Operator
from controlplane.operator_process import BYTECODE, EXECUTABLE
from e2e.answered import lateness
from e2e.stories import policy
from e2e.tenants import LATEST_SECONDS, MOST_BYTES
from e2e.test_attacks import peak_bytes

pytestmark = pytest.mark.timeout(300)  # the first test waits for the whole story

NAMESPACE, NODE, WRITING, POLICY = "slices", "evicting", "writing", "slices"
SLICES, DEVICES, THREADS = 2_000, 64, 8
VICTIMS, FIRST_SECONDS, EVERY_SECONDS = 20, 10.0, 0.5
EXPLAINED_SECONDS = 20.0
"""As `LATEST_SECONDS`: it is two seconds where nothing else runs, and a minute if each slice costs what all have."""
TAINT = {"key": "sla", "value": "900", "effect": "NoExecute"}


@dataclass
class Story:
    """What was seen."""

    refused: str = ""
    """Why the node may write no slice of another one."""
    renamed: int = 0
    lateness: list[float] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    """Seconds for an answer of /livez, infinite for none."""
    lost: int = 0
    explained: subprocess.CompletedProcess[str] | None = None
    explained_seconds: float = 0.0
    left_out: float = 0.0
    bytes_at_most: int = 0


def slice_of(name: str, node: str = WRITING) -> Json:
    taint = {"key": "gpu.example.com/health", "value": name, "effect": "NoExecute"}
    devices = [{"name": f"{name}-{number}", "taints": [taint]} for number in range(DEVICES)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": SLICES}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def story(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder, cluster, told = tmp_path_factory.mktemp("slices"), own_control_plane.client, Story()
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
            told.refused = str(error)
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda number: kubelet.create("resourceslices", slice_of(f"a-{number}")), range(SLICES)))
        operator = stack.enter_context(Operator(own_control_plane.operator_kubeconfig(), folder))
        operator.wait_leading()
        play(told, own_control_plane, operator, kubelet)
        told.lateness = lateness(operator.logs, "/victim-", VICTIMS)
        told.lost = sum(line.get("event") == "leadership-lost" for line in operator.logs())
        told.left_out = operator.metric("taintwarden_undecodable_objects_total", resource="resourceslices")
        told.bytes_at_most = peak_bytes(operator)
        print(  # noqa: T201 - figures of a run by hand
            f"{SLICES} slices, {told.renamed} renamed: late by {max(told.lateness, default=-1):.2f} s at most, probes "
            f"{max(told.probes):.2f} s, explain {told.explained_seconds:.2f} s, {told.left_out:.0f} left out, "
            f"{told.bytes_at_most / 2**20:.0f} MiB, lost {told.lost}"
        )
        yield told


def play(told: Story, target: ControlPlane, operator: Operator, kubelet: Cluster) -> None:
    cluster, ended = target.client, threading.Event()
    for number in range(VICTIMS):
        seconds = int(FIRST_SECONDS + number * EVERY_SECONDS)
        tolerations = [{**TAINT, "operator": "Equal", "tolerationSeconds": seconds}]
        cluster.create_pod(f"victim-{number}", NAMESPACE, NODE, tolerations=tolerations, grace_seconds=0)
    threads = [
        threading.Thread(target=rename, args=(told, kubelet, ended)),
        threading.Thread(target=probe, args=(told, operator, ended)),
    ]
    for thread in threads:
        thread.start()
    try:
        cluster.set_taints(NODE, [TAINT])
        began = time.monotonic()
        told.explained = explain(f"victim-{VICTIMS - 1}", target.admin_kubeconfig)
        told.explained_seconds = time.monotonic() - began
        ends_at = began + FIRST_SECONDS + VICTIMS * EVERY_SECONDS + LATEST_SECONDS
        while cluster.find("pods", f"victim-{VICTIMS - 1}", NAMESPACE) and time.monotonic() < ends_at:
            time.sleep(0.5)  # a pod that stays is judged below, with the times of all
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def rename(told: Story, kubelet: Cluster, ended: threading.Event) -> None:
    """A slice has another name, one after the other and as fast as the API server takes it."""
    while not ended.is_set():
        number, turn = told.renamed % SLICES, told.renamed // SLICES
        kubelet.delete("resourceslices", f"{'ab'[turn % 2]}-{number}")
        kubelet.create("resourceslices", slice_of(f"{'ba'[turn % 2]}-{number}"))
        told.renamed += 1


def probe(told: Story, operator: Operator, ended: threading.Event) -> None:
    while not ended.wait(0.5):
        began = time.monotonic()
        told.probes.append(time.monotonic() - began if operator.is_live() else float("inf"))


def explain(pod: str, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **BYTECODE, "KUBECONFIG": str(kubeconfig)}
    command = [str(EXECUTABLE), "explain", "pod", f"{NAMESPACE}/{pod}"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_a_kubelet_may_write_slices_of_its_own_node_alone(story):
    assert "can only create ResourceSlice with the same NodeName" in story.refused


def test_no_eviction_is_late(story):
    assert len(story.lateness) == VICTIMS
    assert max(story.lateness) < LATEST_SECONDS


def test_the_operator_answers_probes_all_the_while(story):
    assert max(story.probes) < 5  # the kubelet's timeoutSeconds


def test_leadership_is_kept(story):
    assert story.lost == 0


def test_the_command_answers(story):
    assert "sla=900:NoExecute" in story.explained.stdout
    assert story.explained_seconds < EXPLAINED_SECONDS


def test_what_is_not_kept_is_counted(story):
    assert story.left_out > SLICES / 2


def test_memory_is_bounded(story):
    assert story.bytes_at_most < MOST_BYTES
