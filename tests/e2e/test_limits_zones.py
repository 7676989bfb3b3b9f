"""limits.zoneHealth on a real API server: a zone in which much goes wrong is drained slowly, the others are not.

Zones are counted by policy, so each story has zones of its own.
"""

import time

import pytest

from controlplane import Departure
from e2e.limit_scenes import GOOD, LimitScene
from e2e.stories import EARLY_SECONDS, Stories, Story, Told

SLOW, TOLD, EVERYWHERE = (f"zone-{name}" for name in ("slow", "told", "everywhere"))
HEALTH = {"threshold": 0.55, "minNodes": 3, "degradedEvictionsPerSecond": 1, "fullEvictionsPerSecond": 2}


def paused(**limits: object) -> dict[str, object]:
    """Nodes fall one after the other. To be judged together they fall while the policy is paused."""
    return {"paused": True, "limits": limits}


def only(**health: object) -> dict[str, object]:
    """No limit but zoneHealth."""
    return paused(base="None", zoneHealth={**HEALTH, **health})


POLICIES = {
    SLOW: only(),
    TOLD: only(degradedEvictionsPerSecond=0.001),
    EVERYWHERE: paused(guard={"minPods": 50}),
}
STORIES = Stories()

pytestmark = pytest.mark.timeout(480)  # the first test waits for the cluster, and each for its story


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(limits_told: Told, story: Story) -> None:
    limits_told.judge(story)


def of_zone(left: list[Departure], nodes: list[str]) -> list[float]:
    """When pods left these nodes, in order."""
    return [one.at for one in left if one.node in nodes]


def fall(scene: LimitScene, *nodes: str) -> float:
    """Let these nodes, which have pods, fall at the same moment, and return it.

    The watches of nodes and of policies are not ordered among each other: the operator says that it saw all nodes.
    """
    scene.degrade(*nodes)
    scene.wait_degraded(len(nodes))
    began = time.monotonic()
    scene.change_policy(paused=None)
    return began


@STORIES.under(SLOW)
def a_degraded_zone_slows_down_and_no_other(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=5, b=5)
    bad = [*zones["a"][:3], zones["b"][0]]  # 60% and 20%
    slow, fast = scene.fill(bad[:3], 4), scene.fill(bad[3:], 6)
    fell = fall(scene, *bad)
    left = scene.wait_departures(len(slow) + len(fast), fell)
    in_a, in_b = of_zone(left, zones["a"]), of_zone(left, zones["b"])
    assert in_a[-1] - fell > len(slow) - 1 - EARLY_SECONDS, "one a second"
    assert in_b[-1] < in_a[len(in_a) // 2]


@STORIES.under(TOLD)
def the_status_tells_the_zones_and_what_holds_them(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=5, b=5)
    bad = [*zones["a"][:3], zones["b"][0]]
    scene.fill(bad, 1)
    fell = fall(scene, *bad)
    entry = scene.wait_limit("zone-degraded", 3)  # too slow for any of them
    assert entry["until"] > entry["since"]
    scene.wait_zones({"test/a": ("Degraded", 5, 3), "test/b": ("Normal", 5, 1)})
    assert scene.status()["limitedBy"] == "zone-degraded"
    assert [one.node for one in scene.wait_departures(1, fell)] == [zones["b"][0]]


@STORIES.under(EVERYWHERE)
def nothing_is_evicted_while_every_zone_is_full(scene: LimitScene) -> None:
    nodes = scene.nodes(GOOD, a=3, b=3, c=3)
    pods = scene.fill(nodes, 1)
    fell = fall(scene, *nodes)
    scene.wait_limit("all-zones-full", len(pods))
    scene.wait_zones({f"test/{zone}": ("Full", 3, 3) for zone in "abc"})
    assert scene.status()["limitedBy"] == "all-zones-full"
    scene.nobody_leaves(fell)
    recovered = scene.recover(nodes[0])
    left = scene.wait_departures(len(pods) - 1, recovered)
    assert nodes[0] not in {one.node for one in left}
