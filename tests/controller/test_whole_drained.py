"""The whole operator writes the condition that says whether a node is drained."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller.whole import Whole, whole

KUBELETS = {"type": "Ready", "status": "True", "reason": "KubeletReady"}

STATUS = "^/api/v1/nodes/[^/]+/status$"


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    """A bad node with a pod that has to leave after an hour."""
    async with whole(monkeypatch, tmp_path) as made:
        made.node("n1", "940")
        made.pods("n1", "a", violationGraceSeconds=3_600)
        node = made.cluster.store.get("nodes", "n1")
        node["status"]["conditions"] = [KUBELETS]
        made.cluster.store.update("nodes", node)
        made.policy()
        yield made


def condition_of(scene: Whole, node: str = "n1") -> dict[str, Any]:
    conditions = scene.cluster.store.get("nodes", node)["status"].get("conditions", ())
    return next((one for one in conditions if one["type"] == "taintwarden.io/Drained"), {})


def says(scene: Whole, *wanted: str) -> bool:
    return (condition_of(scene).get("status"), condition_of(scene).get("reason")) == wanted


async def test_a_node_is_drained_when_its_last_pod_is_gone(scene: Whole) -> None:
    await scene.start(drained_condition=True)
    await scene.until(lambda: says(scene, "False", "PodsLeave"))
    assert condition_of(scene)["message"] == "1 pod has to leave; taints: sla=940:NoExecute"
    scene.cluster.store.delete("pods", "a", "default")
    await scene.until(lambda: says(scene, "True", "Drained"))
    assert {"lastHeartbeatTime", "lastTransitionTime"} <= condition_of(scene).keys()
    scene.pods("n1", "b", violationGraceSeconds=3_600)
    await scene.until(lambda: says(scene, "False", "PodsLeave"))


async def test_the_condition_ends_with_the_taint_and_no_other_changes(scene: Whole) -> None:
    await scene.start(drained_condition=True)
    await scene.until(lambda: says(scene, "False", "PodsLeave"))
    scene.taint("n1", "")
    await scene.until(lambda: not condition_of(scene))
    assert scene.cluster.store.get("nodes", "n1")["status"]["conditions"] == [KUBELETS]


async def test_without_the_flag_no_node_gets_the_condition(scene: Whole) -> None:
    await scene.start()
    await scene.until(lambda: scene.status_of().get("pending") == 1)
    assert not condition_of(scene)


async def test_the_next_leader_updates_the_condition(scene: Whole) -> None:
    first = await scene.start(drained_condition=True)
    await scene.until(lambda: says(scene, "False", "PodsLeave"))
    await scene.crash(first)
    scene.cluster.store.delete("pods", "a", "default")
    second = await scene.start("two", drained_condition=True)
    await scene.until(lambda: second.machine.view.is_leading)
    await scene.until(lambda: says(scene, "True", "Drained"))


async def test_a_missing_right_is_logged_once(scene: Whole) -> None:
    for name in ("n2", "n3"):
        scene.node(name, "940")
    scene.faults.answer(403, path=STATUS, times=1_000)
    with capture_logs() as logs:
        await scene.start(drained_condition=True)
        await scene.until(lambda: scene.faults.count("PATCH", STATUS) > 5)
    assert [one["event"] for one in logs].count("drained-condition-not-saved") == 1
