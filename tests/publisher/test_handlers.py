"""The handlers under kopf itself and with the official client, on the embedded API server.

It knows no JSON patches, by which kopf writes finalizers: objects have theirs, and deletions are tried on the real one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import pytest
from kubernetes.aio import client

from definitions import define
from localcluster import LocalCluster
from patience import until
from publisher.answering import Answers, vector
from publisher.scene import body
from taintwarden.telemetry.metrics import Metrics
from taintwarden_publisher import handlers, rounds
from taintwarden_publisher.cluster import Cluster, configuration
from taintwarden_publisher.reporting import Report
from taintwarden_publisher.rounds import Tools


class Running:
    """kopf with the publisher's handlers, in this process."""

    def __init__(self, cluster: LocalCluster, prometheus: Answers, tools: Tools) -> None:
        self.cluster = cluster
        self.prometheus = prometheus
        self.tools = tools

    def create(self, name: str = "sla", **fields: Any) -> None:
        fast = {"mode": "Publish", "maxChangedNodes": "100%", "intervalSeconds": 1, "minDwellSeconds": 0}
        made = body(name, **fast | {"url": self.prometheus.url} | fields)
        metadata = {"name": name, "finalizers": [handlers.FINALIZER]}
        self.cluster.create("taintpublishers", made | {"metadata": metadata})

    def objects(self) -> float | None:
        return self.tools.metrics.registry.get_sample_value("taintwarden_publisher_objects")

    async def seen(self, generation: int) -> None:
        """Wait until the watch of the process has delivered this generation."""
        marker = f"marker-{generation}"
        self.create(marker, key=marker, url="http://127.0.0.1:1", mode="DryRun")
        await until(lambda: self.reason("Accepted", marker), "an object that is created later")

    def stuck(self) -> float | None:
        return self.tools.metrics.registry.get_sample_value("taintwarden_publisher_stuck", {"publisher": "sla"})

    def values(self, key: str = "sla") -> list[str]:
        taints = self.cluster.store.get("nodes", "a1")["spec"].get("taints", ())
        return [one["value"] for one in taints if one["key"] == key]

    def reason(self, kind: str, name: str = "sla") -> str:
        conditions = self.cluster.store.get("taintpublishers", name).get("status", {}).get("conditions", ())
        return next((one["reason"] for one in conditions if one["type"] == kind), "")

    def events(self) -> list[str]:
        return [one["reason"] for one in self.cluster.store.list("events", "default")]


@asynccontextmanager
async def running(prometheus: Answers, session: aiohttp.ClientSession, tmp_path: Path) -> AsyncIterator[Running]:
    """Run kopf in the task of the test: when kopf ends, it cancels all tasks that are newer than itself."""
    cluster = LocalCluster(bookmark_seconds=1.0)
    cluster.create("nodes", {"metadata": {"name": "a1"}})
    define(cluster, "taintpublishers", "taintevictionpolicies")
    prometheus.says(vector({"a1": 985}))
    async with AsyncExitStack() as served:
        server = await served.enter_async_context(cluster.serve())
        kubeconfig = str(server.write_kubeconfig(tmp_path / "kubeconfig"))

        async def load() -> client.Configuration:
            return await configuration(kubeconfig, None)

        async with client.ApiClient(await load()) as api:
            registry, ready, stop = kopf.OperatorRegistry(), asyncio.Event(), asyncio.Event()
            tools = Tools(Cluster(api, "default"), session, Metrics())
            handlers.register(registry, tools, load)
            task = asyncio.create_task(
                kopf.operator(registry=registry, clusterwide=True, standalone=True, ready_flag=ready, stop_flag=stop)
            )
            await ready.wait()
            run = Running(cluster, prometheus, tools)
            yield run
            stop.set()
            await until(lambda: not run.objects(), "the end of its rounds")
            # kopf waits five seconds for tasks that are newer than itself: for those of these connections
            await session.close()
            await served.aclose()
            await task


async def test_an_object_is_published_and_followed(prometheus, session, tmp_path):
    async with running(prometheus, session, tmp_path) as run:
        assert run.objects() == 0
        run.create()
        await until(lambda: run.objects() == 1, "its rounds")
        await until(lambda: run.values() == ["980"], "the taint")
        run.prometheus.says(vector({"a1": 100}))
        await until(lambda: run.values() == ["0"], "the new value")
        await until(lambda: run.reason("Publishing") == "Publishing", "the status")
        await until(lambda: run.events().count("TaintsPublished") == 2, "an Event for each round that wrote")


async def test_a_second_object_with_the_key_writes_nothing(prometheus, session, tmp_path):
    async with running(prometheus, session, tmp_path) as run:
        run.create(mode="DryRun")
        await until(lambda: run.reason("Publishing") == "DryRun", "the first one")
        run.create("younger")
        await until(lambda: run.reason("Accepted", "younger") == "KeyTaken", "the second one")
        assert run.values() == []


async def test_a_change_of_the_object_is_followed_before_its_interval_is_over(prometheus, session, tmp_path):
    async with running(prometheus, session, tmp_path) as run:
        run.create(mode="DryRun", intervalSeconds=3600)
        await until(lambda: run.reason("Publishing") == "DryRun", "the first round")
        run.cluster.store.modify("taintpublishers", "sla", "", lambda one: one["spec"].update(mode="Publish"))
        await until(lambda: run.values() == ["980"], "the taint")


async def test_a_change_of_the_object_ends_a_round_that_writes(prometheus, session, tmp_path, monkeypatch):
    async with running(prometheus, session, tmp_path) as run:
        names = [f"n{index:02}" for index in range(20)]
        for name in names:
            run.cluster.create("nodes", {"metadata": {"name": name}})
        run.prometheus.says(vector(dict.fromkeys(names, 985)))
        begun: list[str] = []
        free, patch_node = asyncio.Event(), Cluster.patch_node

        async def slow(cluster: Cluster, name: str, patch: Any) -> Any:
            begun.append(name)
            await free.wait()
            return await patch_node(cluster, name, patch)

        monkeypatch.setattr(Cluster, "patch_node", slow)
        run.create()
        await until(lambda: len(begun) == rounds.MAX_WRITES, "the first writes")
        run.cluster.store.modify("taintpublishers", "sla", "", lambda one: one["spec"].update(mode="DryRun"))
        await run.seen(2)
        free.set()
        await until(lambda: run.reason("Publishing") == "DryRun", "the next round")
    assert len(begun) == rounds.MAX_WRITES


async def test_an_object_that_is_gone_without_a_handled_deletion_is_not_stuck(prometheus, session, tmp_path):
    async with running(prometheus, session, tmp_path) as run:
        run.prometheus.says("", 503)
        run.create()
        await until(lambda: run.stuck() == 1, "the metric")
        run.cluster.store.modify("taintpublishers", "sla", "", lambda one: one["metadata"].update(finalizers=[]))
        run.cluster.store.delete("taintpublishers", "sla")
        await until(lambda: run.stuck() is None, "the end of its series")
        await until(lambda: run.objects() == 0, "the end of its rounds")


async def test_an_internal_error_is_measured(prometheus, session, tmp_path, monkeypatch):
    async with running(prometheus, session, tmp_path) as run:
        monkeypatch.setattr(rounds, "decide", lambda _: {}["a fault"])
        run.create()
        await until(lambda: run.stuck() == 1, "the metric")


class Stopped:
    """A stop flag as kopf passes it to a daemon: set for a reason at once, or after one wait."""

    def __init__(self, reason: kopf.DaemonStoppingReason | None = None) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return self.reason is not None

    async def wait(self, _seconds: float) -> None:
        self.reason = kopf.DaemonStoppingReason.RESOURCE_DELETED


@pytest.mark.parametrize(
    ("reason", "rounds_played"),
    [(kopf.DaemonStoppingReason.OPERATOR_EXITING, 0), (kopf.DaemonStoppingReason.RESOURCE_DELETED, 1)],
)
async def test_an_event_that_is_queued_at_the_exit_begins_no_round(reason, rounds_played, monkeypatch):
    played: list[str] = []

    async def run(_self: rounds.Rounds, *_: Any) -> tuple[Report, list[Any]]:
        played.append("sla")
        return Report(()), []

    monkeypatch.setattr(rounds.Rounds, "run", run)
    daemons = handlers.Daemons(Tools(None, None, Metrics()))
    one = kopf.Body({"metadata": {"name": "sla"}, "spec": {}})
    await daemons.run(one, kopf.Memo(), Stopped(reason), {}, {})
    await daemons.run(one, kopf.Memo(), Stopped(), {}, {})
    assert len(played) == rounds_played
