"""One tenant stores and changes objects with its own token, while two replicas evict pods of others.

One story, played once. Before the operator starts the tenant has large profiles and pods, pods with very many
tolerations and an object that is nested deeply; while it evicts, the tenant changes labels of a thousand profiles and
creates pods again that are evicted from a node that will be gone, as fast as the API server takes it. The kubelet of
another node makes all pods of its node leave.
"""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.policy_cases import policy
from controlplane import ApiError, Client, Cluster, ControlPlane, Operator
from e2e.answered import TAINT, Seen, Unharmed
from e2e.stories import NO_LIMITS, annotation
from e2e.tenants import (
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
LARGE_PROFILES, ANNOTATION_BYTES = 600, 250_000
LARGE_PODS, SMALL_PROFILES = 150, 1_000
NESTED, DEPTH = "nested", 9_000
WIDE_PODS, TOLERATIONS = 20, 20_000
VICTIMS, EVERY_SECONDS = 40, 0.5


@dataclass
class Story(Seen):
    is_nested: bool = False
    patches: int = 0
    recreated: int = 0
    annotated: int = 0


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
    """Return True if the API server stored the nested profile."""
    try:
        tenant.admin.get("tolerationprofiles", NESTED, tenant.namespace)
    except RecursionError:
        return True
    return False


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
        reclaim = {"taints": [{"key": RECLAIMED}], "reclaim": {"deadlineSeconds": 600}}
        for name, spec in {POLICY: {"taints": [{"key": "sla"}], "limits": NO_LIMITS}, RECLAIMED: reclaim}.items():
            cluster.create("taintevictionpolicies", policy(spec, name))
        at_once(tenant, creations(tenant))
        seen.is_nested = is_nested(tenant)
        play(seen, target, tenant, folder)
        tenant.client.close()
    return seen


def play(seen: Story, target: ControlPlane, tenant: Tenant, folder: Path) -> None:
    cluster, kubeconfig = target.client, target.operator_kubeconfig()
    seen.make_due(cluster, OTHERS, NODE, VICTIMS, EVERY_SECONDS)
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
        pool.submit(seen.probe, leader, ended)
        try:
            seen.wait(cluster, OTHERS)
        finally:
            ended.set()
        seen.patches, seen.recreated, seen.annotated = (one.result() for one in (flooding, coming_back, annotating))
        seen.judge(leader, follower)


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


class TestOthers(Unharmed):
    pass


def test_the_attacks_of_tenant_and_kubelet_took_place(story):
    assert story.recreated > RECREATED
    assert story.annotated == OF_KUBELET
    assert story.patches > 100  # as many as the API server takes beside all else
    assert story.is_nested
