"""Evictions that a webhook, a guard or a budget holds up, of pods with kubelets, controllers and a scheduler."""

import datetime
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import Json, wait_until
from controlplane.waiting import sleep_until
from kind.household import Command
from kind.installation import Installation
from kind.interceptor import HANG_SECONDS, MESSAGE, Interceptor
from kind.scene import LEAVE_SECONDS, SLACK_SECONDS, Scene
from limits_off import LIMITS_OFF

FLAG = "flag"
HOME = "taintwarden-e2e/home"
STATUS_SECONDS = 30
STAYS_SECONDS = 4
LATER_SECONDS = 75
"""After so many seconds at most, and some slack, a postponed eviction is tried again."""
TIMEOUT_SECONDS = 8
WINDOW_SECONDS = 600
SLOT_SECONDS = 30
ALLOWED = 5
"""What a guard allows of ten pods, and of fewer."""
PAUSE = {"image": "registry.k8s.io/pause:3.10", "command": None}


@pytest.fixture
def interceptor(scene: Scene, tmp_path: Path) -> Iterator[Interceptor]:
    """On the last worker, and not asked yet."""
    made = Interceptor(scene, tmp_path)
    made.start(scene.workers[-1])
    yield made
    made.end()


def limits(scene: Scene) -> dict[str, Json]:
    """What delays pods of the policy, by name."""
    return {one["limit"]: one for one in scene.status().get("limits", [])}


def wait_limit(scene: Scene, name: str, pods: int) -> Json:
    def found() -> Json | None:
        entry = limits(scene).get(name)
        return entry if entry and entry["pods"] == pods else None

    return wait_until(found, STATUS_SECONDS, f"{name} to delay {pods} pods") or {}


def condition(scene: Scene, kind: str, policy: str = "") -> Json:
    status = scene.cluster.get("taintevictionpolicies", policy or scene.name).get("status", {})
    return next((one for one in status.get("conditions", []) if one["type"] == kind), {})


def test_an_eviction_that_a_webhook_wants_later_is_postponed_until_it_allows_it(
    scene: Scene, operator: Installation, interceptor: Interceptor, command: Command
) -> None:
    node = scene.workers[0]
    uid = scene.pod("web", on=node, grace_seconds=1)
    scene.wait_running()
    interceptor.ask("postpone", "web")
    scene.policy()
    scene.wait_enforcing()
    scene.taint(node)
    wait_limit(scene, "postponed", 1)
    code, said = command("status", scene.name)
    assert code == 0, "a person is needed after half an hour"
    assert MESSAGE in said
    _, said = command("explain", "pod", f"{scene.name}/web")
    assert "an admission webhook wants its eviction later (429)" in said
    metrics = operator.metrics(operator.leader())
    assert re.search(rf'^taintwarden_blocked_evictions{{policy="{scene.name}",reason="postponed"}} 1', metrics, re.M)
    interceptor.end()
    scene.wait_gone("web", uid, time.monotonic(), LATER_SECONDS)


def test_pods_whose_calls_failed_for_one_policy_count_at_the_guard_of_the_next(
    scene: Scene, interceptor: Interceptor, operator: Installation
) -> None:
    """The calls of the first are in progress when the second one has reason to evict the same pods."""
    node, number = scene.workers[0], 8
    for index in range(number):
        scene.pod(f"web-{index}", on=node, grace_seconds=1, container=PAUSE)
    scene.wait_running(number)
    interceptor.ask("hang", "web-0")
    guard = {"minPods": 3, "maxPercent": 1, "settleSeconds": 1}
    scene.policy(limits={**LIMITS_OFF, "guard": guard})
    scene.wait_enforcing()
    first = f"{scene.name}-first"
    body = scene.cluster.get("taintevictionpolicies", scene.name)
    spec = {"taints": [{"key": FLAG}], "podSelector": body["spec"]["podSelector"], "limits": LIMITS_OFF}
    kind = {name: body[name] for name in ("apiVersion", "kind")}
    scene.cluster.create("taintevictionpolicies", {**kind, "metadata": {"name": first}, "spec": spec})
    try:
        enforces = lambda: condition(scene, "Enforcing", first).get("status") == "True"  # noqa: E731
        wait_until(enforces, STATUS_SECONDS, f"{first} to be in force")
        scene.taint(node, "x", key=FLAG)
        sleep_until(time.monotonic() + HANG_SECONDS / 2)
        scene.taint(node)
        tripped = lambda: condition(scene, "GuardTripped").get("status") == "True"  # noqa: E731
        wait_until(tripped, STATUS_SECONDS, "the guard to trip")
        scene.untaint(node, FLAG)
        interceptor.end()
        wait_limit(scene, "guard", number)
        sleep_until(time.monotonic() + STAYS_SECONDS)
        assert len(scene.running()) == number
    finally:
        scene.cluster.delete("taintevictionpolicies", first)


def test_a_wave_of_half_of_few_pods_waits_for_the_next_window_when_others_go_too(scene: Scene) -> None:
    """No replacement can be scheduled. Evicted pods count for what is allowed, those that go otherwise do not."""
    bad, fine = scene.workers[:2]
    number = 14
    for node in (bad, fine):
        scene.cluster.patch("nodes", node, {"metadata": {"labels": {HOME: scene.name}}})
    even = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    even["labelSelector"] = {"matchLabels": {"story": scene.name}}
    try:
        template = scene.template(
            grace_seconds=1, container=PAUSE, nodeSelector={HOME: scene.name}, topologySpreadConstraints=[even]
        )
        scene.workload("deployments", "web", template, replicas=number)
        nodes = list(scene.wait_running(number).values())
        assert nodes.count(bad) == number // 2
    finally:
        for node in (bad, fine):
            scene.cluster.patch("nodes", node, {"metadata": {"labels": {HOME: None}}})
    guard = {"windowSeconds": WINDOW_SECONDS, "settleSeconds": 1}
    scene.policy(limits={**LIMITS_OFF, "guard": guard, "evictionsPerSecond": 1, "burst": 1})
    scene.wait_enforcing()
    scene.taint(bad)
    on = lambda node: [name for name, where in scene.running().items() if where == node]  # noqa: E731
    wait_until(lambda: len(on(bad)) <= number // 2 - 2, LEAVE_SECONDS, "two to leave")
    for name in on(fine):
        scene.cluster.delete("pods", name, scene.name)
    entry = wait_limit(scene, "guard-window", number // 2 - ALLOWED)
    until = datetime.datetime.fromisoformat(entry["until"]).timestamp()
    assert 0 < until - time.time() < WINDOW_SECONDS + SLOT_SECONDS
    assert condition(scene, "GuardTripped")["status"] == "False"
    assert len(on(bad)) == number // 2 - ALLOWED


def test_a_budget_that_allows_and_then_does_not_delays_each_deletion_by_its_time(scene: Scene) -> None:
    """The first pod is evicted. Its replacement cannot be scheduled, so the others are deleted after the time."""
    node = scene.workers[0]
    template = scene.template(grace_seconds=1, container=PAUSE, nodeSelector={"kubernetes.io/hostname": node})
    scene.workload("deployments", "web", template, replicas=3)
    scene.wait_running(3)
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    scene.cluster.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget}, scene.name)
    scene.policy(eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": TIMEOUT_SECONDS}, limits=LIMITS_OFF)
    scene.wait_enforcing()
    tainted = scene.taint(node)
    gone: list[float] = []

    def all_gone() -> bool:
        while len(gone) < 3 - len(scene.running()):
            gone.append(time.monotonic() - tainted)
        return len(gone) == 3

    wait_until(all_gone, 60, "all to leave")
    assert gone[0] < TIMEOUT_SECONDS / 2
    assert gone[1] >= TIMEOUT_SECONDS
    assert gone[2] < TIMEOUT_SECONDS + SLACK_SECONDS
