"""Devices that several pods have, in each of the ways that Kubernetes has, as its scheduler allocates them."""

from collections.abc import Iterator
from typing import Any

import pytest

from controlplane import Json, Operator, WorkingCluster, wait_until
from controlplane.binaries import is_before
from controlplane.comparisons import known_gates
from controlplane.working_cluster import CONTROLLERS
from e2e.conftest import started_working_cluster
from e2e.device_park import SECONDS, Endings, Park, ParkStories, ParkStory, played

CLAIMS = "resourceclaim-controller"
GROUPS = "scheduling.k8s.io/v1beta1"
GATES = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
"""Off by default in 1.37."""
ADMIN = "resource.kubernetes.io/admin-access"
CONSUMERS = 100
STORIES = ParkStories()

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(is_before(37), reason="Kubernetes before 1.37 has no PodGroups of v1beta1"),
]


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkingCluster]:
    folder = tmp_path_factory.mktemp("devices-shared")
    served = {GROUPS: True}
    controllers = (*CONTROLLERS, CLAIMS)
    with started_working_cluster(
        request, folder, known_gates() | GATES, controllers=controllers, served=served
    ) as started:
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


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_story(endings: Endings, story: ParkStory) -> None:
    endings[story].result()


def follow(park: Park) -> None:
    """A policy that knows the devices."""
    park.set_policy()
    park.wait_known()


def exists(park: Park) -> Json:
    return {"key": park.key, "operator": "Exists"}


def claim(park: Park, name: str, *tolerations: Json, kind: str = "", **exactly: Any) -> None:
    """A claim for a device of this kind, which is an attribute."""
    chosen = {"cel": {"expression": f'device.attributes["{park.driver.name}"].?kind.orValue("") == "{kind}"'}}
    given = {"deviceClassName": park.name, "selectors": [chosen], "tolerations": list(tolerations), **exactly}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": given}]}}
    park.client.create("resourceclaims", {"metadata": {"name": name}, "spec": spec}, park.name)


def of_kind(kind: str, **more: Any) -> Json:
    return {"attributes": {"kind": {"string": kind}}, **more}


@STORIES.add
def each_claim_on_a_shared_device_tolerates_for_itself(park: Park) -> None:
    """Consumable capacity: the scheduler allocates the device several times."""
    follow(park)
    pool, node = f"{park.name}-large", park.nodes[0]
    capacity = {"memory": {"value": "80Gi"}}
    park.driver.publish(pool, {"gpu": of_kind("large", allowMultipleAllocations=True, capacity=capacity)}, node=node)
    for name, tolerations in (("a", ()), ("b", ()), ("tolerates", (exists(park),))):
        claim(park, name, *tolerations, kind="large", capacity={"requests": {"memory": "10Gi"}})
        assert park.pod(name, claim=name) == (pool, "gpu")
    shares = {
        result["shareID"]
        for one in park.client.items("resourceclaims", park.name)
        for result in one["status"]["allocation"]["devices"]["results"]
    }
    assert len(shares) == 3
    park.driver.taint(pool, "gpu", park.bad())
    park.wait_left("a", "b")
    assert park.left("tolerates") == []


@STORIES.add
def a_partition_is_a_device_of_its_own(park: Park) -> None:
    follow(park)
    pool, node = f"{park.name}-parts", park.nodes[0]
    counters = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]
    consumed = [{"counterSet": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
    parts = {f"part-{number}": of_kind("part", consumesCounters=consumed) for number in range(3)}
    where = {"name": pool, "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": park.driver.name, "pool": where, "nodeName": node, "sharedCounters": counters}
    park.client.create("resourceslices", {"metadata": {"name": pool}, "spec": spec})
    try:
        park.driver.publish(pool, parts, node=node, slices=2)
        for name in ("a", "b"):
            claim(park, name, kind="part")
            assert park.pod(name, claim=name)[0] == pool
        where["generation"] = 2
        park.client.patch("resourceslices", pool, {"spec": {"pool": where}})
        park.driver.taint(pool, park.device_of("a")[1], park.bad())
        park.wait_left("a")
        assert park.left("b") == []
    finally:
        park.client.delete("resourceslices", pool)


@STORIES.add
def who_has_devices_to_administer_them_leaves_unless_its_claim_tolerates(park: Park) -> None:
    follow(park)
    park.client.patch("namespaces", park.name, {"metadata": {"labels": {ADMIN: "true"}}})
    node = park.nodes[0]
    claim(park, "user")
    pool, device = park.pod("user", claim="user", node=node)
    for name, tolerations in (("reads", ()), ("monitors", (exists(park),))):
        claim(park, name, *tolerations, adminAccess=True, allocationMode="All")
        park.pod(name, claim=name, node=node)
    park.driver.taint(pool, device, park.bad())
    park.wait_left("user", "reads")
    assert park.left("monitors") == []


@STORIES.add
def all_consumers_of_a_claim_leave(park: Park) -> None:
    follow(park)
    claim(park, "gpu")
    names = [f"part-{number}" for number in range(CONSUMERS)]
    for name in names:
        body = {"metadata": {"name": name, "labels": {"app": name}}, "spec": park.pod_spec("gpu")}
        park.client.create("pods", body, park.name)

    def consumers() -> list[Json]:
        found: list[Json] = park.client.get("resourceclaims", "gpu", park.name)["status"].get("reservedFor", [])
        return found

    wait_until(lambda: len(consumers()) == CONSUMERS, SECONDS, "all pods to have the device")
    park.driver.taint(*park.device_of(names[0]), park.bad())
    park.wait_left(*names)


@STORIES.add
def a_claim_of_a_pod_group_is_one_of_its_pods_that_name_it(park: Park) -> None:
    follow(park)
    park.claim("gpu", template=True)
    shared = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    group = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shared}
    park.client.create(f"{GROUPS}/podgroups", {"metadata": {"name": "training"}, "spec": group}, park.name)
    member = {"schedulingGroup": {"podGroupName": "training"}}
    names = ["a", "b"]
    for name in names:
        park.run(name, park.pod_spec("gpu", template=True) | member)
    spec = park.pod_spec() | member
    del spec["resourceClaims"]
    del spec["containers"][0]["resources"]
    park.run("without", spec)
    [found] = park.client.items("resourceclaims", park.name)
    [consumer] = found["status"]["reservedFor"]
    assert (consumer["resource"], consumer["name"]) == ("podgroups", "training")
    result = found["status"]["allocation"]["devices"]["results"][0]
    park.driver.taint(result["pool"], result["device"], park.bad())
    park.wait_left(*names)
    assert park.left("without") == []
