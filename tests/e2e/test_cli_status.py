"""The commands for people on duty against a real API server and the running operator, with a plain admin's rights."""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from controlplane import Json, Target
from controlplane.operator_process import EXECUTABLE
from e2e import users
from e2e.stories import PodRef, Scene, Stories, Story, Told, conditions, play, taint, telling, toleration
from e2e.test_explain import run

FINE, REFUSED, PERSON = 0, 1, 10
LEAVES = 10
WAIT_SECONDS = 40
OBSERVED_SECONDS = 4
GOOD, BAD = taint("980"), taint("900")
READERS = [
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces", "replicationcontrollers"], "verbs": ["list"]},
    {"apiGroups": ["apps"], "resources": ["replicasets", "statefulsets", "daemonsets"], "verbs": ["list"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list"]},
    {"apiGroups": ["taintwarden.io"], "resources": ["*"], "verbs": ["get", "list"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["get"]},
]
ADMIN = [*READERS, {"apiGroups": ["taintwarden.io"], "resources": ["taintevictionpolicies"], "verbs": ["patch"]}]
GUARDED = {"limits": {"base": "None", "guard": {"minPods": 3, "maxPercent": 20}}}
PAUSED, RESET, READ_ONLY, PLANNED, EXPLAINED, SHOWN = (
    f"cli-{name}" for name in ("paused", "reset", "read-only", "planned", "explained", "shown")
)
POLICIES: dict[str, Json] = {
    PAUSED: {},
    RESET: GUARDED,
    READ_ONLY: {},
    PLANNED: {"limits": {"base": "None", "evictionsPerSecond": 0.5, "burst": 1}},
    EXPLAINED: GUARDED,
    SHOWN: GUARDED,
}
STORIES = Stories()


@dataclass
class DutyScene(Scene):
    """With the commands, typed by somebody with the rights of an admin, or of a reader."""

    target: Target = field(kw_only=True)
    folder: Path = field(kw_only=True)
    kubeconfig: Path | None = field(default=None, kw_only=True)
    """Of whoever types, from the first command on."""
    rights: ExitStack = field(default_factory=ExitStack, kw_only=True)

    def types(self, *args: str, rules: Sequence[Json] = ADMIN) -> CompletedProcess[str]:
        """Run `taintwarden`. The rights are those of the first command."""
        if self.kubeconfig is None:
            user = users.user(self.target, self.namespace, rules, self.folder / self.namespace)
            self.kubeconfig = self.rights.enter_context(user)
        return run([str(EXECUTABLE), *args], self.kubeconfig)

    def clear(self) -> None:
        self.rights.close()
        super().clear()

    def told(self) -> Json:
        """What `status` says of the policy."""
        (found,) = json.loads(self.types("status", self.policy, "-o", "json").stdout)["policies"]
        return found

    def pods(self) -> list[PodRef]:
        """Six pods on a good node which want more than 950. The operator knows the node and the policy."""
        node = self.node(GOOD, name="n")
        pods = [self.pod(f"web-{number}", node, toleration("Gt", "950")) for number in range(6)]
        self.wait(lambda: self.status().get("selectedNodes") == 1, WAIT_SECONDS, "the node to be selected")
        return pods

    def fall(self) -> None:
        """The value that evicts the pods."""
        self.taint(f"{self.namespace}-n", BAD)

    def gone(self) -> list[str]:
        """Who was evicted, in order, also within a second: nobody is there to end them."""
        found = self.cluster.items("pods", self.namespace)
        leaving = [one["metadata"] for one in found if "deletionTimestamp" in one["metadata"]]
        in_order = sorted(leaving, key=lambda one: (one["deletionTimestamp"], int(one["resourceVersion"])))
        return [one["name"] for one in in_order]

    def wait_gone(self, pods: Sequence[PodRef]) -> None:
        self.wait(lambda: len(self.gone()) == len(pods), WAIT_SECONDS, "all to leave")

    def wait_condition(self, kind: str, reason: str) -> None:
        """Wait until a condition of the policy has this reason."""
        self.wait(
            lambda: conditions(self.cluster, self.policy).get(kind, {}).get("reason") == reason,
            WAIT_SECONDS,
            f"{kind} of {self.policy} to be {reason}",
        )


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("status")
    scene = partial(DutyScene, target=control_plane, folder=folder)
    with telling(request, control_plane, folder, STORIES, POLICIES, scene=scene) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def test_a_plan_is_what_then_happens(told: Told) -> None:
    """A plan is of the whole cluster, so the stories are over."""
    told.wait()
    other, name = next(iter(told.scenes.values())), f"story-{uuid.uuid4().hex[:8]}"
    play(Story(a_plan_is_what_then_happens, PLANNED), replace(other, policy=PLANNED, namespace=name, kubeconfig=None))


@STORIES.under(PAUSED)
def a_paused_policy_evicts_nobody_until_it_is_resumed(scene: DutyScene) -> None:
    pods, name = scene.pods(), scene.policy
    paused = scene.types("pause", name)
    assert paused.returncode == FINE
    assert paused.stdout.startswith(f"policy {name} is paused; its mode stays Enforce (cluster https://")
    scene.wait_condition("Enforcing", "Paused")
    scene.fall()
    scene.stays(*pods, until=time.monotonic() + OBSERVED_SECONDS)
    would = "paused, 6 pods would be due"
    scene.wait(lambda: would in str(conditions(scene.cluster, name)), WAIT_SECONDS, "the pods to be counted")
    told = scene.told()
    assert (told["mode"], would in told["progress"]) == ("Paused", True)
    assert f"policy {name} is {would}" in scene.types("plan").stdout.replace("\n            ", " ")
    explained = scene.types("explain", "pod", f"{scene.namespace}/web-0").stdout
    assert f"policy {name} is {would}" in explained.replace("\n", " ")
    resumed = scene.types("resume", name).stdout
    assert resumed.startswith(f"policy {name} is in mode Enforce again; 6 pods would be due (cluster https://")
    scene.wait_gone(pods)


@STORIES.under(RESET)
def a_guard_that_has_tripped_is_told_of_and_reset(scene: DutyScene) -> None:
    pods, name = scene.pods(), scene.policy
    closed = scene.types("guard", "reset", name, "--yes")
    assert (closed.returncode, closed.stdout) == (REFUSED, "")
    assert "there is nothing to reset" in closed.stderr
    scene.fall()
    scene.wait_condition("GuardTripped", "MassEviction")
    shown = scene.types("status", name)
    assert (shown.returncode, "its guard has tripped" in shown.stdout) == (PERSON, True)
    assert scene.gone() == []

    reset = scene.types("guard", "reset", name, "--yes")
    assert reset.returncode == FINE, reset.stderr
    assert "6 pods due in the next 10m, 3 are allowed" in " ".join(reset.stdout.split())
    scene.wait_gone(pods)
    scene.wait(lambda: scene.types("status", name).returncode == FINE, WAIT_SECONDS, "the status to be fine again")
    annotations = lambda: scene.cluster.get("taintevictionpolicies", name)["metadata"].get("annotations", {})  # noqa: E731
    is_removed = lambda: "taintwarden.io/guard-reset" not in annotations()  # noqa: E731
    scene.wait(is_removed, WAIT_SECONDS, "the annotation to be removed")


@STORIES.under(READ_ONLY)
def whoever_may_only_read_is_told_so(scene: DutyScene) -> None:
    told = scene.types("pause", scene.policy, rules=READERS)
    assert (told.returncode, told.stdout, len(told.stderr.splitlines())) == (REFUSED, "", 1)
    assert told.stderr.startswith("taintwarden: you may not change taintevictionpolicies: 403 Forbidden")


def a_plan_is_what_then_happens(scene: DutyScene) -> None:
    pods = scene.pods()
    plan = scene.types("plan", "--node", f"{scene.namespace}-n", "--taint", "sla=900:NoExecute", "-o", "json")
    assert plan.returncode == FINE, plan.stderr
    planned = [one for one in json.loads(plan.stdout)["pods"] if one["namespace"] == scene.namespace]
    assert [round(one["afterSeconds"]) for one in planned] == [0, 2, 4, 6, 8, 10]
    assert scene.gone() == []
    scene.fall()
    scene.wait_gone(pods)
    assert scene.gone() == [one["name"] for one in planned]


@STORIES.under(EXPLAINED)
def a_node_is_explained_and_what_happened_is_told(scene: DutyScene) -> None:
    pods = scene.pods()
    scene.fall()
    scene.event(scene.policy, "GuardTripped")
    found = scene.types("history", "-o", "json")
    assert found.returncode == FINE, found.stderr
    happened = [(one["name"], one["reason"]) for one in json.loads(found.stdout)["happenings"]]
    assert (scene.policy, "GuardTripped") in happened
    holds = f"the guard of policy {scene.policy} holds it: since "
    counted = "6 pods due in the next 10m, 3 are allowed"

    def waits() -> bool:
        explained = scene.types("explain", "node", f"{scene.namespace}-n", "-o", "json")
        found = json.loads(explained.stdout)
        assert (explained.returncode, found["leaving"]) == (LEAVES, len(pods))
        # DaemonSets of a cluster of others have pods on every node.
        mine = [one["waitsFor"] for one in found["pods"] if one["pod"]["namespace"] == scene.namespace]
        return len(mine) == len(pods) and all(one.startswith(holds) and counted in one for one in mine)

    scene.wait(waits, WAIT_SECONDS, "the status to say what the pods wait for")


@STORIES.under(SHOWN)
def top_needs_the_rights_of_a_reader_only(scene: DutyScene) -> None:
    scene.pods()
    scene.fall()
    scene.wait_condition("GuardTripped", "MassEviction")
    shown = scene.types("top", "--once", rules=READERS)
    assert (shown.returncode, shown.stderr) == (FINE, "")
    assert "not read" not in shown.stdout
    assert "guard tripped" in shown.stdout
    [row] = [line for line in shown.stdout.splitlines() if f"{scene.namespace}-n " in line and "▲" in line]
    assert row.rstrip().endswith("6 ▲▲▲▲▲▲")
    assert "the guard of policy" in shown.stdout
