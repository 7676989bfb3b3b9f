"""What one tenant may store and change, with its own token, while pods of others are evicted by two replicas.

One story, played once. Before the operator starts the tenant has large profiles and pods, pods with very many
tolerations and an object that is nested deeply; while it evicts, the tenant changes labels of a thousand profiles and
creates pods again that are evicted from a node that will be gone, as fast as the API server takes it. The kubelet of
another node makes all pods of its node leave.
"""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from controlplane import ApiError, Client, Cluster, ControlPlane, Json, Operator, wait_until
from e2e.answered import lateness
from e2e.stories import NO_LIMITS, annotation
from e2e.tenants import (
    LATEST_SECONDS,
    MOST_BYTES,
    TOLERATION,
    Tenant,
    at_once,
    change_labels,
    in_turn,
    large_pod,
    profile,
    small_profile,
)

pytestmark = pytest.mark.timeout(600)  # the first test waits for the whole story

HOSTILE, OTHERS, NODE, QUIET, POLICY = "hostile", "others", "evicting", "calm", "evicting"
RECLAIMED, RECREATED = "reclaimed", 60
KUBELET_NODE, OF_KUBELET = "compromised", 60
NEVER = annotation({**TOLERATION, "value": "999999"})
TAINT = {"key": "sla", "value": "900", "effect": "NoExecute"}
LARGE_PROFILES, ANNOTATION_BYTES = 600, 250_000
LARGE_PODS, SMALL_PROFILES = 150, 1_000
NESTED, DEPTH = "nested", 9_000
WIDE_PODS, TOLERATIONS = 20, 20_000
VICTIMS, FIRST_SECONDS, EVERY_SECONDS = 40, 10.0, 0.5


@dataclass
class Story:
    """What was seen."""

    is_nested: bool = False
    patches: int = 0
    recreated: int = 0
    annotated: int = 0
    lateness: list[float] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    """Seconds for an answer of /livez, infinite for none."""
    lost: int = 0
    bytes_at_most: list[int] = field(default_factory=list)
    """Of each replica."""


def creations(tenant: Tenant) -> list[Any]:
    def large_profile(number: int) -> Any:
        body = profile(f"large-{number}", TOLERATION, annotations={"example.com/any": "x" * ANNOTATION_BYTES})
        return lambda client: client.create("tolerationprofiles", body, tenant.namespace)

    def wide_pod(number: int) -> Any:
        tolerations = [{"key": f"a-{number}-{one}", "operator": "Exists"} for one in range(TOLERATIONS)]
        container = {"name": "main", "image": "registry.example.com/none"}
        spec = {"nodeName": QUIET, "containers": [container], "tolerations": tolerations}
        body = {"metadata": {"name": f"wide-{number}"}, "spec": spec | {"terminationGracePeriodSeconds": 0}}
        return lambda client: client.create("pods", body, tenant.namespace)

    def nested_profile(client: Cluster) -> None:
        path = f"/apis/taintwarden.io/v1alpha1/namespaces/{tenant.namespace}/tolerationprofiles"
        client.send(path, nested(), "application/json")

    return [
        nested_profile,
        *map(wide_pod, range(WIDE_PODS)),
        *map(large_profile, range(LARGE_PROFILES)),
        *(large_pod(tenant, number, QUIET) for number in range(LARGE_PODS)),
        *(small_profile(tenant, number) for number in range(SMALL_PROFILES)),
    ]


def nested() -> bytes:
    """A profile of which Python's decoders raise RecursionError."""
    entry = {"manager": "me", "operation": "Update", "apiVersion": "taintwarden.io/v1alpha1", "fieldsType": "FieldsV1"}
    body = profile(NESTED, TOLERATION, managedFields=[entry | {"fieldsV1": "deep"}])
    deep = '{"f:x":' * DEPTH + "{}" + "}" * DEPTH
    return json.dumps(body).replace('"deep"', deep).encode()


def is_nested(tenant: Tenant) -> bool:
    """Whether the API server stores it as it was created."""
    try:
        tenant.admin.get("tolerationprofiles", NESTED, tenant.namespace)
    except RecursionError:
        return True
    return False


def probe(seen: Story, operator: Operator, ended: threading.Event) -> None:
    while not ended.wait(0.5):
        began = time.monotonic()
        seen.probes.append(time.monotonic() - began if operator.is_live() else float("inf"))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """On a control plane of its own, which ends with all that is stored: to delete it would take a minute."""
    seen, folder = Story(), tmp_path_factory.mktemp("tenants")
    with ControlPlane(folder) as target:
        target.apply_crds()
        target.apply_manifests()
        cluster, tenant = target.client, Tenant(target, HOSTILE)
        cluster.create_namespace(OTHERS)
        for node in (NODE, QUIET):
            cluster.create_node(node)
        cluster.create_node(RECLAIMED, taints=[{"key": RECLAIMED, "effect": "NoExecute"}])
        cluster.create_node(KUBELET_NODE, taints=[TAINT | {"value": "980"}])
        tolerates = [{"key": "sla", "operator": "Exists"}]
        for number in range(OF_KUBELET):
            cluster.create_pod(f"of-kubelet-{number}", OTHERS, KUBELET_NODE, tolerations=tolerates, grace_seconds=0)
        kind = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy"}
        reclaim = {"taints": [{"key": RECLAIMED}], "reclaim": {"deadlineSeconds": 600}}
        for name, spec in {POLICY: {"taints": [{"key": "sla"}], "limits": NO_LIMITS}, RECLAIMED: reclaim}.items():
            cluster.create("taintevictionpolicies", kind | {"metadata": {"name": name}, "spec": spec})
        at_once(tenant, creations(tenant))
        seen.is_nested = is_nested(tenant)
        play(seen, target, tenant, folder)
        tenant.client.close()
    return seen


def play(seen: Story, target: ControlPlane, tenant: Tenant, folder: Path) -> None:
    cluster, kubeconfig = target.client, target.operator_kubeconfig()
    for number in range(VICTIMS):
        seconds = int(FIRST_SECONDS + number * EVERY_SECONDS)
        tolerations = [{"key": "sla", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]
        cluster.create_pod(f"victim-{number}", OTHERS, NODE, tolerations=tolerations, grace_seconds=0)
    ended = threading.Event()
    with ExitStack() as stack:
        leader = stack.enter_context(Operator(kubeconfig, folder))
        leader.wait_leading()
        follower = stack.enter_context(Operator(kubeconfig, folder, name="follower"))
        cluster.set_taints(NODE, [TAINT])
        pool = stack.enter_context(ThreadPoolExecutor(4))
        flooding = pool.submit(change_labels, tenant, SMALL_PROFILES, ended)
        coming_back = pool.submit(come_back, tenant, ended)
        annotating = pool.submit(annotate_through_status, target)
        pool.submit(probe, seen, leader, ended)
        try:
            last = f"victim-{VICTIMS - 1}"
            wait_until(lambda: not cluster.find("pods", last, OTHERS), 120, "the last pod to be evicted")
        finally:
            ended.set()
        seen.patches, seen.recreated, seen.annotated = (one.result() for one in (flooding, coming_back, annotating))
        judge(seen, leader, follower)


def come_back(tenant: Tenant, ended: threading.Event) -> int:
    """Create pods again on a node that will be gone, as soon as they are evicted. How many were created."""
    client, made = tenant.another_client(), 0
    container = {"name": "main", "image": "registry.example.com/none"}
    spec = {"nodeName": RECLAIMED, "containers": [container], "terminationGracePeriodSeconds": 0}
    for name in in_turn([f"again-{number}" for number in range(RECREATED)], ended):
        try:
            client.create("pods", {"metadata": {"name": name}, "spec": spec}, tenant.namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        else:
            made += 1
    client.close()
    return made


def annotate_through_status(target: ControlPlane) -> int:
    """With the credential of a kubelet: no value is tolerated by the pods of its node any more. How many took it."""
    pair = target.client_certificate(f"system:node:{KUBELET_NODE}", "system:nodes")
    client = Client(target.server, target.ca, certificate=pair)
    for number in range(OF_KUBELET):
        body = {"metadata": {"annotations": NEVER}}
        client.patch("pods", f"of-kubelet-{number}", body, OTHERS, subresource="status")
    client.close()
    return OF_KUBELET


def judge(seen: Story, *replicas: Operator) -> None:
    def logs() -> list[Json]:
        return [line for one in replicas for line in one.logs()]

    seen.lateness = lateness(logs, "/victim-", VICTIMS)
    lines = logs()
    seen.lost = sum(line.get("event") == "leadership-lost" for line in lines)
    seen.bytes_at_most = [peak_bytes(one) for one in replicas]
    print(  # noqa: T201 - docs/security.md has these figures
        f"{seen.patches} patches, late by {max(seen.lateness, default=-1):.2f} s at most, "
        f"probes {max(seen.probes, default=-1):.2f} s, "
        f"MiB {[one >> 20 for one in seen.bytes_at_most]}, lost {seen.lost}"
    )


def peak_bytes(process: Operator) -> int:
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


def test_no_eviction_of_others_is_late(story):
    assert len(story.lateness) == VICTIMS
    assert max(story.lateness) < LATEST_SECONDS


def test_leadership_is_kept(story):
    assert story.lost == 0


def test_probes_are_answered(story):
    assert max(story.probes) < 5  # the kubelet's timeoutSeconds


def test_memory_is_bounded(story):
    assert max(story.bytes_at_most) < MOST_BYTES


def test_tenant_and_kubelet_did_what_they_could(story):
    assert story.recreated > RECREATED
    assert story.annotated == OF_KUBELET
    assert story.patches > 100  # as many as the API server takes beside all else
    assert story.is_nested
