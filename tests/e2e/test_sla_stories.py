"""KEP-5471 on a real API server: pods say which service level they need, and nodes say as a taint which they give.

Story 1 is about who may be on a node, story 2 about how long a pod stays when the level falls. Both are played under
both readings of tolerationSeconds: `AfterViolation`, what the story asks for, and `Kubernetes`, what Kubernetes does.
"""

import time
from collections.abc import Iterator

import pytest

from controlplane import ControlPlane, Target
from e2e.stories import (
    AT_ONCE_SECONDS,
    Scene,
    Stories,
    Story,
    Told,
    calls,
    taint,
    telling,
    toleration,
)

AFTER_VIOLATION, KUBERNETES = "after-violation", "kubernetes"
POLICIES = {
    AFTER_VIOLATION: {"timing": {"tolerationSecondsMode": "AfterViolation"}},
    KUBERNETES: {"timing": {"tolerationSecondsMode": "Kubernetes"}},
}
STORIES = Stories()

GRACE_SECONDS = 8
RECOVERY_SECONDS = 20  # a grace within which something is seen, told and taken back
OBSERVED_SECONDS = 3  # how long "stays" is looked at, where no deadline says how long
CRITICAL = toleration("Gt", "950")
TOLERANT = toleration("Gt", "800")
CRITICAL_WITH_GRACE = toleration("Gt", "950", GRACE_SECONDS)


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with telling(request, control_plane, tmp_path_factory.mktemp("sla"), STORIES, POLICIES) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


# -- story 1: the node's value decides who stays


@STORIES.under(AFTER_VIOLATION, KUBERNETES)
def a_falling_value_moves_the_critical_pod_and_leaves_the_tolerant_one(scene: Scene) -> None:
    node = scene.node(taint("980"))
    critical, tolerant = scene.pod("critical", node, CRITICAL), scene.pod("tolerant", node, TOLERANT)
    good = time.monotonic()
    scene.stays(critical, tolerant, until=good + OBSERVED_SECONDS)
    fell = scene.taint(node, taint("940"))
    scene.leaves(critical, fell)
    scene.stays(tolerant, until=fell + OBSERVED_SECONDS)
    fell = scene.taint(node, taint("800"))  # not above 800
    scene.leaves(tolerant, fell)


@STORIES.under(AFTER_VIOLATION, KUBERNETES)
def a_pod_bound_to_a_node_that_is_too_low_leaves_at_once(scene: Scene) -> None:
    node = scene.node(taint("940"))
    pending = scene.pod("late", "", CRITICAL)
    bound = time.monotonic()
    scene.cluster.bind_pod("late", scene.namespace, node)
    scene.leaves(pending, bound)


# -- story 2: "SLA > 950 with 8 s of grace"


@STORIES.under(AFTER_VIOLATION)
def a_pod_leaves_when_its_grace_is_over(scene: Scene) -> None:
    node = scene.node(taint("980"))
    pod = scene.pod("critical", node, CRITICAL_WITH_GRACE)
    fell = scene.taint(node, taint("940"))
    scene.leaves(pod, fell, GRACE_SECONDS)


@STORIES.under(AFTER_VIOLATION)
def a_value_that_recovers_within_the_grace_evicts_nobody(scene: Scene) -> None:
    node = scene.node(taint("980"))
    pod = scene.pod("critical", node, toleration("Gt", "950", RECOVERY_SECONDS))
    fell = scene.taint(node, taint("940"))
    scene.event(pod, "EvictionScheduled")
    scene.taint(node, taint("960"))
    scene.event(pod, "EvictionCancelled")
    scene.stays(pod, until=fell + RECOVERY_SECONDS + AT_ONCE_SECONDS)


@STORIES.under(AFTER_VIOLATION)
def an_announced_eviction_says_when_and_why(scene: Scene) -> None:
    node = scene.node(taint("980"))
    pod = scene.pod("critical", node, CRITICAL_WITH_GRACE)
    fell = scene.taint(node, taint("940"))
    announced = scene.event(pod, "EvictionScheduled")
    assert announced["type"] == "Normal"
    for word in (node, "sla=940:NoExecute", "sla Gt '950'", f"{GRACE_SECONDS} s of grace", scene.policy):
        assert word in announced["note"]
    scene.leaves(pod, fell, GRACE_SECONDS)
    assert "sla=940:NoExecute" in scene.event(pod, "Evicted")["note"]


@STORIES.under(KUBERNETES)
def kubernetes_leaves_a_good_node_after_the_seconds(scene: Scene) -> None:
    node = scene.node(taint("980"))
    bound = time.monotonic()
    pod = scene.pod("critical", node, CRITICAL_WITH_GRACE)
    scene.leaves(pod, bound, GRACE_SECONDS)


# -- what holds for all of them


def test_only_pods_that_left_were_asked_to(own_control_plane: ControlPlane, told: Told) -> None:
    told.wait()
    for story, scene in told.scenes.items():
        asked = calls(own_control_plane, scene.namespace)
        evicted = [entry for entry in asked if entry["objectRef"].get("subresource") == "eviction"]
        assert asked == evicted, f"{story}: the Eviction API is the only way, unless a policy says otherwise"
        assert {entry["responseStatus"]["code"] for entry in evicted} <= {201}, story
        names = [entry["objectRef"]["name"] for entry in evicted]
        assert len(names) == len(set(names)), f"{story}: asked twice"


def test_the_shipped_rights_suffice(told: Told) -> None:
    told.judge_rights()
