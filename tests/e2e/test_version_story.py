"""KEP-5721, story 2, on a real API server: nodes say as a taint which version of the network plugin they run.

The story is about scheduling; here it is played with NoExecute, so that running pods leave too. The server refuses
version operators in `spec.tolerations`: the pods carry a plain `Exists` there and `SemverGt` in the annotation.
"""

import time
from collections.abc import Iterator

import pytest

from controlplane import Json, Target
from e2e.stories import PodRef, Scene, Stories, Story, Told, annotation, taint, telling, toleration

KEY = "cni-version"
VERSIONS = "versions"
POLICIES = {VERSIONS: {"taints": [{"key": KEY, "valueType": "Version"}]}}
STORIES = Stories()

RECOVERY_SECONDS = 20  # a grace within which something is seen, told and taken back
OBSERVED_SECONDS = 3
OLD, NEW = "v3.27.2", "v3.28.1"


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with telling(request, control_plane, tmp_path_factory.mktemp("versions"), STORIES, POLICIES) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def version(value: str) -> Json:
    return taint(value, KEY)


def needs(operator: str, value: str, **more: int) -> dict[str, str]:
    return annotation(toleration(operator, value, key=KEY, **more))


def pod(scene: Scene, name: str, node: str, annotations: dict[str, str]) -> PodRef:
    """A pod that the scheduler, the kubelet and the built-in eviction let be, whatever the version is."""
    return scene.pod(name, node, toleration("Exists", key=KEY), annotations=annotations)


@STORIES.under(VERSIONS)
def pods_run_only_where_the_plugin_is_new_enough(scene: Scene) -> None:
    old, new = scene.node(version(OLD), name="old"), scene.node(version(NEW), name="new")
    began = time.monotonic()
    on_old = pod(scene, "on-old", old, needs("SemverGt", "v3.28.0"))
    on_new = pod(scene, "on-new", new, needs("SemverGt", "v3.28.0"))
    undemanding = pod(scene, "undemanding", old, {})
    scene.leaves(on_old, began)
    scene.stays(on_new, undemanding, until=began + OBSERVED_SECONDS)


@STORIES.under(VERSIONS)
def a_rollback_of_the_plugin_moves_the_pod(scene: Scene) -> None:
    node = scene.node(version(NEW))
    demanding = pod(scene, "demanding", node, needs("SemverGt", "v3.28.0"))
    scene.stays(demanding, until=time.monotonic() + OBSERVED_SECONDS)
    rolled_back = scene.taint(node, version(OLD))
    scene.leaves(demanding, rolled_back)
    assert f"{KEY}={OLD}:NoExecute" in scene.event(demanding, "Evicted")["note"]


@STORIES.under(VERSIONS)
def an_upgrade_within_the_grace_keeps_the_pod(scene: Scene) -> None:
    node = scene.node(version(OLD))
    began = time.monotonic()
    patient = pod(scene, "patient", node, needs("SemverGt", "v3.28.0", violationGraceSeconds=RECOVERY_SECONDS))
    scene.event(patient, "EvictionScheduled")
    scene.taint(node, version(NEW))
    scene.event(patient, "EvictionCancelled")
    scene.stays(patient, until=began + RECOVERY_SECONDS + OBSERVED_SECONDS)


@STORIES.under(VERSIONS)
def an_annotation_that_changes_counts_at_once(scene: Scene) -> None:
    node = scene.node(version(NEW))
    demanding = pod(scene, "demanding", node, needs("SemverGt", "v3.28.0"))
    scene.stays(demanding, until=time.monotonic() + 1)
    changed = time.monotonic()
    scene.cluster.annotate("pods", demanding.name, needs("SemverGt", "v3.29.0"), scene.namespace)
    scene.leaves(demanding, changed)


def test_the_shipped_rights_suffice(told: Told) -> None:
    told.judge_rights()
