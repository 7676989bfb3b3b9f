"""TolerationProfiles on a real API server: what they do to pods that run, while they come, change and go."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from api.profile_cases import profile
from controlplane import ApiError, Json, Target, wait_until
from e2e.stories import (
    AT_ONCE_SECONDS,
    PATIENCE_SECONDS,
    PodRef,
    Scene,
    Stories,
    Story,
    Told,
    taint,
    telling,
    toleration,
)

AT_ONCE, SLOWLY = "profiles-at-once", "profiles-slowly"
TURN_SECONDS = 15
POLICIES = {AT_ONCE: {}, SLOWLY: {"limits": {"base": "None", "evictionsPerSecond": 1 / TURN_SECONDS, "burst": 1}}}
STORIES = Stories()

OBSERVED_SECONDS = 3
GRACE_SECONDS = 8
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

    def told(self, name: str) -> Json:
        """The status of a profile."""
        found: Json = self.cluster.get(PROFILES, name, self.namespace).get("status", {})
        return found

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


# -- whom a profile reaches -------------------------------------------------------------------------------------------


@STORIES.under(AT_ONCE)
def a_profile_keeps_the_pods_that_it_selects(scene: ProfileScene) -> None:
    scene.give("loose", LOOSE, app="web")
    node = scene.node()
    chosen = scene.pod("chosen", node, labels={"app": "web"})
    other = scene.pod("other", scene.node(taint("980"), name="n2"), STRICT, labels={"app": "db"})
    scene.until_heeded("loose", 1)
    fell = scene.taint(node, taint("940"))
    scene.stays(chosen, other, until=fell + OBSERVED_SECONDS)
    fell = scene.taint(node, taint("890"))
    scene.leaves(chosen, fell)


@STORIES.under(AT_ONCE)
def a_profile_narrows_what_a_pod_tolerates_by_itself(scene: ProfileScene) -> None:
    node = scene.node(taint("940"))
    pod = scene.pod("lenient", node, EXISTS)
    scene.stays(pod, until=time.monotonic() + OBSERVED_SECONDS)
    given = scene.give("strict", STRICT)
    scene.leaves(pod, given)
    assert "sla Gt '950' does not hold" in scene.event(pod, "Evicted")["note"].replace(":NoExecute does", " does")


# -- coming, changing, going ------------------------------------------------------------------------------------------


@STORIES.under(AT_ONCE)
def a_profile_that_comes_in_time_calls_the_eviction_off(scene: ProfileScene) -> None:
    node = scene.node()
    pod = scene.pod("patient", node, toleration("Exists", "", GRACE_SECONDS * 3))
    fell = scene.taint(node, taint("940"))
    scene.event(pod, "EvictionScheduled")
    scene.give("loose", LOOSE)
    scene.event(pod, "EvictionCancelled")
    scene.stays(pod, until=fell + GRACE_SECONDS * 3 + AT_ONCE_SECONDS)


@STORIES.under(AT_ONCE)
def a_profile_that_goes_makes_its_pods_leave(scene: ProfileScene) -> None:
    scene.give("loose", LOOSE)
    pod = scene.pod("kept", scene.node())
    scene.until_heeded("loose", 1)
    fell = scene.taint(f"{scene.namespace}-n1", taint("940"))
    scene.stays(pod, until=fell + OBSERVED_SECONDS)
    gone = scene.take_away("loose")
    scene.leaves(pod, gone)


# -- while evictions wait ---------------------------------------------------------------------------------------------


@STORIES.under(SLOWLY)
def pods_that_wait_their_turn_stay_when_the_profile_that_condemned_them_goes(scene: ProfileScene) -> None:
    scene.give("strict", STRICT)
    node = scene.node(taint("980"))
    pods = [scene.pod(name, node, EXISTS) for name in ("a", "b", "c")]
    scene.until_heeded("strict", 3)
    scene.taint(node, taint("940"))

    def gone() -> list[PodRef]:
        return [pod for pod in pods if scene.watch.evicted_at(pod.uid) is not None]

    wait_until(gone, PATIENCE_SECONDS, "the first of them to leave")
    taken = scene.take_away("strict")
    before = gone()
    assert len(before) == 1, "this machine is too busy to judge by"
    scene.stays(*[pod for pod in pods if pod not in before], until=taken + TURN_SECONDS + AT_ONCE_SECONDS)


# -- what the server refuses, what the operator says ------------------------------------------------------------------


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


@STORIES.under(AT_ONCE)
def a_profile_says_that_it_is_accepted_and_how_many_pods_it_selects(scene: ProfileScene) -> None:
    node = scene.node()
    scene.pod("a", node, labels={"app": "web"})
    scene.give("web", STRICT, app="web")
    scene.until_heeded("web", 1)
    scene.pod("b", node, labels={"app": "web"})
    scene.until_heeded("web", 2)
    (condition,) = scene.told("web")["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Accepted", "True", "Valid")
