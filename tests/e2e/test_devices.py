"""Taints of devices (Dynamic Resource Allocation) with the real API server, scheduler and claim controller.

No kubelet prepares devices: a driver of the tests publishes them, and the scheduler allocates them.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial

import pytest

from controlplane import ApiError, Json, Operator, WorkingCluster, wait_until
from controlplane.working_cluster import CONTROLLERS
from e2e.conftest import started_working_cluster
from e2e.device_park import CLAIM, SECONDS, Endings, Park, ParkStories, ParkStory, opened, played
from e2e.tenants import ACCOUNT, Tenant

CLAIMS = "resourceclaim-controller"
OBSERVED_SECONDS = 5.0
BINDING = "taintwarden-devices"
FORGED_SECONDS = 0.02
CLAIMS_RULE = {
    "apiGroups": ["resource.k8s.io"],
    "resources": ["resourceclaims", "resourceclaims/status"],
    "verbs": ["create", "get", "update", "patch"],
}
BINDING_RULE = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/binding"], "verbs": ["patch"]}

STORIES = ParkStories()

pytestmark = pytest.mark.timeout(300)  # the first test waits for the cluster, and each for its story


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkingCluster]:
    folder = tmp_path_factory.mktemp("devices")
    with started_working_cluster(request, folder, controllers=(*CONTROLLERS, CLAIMS)) as started:
        yield started


@pytest.fixture(scope="module")
def operator(ground: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with Operator(ground.operator_kubeconfig(), tmp_path_factory.mktemp("operator")) as started:
        started.wait_leading()
        yield started


@pytest.fixture(scope="module")
def endings(request: pytest.FixtureRequest, ground: WorkingCluster, operator: Operator) -> Iterator[Endings]:
    with played(request, ground, STORIES) as endings:
        yield endings


@pytest.fixture
def park(ground: WorkingCluster, operator: Operator, endings: Endings) -> Iterator[Park]:
    """Park of a test that affects all parks, opened when the stories are over."""
    wait(endings.values())
    with opened(ground) as park:
        yield park


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_story(endings: Endings, story: ParkStory) -> None:
    endings[story].result()


def exists(park: Park) -> Json:
    """Toleration of any value for the scheduler and for the eviction by Kubernetes."""
    return {"key": park.key, "operator": "Exists"}


def above(park: Park, value: str) -> Json:
    return {"key": park.key, "operator": "Gt", "value": value}


def assert_none_leaves(park: Park, *names: str, seconds: float = OBSERVED_SECONDS) -> None:
    time.sleep(seconds)  # nothing tells that nothing happens
    assert park.left(*names) == []


@STORIES.add
def a_reliability_below_the_threshold_evicts_who_asked_for_more(park: Park) -> None:
    """KEP-5471, stories 4 and 5: the reliability of a GPU is the value of its taint."""
    park.set_policy({"valueType": "Integer"})
    for name, bound in (("training", "950"), ("batch", "800")):
        park.claim(name, exists(park))
        pool, device = park.pod(name, above(park, bound), claim=name)
        park.driver.taint(pool, device, park.bad("990"))
    park.wait_known()
    assert_none_leaves(park, "training", "batch")
    for name in ("training", "batch"):
        park.driver.taint(*park.device_of(name), park.bad("900"))
    park.wait_left("training")
    assert_none_leaves(park, "batch")


@STORIES.add
def the_replacement_gets_another_device(park: Park) -> None:
    park.set_policy({"effects": ["NoSchedule"]})
    park.claim("gpu", template=True)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": park.pod_spec("gpu", template=True)}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    park.client.create("deployments", {"metadata": {"name": "web"}, "spec": spec}, park.name)
    park.ground.wait_complete(f"{park.name}/web")
    park.wait_known()
    [first] = [one["metadata"]["name"] for one in park.client.items("pods", park.name)]
    sick = park.device_of(first)
    park.driver.taint(*sick, park.bad("79", "NoSchedule"))
    park.wait_left(first)

    def is_elsewhere() -> bool:
        """The scheduler may observe the pod before the taint; then the replacement is evicted, too."""
        second = park.running_but(first)
        return bool(second) and park.device_of(second) != sick

    wait_until(is_elsewhere, SECONDS, "its replacement to run with another device")


@STORIES.add
def a_pod_that_asks_for_an_extended_resource_has_a_device_too(park: Park) -> None:
    park.set_policy()
    park.wait_known()
    spec = park.pod_spec()
    del spec["resourceClaims"]
    spec["containers"][0]["resources"] = {"limits": {park.extended: "1"}}
    park.run("old-style", spec)
    park.driver.taint(*park.device_of("old-style"), park.bad())
    park.wait_left("old-style")


@STORIES.add
def whoever_writes_claims_in_one_namespace_evicts_no_pod_of_another(park: Park) -> None:
    """Their status may name any pod. The tenant's own pod leaves, which the same claim names: it was delivered."""
    park.set_policy({"effects": ["NoSchedule", "NoExecute"]})
    park.claim(CLAIM, exists(park))
    pool, device = park.pod("victim")
    park.wait_known()
    [sick] = {"gpu-0", "gpu-1"} - {device}
    park.driver.taint(pool, sick, park.bad("79", "NoSchedule"))
    tenant = Tenant(park.ground, f"{park.name}-tenant", more=[CLAIMS_RULE])
    try:
        tenant.pod("own", pool)
        names = {"victim": park.name, "own": tenant.namespace}
        reserved = [
            {"resource": "pods", "name": name, "uid": park.client.get("pods", name, namespace)["metadata"]["uid"]}
            for name, namespace in names.items()
        ]
        tenant.client.create("resourceclaims", park.claim_body("forged"), tenant.namespace)
        result = {"request": "gpu", "driver": park.driver.name, "pool": pool, "device": sick}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
        forge = partial(
            tenant.client.patch, "resourceclaims", "forged", {"status": status}, tenant.namespace, subresource="status"
        )
        with pytest.raises(ApiError, match="resourceclaims/binding"):
            forge()  # from 1.36 on it takes a right in the whole cluster, which schedulers have
        with bound_in_the_whole_cluster(park, tenant), repeated(forge):
            wait_until(lambda: is_gone(park, "own", tenant.namespace), SECONDS, "the tenant's own pod to leave")
            assert_none_leaves(park, "victim")
    finally:
        tenant.close()
        park.client.remove_namespace(tenant.namespace)
        park.client.delete_all("resourceclaims", tenant.namespace)


@contextmanager
def repeated(call: Callable[[], Json]) -> Iterator[None]:
    """Repeatedly: the controller of claims takes pods of other namespaces out of them within some milliseconds."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(FORGED_SECONDS):
            assert len(call()["status"]["reservedFor"]) == 2

    with ThreadPoolExecutor(1) as pool:
        forging = pool.submit(repeat)
        try:
            yield
        finally:
            ended.set()
        forging.result()


@contextmanager
def bound_in_the_whole_cluster(park: Park, tenant: Tenant) -> Iterator[None]:
    """The tenant may allocate and reserve claims, as a scheduler does."""
    name = tenant.namespace
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    park.client.create("clusterroles", {"metadata": {"name": name}, "rules": [BINDING_RULE]})
    park.client.create("clusterrolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference})
    try:
        tenant.client.wait_allowed("patch", "resource.k8s.io", "resourceclaims/binding")
        yield
    finally:
        park.client.delete("clusterrolebindings", name)
        park.client.delete("clusterroles", name)


def is_gone(park: Park, pod: str, namespace: str) -> bool:
    found = park.client.find("pods", pod, namespace)
    return not found or "deletionTimestamp" in found["metadata"]


def test_a_rule_for_every_device_trips_the_guard_first(park: Park) -> None:
    park.set_policy(limits={"guard": {"maxPercent": 20, "minPods": 1}})
    for name in ("a", "b", "c", "d"):
        park.claim(name)
        park.pod(name, claim=name)
    park.wait_known()
    rule = {"deviceSelector": {}, "taint": park.bad("typo")}
    park.client.create("devicetaintrules", {"metadata": {"name": park.name}, "spec": rule})
    try:
        wait_until(lambda: park.condition("GuardTripped").get("status") == "True", SECONDS, "the guard to trip")
        assert_none_leaves(park, "a", "b", "c", "d")
    finally:
        park.client.delete("devicetaintrules", park.name)


def test_without_the_right_a_condition_reports_it_and_the_rest_continues(park: Park) -> None:
    binding = park.client.get("clusterrolebindings", BINDING)
    park.client.delete("clusterrolebindings", BINDING)
    try:
        sla = [{"key": "sla"}]
        devices = [{"key": park.key}]
        park.set_policy()
        park.client.patch("taintevictionpolicies", park.name, {"spec": {"taints": sla, "devices": devices}})
        wait_until(lambda: "resourceslices" in park.condition("DevicesKnown").get("message", ""), SECONDS, "the reason")
        assert park.condition("DevicesKnown")["status"] == "False"
        park.claim("gpu")
        pool, _ = park.pod("a")
        park.client.set_taints(pool, [{"key": "sla", "value": "1", "effect": "NoExecute"}])
        park.wait_left("a")
    finally:
        body = {name: binding[name] for name in ("roleRef", "subjects")}
        park.client.create("clusterrolebindings", {"metadata": {"name": BINDING}, **body})
