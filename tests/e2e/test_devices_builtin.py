"""What docs/devices.md says of Kubernetes' own device taint eviction: the same scenes, with that controller alone."""

from collections.abc import Iterator
from concurrent.futures import wait

import pytest

from controlplane import WorkingCluster
from controlplane.working_cluster import CONTROLLERS
from e2e.conftest import started_working_cluster
from e2e.device_park import Endings, Park, ParkStories, ParkStory, opened, played

BUILT_IN = ("resourceclaim-controller", "device-taint-eviction-controller")
STORIES = ParkStories()

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkingCluster]:
    folder = tmp_path_factory.mktemp("devices-builtin")
    with started_working_cluster(request, folder, controllers=(*CONTROLLERS, *BUILT_IN)) as started:
        yield started


@pytest.fixture(scope="module")
def endings(request: pytest.FixtureRequest, ground: WorkingCluster) -> Iterator[Endings]:
    with played(request, ground, STORIES) as endings:
        yield endings


@pytest.fixture
def park(ground: WorkingCluster, endings: Endings) -> Iterator[Park]:
    """Of a test that concerns all parks: the stories are over."""
    wait(endings.values())
    with opened(ground) as park:
        yield park


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_story(endings: Endings, story: ParkStory) -> None:
    endings[story].result()


@STORIES.add
def it_ignores_budgets(park: Park) -> None:
    park.claim("gpu")
    park.pod("held", claim="gpu")
    park.budget("held")
    park.driver.taint(*park.device_of("held"), park.bad())
    park.wait_left("held")


@STORIES.add
def it_evicts_for_a_typo_in_a_value(park: Park) -> None:
    park.claim("gpu", {"key": park.key, "operator": "Equal", "value": "990", "effect": "NoExecute"})
    where = park.pod("a", claim="gpu")
    park.driver.taint(*where, park.bad("990"))
    park.driver.taint(*where, park.bad("9x0"))
    park.wait_left("a")


def test_it_evicts_every_pod_with_a_device_by_a_rule_for_all(park: Park) -> None:
    names = ["a", "b", "c", "d"]
    for name in names:
        park.claim(name)
        park.pod(name, claim=name)
    rule = {"deviceSelector": {}, "taint": park.bad("typo")}
    park.client.create("devicetaintrules", {"metadata": {"name": park.name}, "spec": rule})
    try:
        park.wait_left(*names)
    finally:
        park.client.delete("devicetaintrules", park.name)


@STORIES.add
def it_does_not_act_on_other_effects(park: Park) -> None:
    for name, effect in (("sick", "NoSchedule"), ("noisy", "None"), ("last", "NoExecute")):
        park.claim(name)
        park.pod(name, claim=name)
        park.driver.taint(*park.device_of(name), park.bad("79", effect))
    park.wait_left("last")  # it has seen the others before
    assert park.left("sick", "noisy") == []


@STORIES.add
def it_does_not_evict_who_asks_for_an_extended_resource(park: Park) -> None:
    """It follows the claims that pods name. The scheduler makes the claim for an extended resource."""
    spec = park.pod_spec()
    del spec["resourceClaims"]
    spec["containers"][0]["resources"] = {"limits": {park.extended: "1"}}
    park.run("old-style", spec)
    park.claim("last")
    park.pod("last", claim="last")
    for name in ("old-style", "last"):
        park.driver.taint(*park.device_of(name), park.bad())
    park.wait_left("last")
    assert park.left("old-style") == []
