"""The whole operator and values that nodes report of themselves: no taint is written."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.api import pod as pod_body
from controller.whole import Whole, whole

RACK = {"taints": [{"key": "rack", "from": {"label": "example.com/rack"}}]}
HEALTHY = {"taints": [{"key": "gpu", "from": {"condition": "GPUHealthy"}}]}


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    """A node with a pod for each value."""
    async with whole(monkeypatch, tmp_path) as made:
        made.policy()
        made.node("n1", "")
        demand(made, "of-rack", key="rack", operator="Lt", value="9")
        demand(made, "of-gpu", key="gpu", operator="Equal", value="True")
        demand(made, "unaware", key="other", operator="Exists")
        yield made


def demand(scene: Whole, name: str, **toleration: str) -> None:
    body = pod_body(name, nodeName="n1", tolerations=[])
    body["metadata"]["annotations"] = {"taintwarden.io/tolerations": json.dumps([toleration])}
    scene.cluster.create("pods", body)


def change(scene: Whole, part: str, **fields: Any) -> None:
    node = scene.cluster.store.get("nodes", "n1")
    node[part] = {**node.get(part, {}), **fields}
    scene.cluster.store.update("nodes", node)


def rack(scene: Whole, value: str) -> None:
    change(scene, "metadata", labels={"example.com/rack": value})


def healthy(scene: Whole, status: str) -> None:
    change(scene, "status", conditions=[{"type": "GPUHealthy", "status": status}])


async def leads(scene: Whole) -> None:
    app = await scene.start()
    await scene.until(lambda: app.machine.view.is_leading)


async def test_a_source_that_is_named_later_is_read_of_nodes_that_are_known(scene: Whole) -> None:
    rack(scene, "12")
    healthy(scene, "False")
    await leads(scene)
    scene.policy("rack", **RACK)
    await scene.until(lambda: scene.observed() == {"of-gpu", "unaware"})
    scene.policy("gpu", **HEALTHY)
    await scene.until(lambda: scene.observed() == {"unaware"})
