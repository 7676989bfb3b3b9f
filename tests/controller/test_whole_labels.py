"""The whole operator and the label by which pods of several controllers count together."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controller.whole import Whole, whole
from limits_off import LIMITS_OFF

BY_APP = {"limits": {**LIMITS_OFF, "perWorkload": {"maxUnavailable": "100%", "label": "app"}}}
DB = {"app": "db"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    """Three StatefulSets of one replica each on a bad node, and a fourth whose pod does not exist."""
    async with whole(monkeypatch, tmp_path) as made:
        made.node("n1", "940")
        for name in "abcd":
            stateful_set(made, name)
        for name in "abc":
            member(made, name)
        yield made


def stateful_set(scene: Whole, name: str) -> None:
    template = {"metadata": {"labels": DB}}
    body = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}}
    scene.cluster.store.create("statefulsets", body | {"spec": {"replicas": 1, "template": template}})


def member(scene: Whole, name: str) -> None:
    """A Ready pod of this StatefulSet."""
    scene.pods("n1", name)
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": f"uid-{name}", "controller": True}

    def change(pod: dict[str, Any]) -> None:
        pod["metadata"] |= {"labels": DB, "ownerReferences": [owner]}
        pod["status"] = READY

    scene.cluster.store.modify("pods", name, "default", change)


async def test_a_label_that_is_named_later_is_read_of_controllers_that_are_known(scene: Whole) -> None:
    scene.policy(paused=True)
    app = await scene.start()
    await scene.until(lambda: app.machine.view.is_leading)
    scene.cluster.store.modify(
        "taintevictionpolicies", "sla", "", lambda one: one["spec"].update({"paused": False, **BY_APP})
    )
    await scene.until(lambda: [one["limit"] for one in scene.status_of().get("limits", [])] == ["workload"])
    [limit] = scene.status_of()["limits"]
    assert limit["message"] == ("1 of 4 pods with label app=db is missing or being evicted, and at most 1 may be")
    assert scene.observed() == {"a", "b", "c"}
    scene.cluster.store.delete("statefulsets", "d", "default")
    await scene.until(lambda: len(scene.observed()) == 2)
