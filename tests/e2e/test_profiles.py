"""TolerationProfiles on a real API server: what they do to pods that run, while they come, change and go."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from api.profile_cases import profile
from controlplane import ApiError, Json, Target, wait_until
from e2e.stories import (
    PATIENCE_SECONDS,
    Scene,
    Stories,
    Story,
    Told,
    taint,
    telling,
    toleration,
)

AT_ONCE = "profiles-at-once"
POLICIES: dict[str, Json] = {AT_ONCE: {}}
STORIES = Stories()

OBSERVED_SECONDS = 3
LOOSE, STRICT = toleration("Gt", "900"), toleration("Gt", "950")
EXISTS = toleration("Exists")
PROFILES = "tolerationprofiles"


class ProfileScene(Scene):
    """A scene whose namespace has profiles."""

    def give(self, name: str, *tolerations: Json, **labels: str) -> float:
        """Create a profile for the pods with these labels; returns the moment."""
        began = time.monotonic()
        spec = {"podSelector": {"matchLabels": labels}, "tolerations": list(tolerations)}
        self.cluster.create(PROFILES, profile(spec, name, self.namespace), self.namespace)
        return began

    def change(self, name: str, **spec: Any) -> float:
        """Merge into the spec of a profile; returns the moment."""
        began = time.monotonic()
        self.cluster.patch(PROFILES, name, {"spec": spec}, self.namespace)
        return began

    def take_away(self, name: str) -> float:
        """Delete a profile; returns the moment."""
        began = time.monotonic()
        self.cluster.delete(PROFILES, name, self.namespace)
        return began

    def until_heeded(self, name: str, pods: int) -> None:
        """Wait until the operator says that the newest version of a profile is in force and selects so many pods."""

        def heeded() -> bool:
            stored = self.cluster.get(PROFILES, name, self.namespace)
            status = stored.get("status", {})
            generation = stored["metadata"]["generation"]
            return (status.get("observedGeneration"), status.get("matchedPods")) == (generation, pods)

        wait_until(heeded, PATIENCE_SECONDS, f"profile {name} to select {pods} pods")

    def clear(self) -> None:
        """Profiles go last: pods that they kept would have to leave, from a namespace that is being terminated."""
        super().clear()
        stored = lambda: self.cluster.items(PROFILES, self.namespace)  # noqa: E731
        are_idle = lambda: not any(one.get("status", {}).get("matchedPods") for one in stored())  # noqa: E731
        wait_until(are_idle, PATIENCE_SECONDS, f"profiles of {self.namespace} to select no pod")
        self.cluster.delete_all(PROFILES, self.namespace)


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("profiles")
    with telling(request, control_plane, folder, STORIES, POLICIES, scene=ProfileScene) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def test_the_shipped_rights_suffice(told: Told) -> None:
    told.judge_rights()


@STORIES.under(AT_ONCE)
def a_profile_narrows_what_a_pod_tolerates_by_itself(scene: ProfileScene) -> None:
    node = scene.node(taint("940"))
    pod = scene.pod("lenient", node, EXISTS)
    scene.stays(pod, until=time.monotonic() + OBSERVED_SECONDS)
    given = scene.give("strict", STRICT)
    scene.leaves(pod, given)
    assert "sla Gt '950' does not hold" in scene.event(pod, "Evicted")["note"].replace(":NoExecute does", " does")


@STORIES.under(AT_ONCE)
def a_profile_that_goes_makes_its_pods_leave(scene: ProfileScene) -> None:
    scene.give("loose", LOOSE)
    pod = scene.pod("kept", scene.node())
    scene.until_heeded("loose", 1)
    fell = scene.taint(f"{scene.namespace}-n1", taint("940"))
    scene.stays(pod, until=fell + OBSERVED_SECONDS)
    gone = scene.take_away("loose")
    scene.leaves(pod, gone)


@STORIES.under(AT_ONCE)
def a_bad_version_is_refused_and_the_good_one_stays_in_force(scene: ProfileScene) -> None:
    scene.give("loose", LOOSE)
    node = scene.node()
    pod = scene.pod("kept", node)
    scene.until_heeded("loose", 1)
    with pytest.raises(ApiError, match=r"spec\.tolerations\[0\]\.value.*whole number of 64 bits") as caught:
        scene.change("loose", tolerations=[LOOSE | {"value": "0900"}])
    assert caught.value.status == 422
    fell = scene.taint(node, taint("940"))
    scene.stays(pod, until=fell + OBSERVED_SECONDS)
