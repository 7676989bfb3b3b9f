"""Watches: what a client may not rely on elsewhere."""

import asyncio

import pytest

from contract.api import Api
from localcluster import LocalCluster
from localcluster.store import watching
from localcluster.store.entries import Selection


async def test_bookmarks_come_from_time_to_time(cluster: LocalCluster, api: Api) -> None:
    async with api.watch(api.pods, resourceVersion=cluster.store.revision, allowWatchBookmarks="true") as watch:
        for _ in range(3):
            event = await watch.next()
            assert event is not None
            assert event["type"] == "BOOKMARK"


async def test_a_bookmark_does_not_come_before_what_happened_up_to_its_version(
    cluster: LocalCluster, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod is created in the moment in which a bookmark is due."""
    ready = watching.Watcher.ready

    async def just_too_late(watcher: watching.Watcher, timeout_seconds: float) -> bool:
        is_ready = await ready(watcher, timeout_seconds)
        if not is_ready and not cluster.store.list("pods"):
            cluster.create(
                "pods", {"metadata": {"name": "pod-a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            )
        return is_ready

    monkeypatch.setattr(watching.Watcher, "ready", just_too_late)
    async with api.watch(api.pods, resourceVersion=cluster.store.revision, allowWatchBookmarks="true") as watch:
        event = await watch.next()
        assert event is not None
        assert event["type"] == "ADDED"


async def test_a_slow_watcher_is_ended(cluster: LocalCluster) -> None:
    pods = cluster.store.collection("pods")
    watcher = watching.Watcher(cluster.store, pods, Selection(), b'{"kind":"Pod",', most=3)
    assert len(pods.listeners) == 1
    watcher.start(cluster.store.revision)
    for number in range(5):
        cluster.store.create("pods", {"metadata": {"name": f"pod-{number}"}})
    assert watcher.has_ended
    assert len(watcher.take()) == 3
    watcher.close()
    assert pods.listeners == []


async def test_many_watchers_see_the_same(cluster: LocalCluster, api: Api) -> None:
    async def first() -> str:
        async with api.watch(api.pods, resourceVersion=cluster.store.revision) as watch:
            event = await watch.next()
            assert event is not None
            return event["object"]["metadata"]["name"]

    watches = [asyncio.create_task(first()) for _ in range(20)]

    async def all_open() -> bool:
        return cluster.open_watches("pods") == 20

    await api.eventually(all_open, "all watches are open")
    await api.new_pod("pod-a")
    assert await asyncio.gather(*watches) == ["pod-a"] * 20


async def test_a_watch_without_a_revision_is_refused(api: Api) -> None:
    for revision in ("", "0"):
        assert (await api.request("GET", api.pods, watch="1", resourceVersion=revision)).status == 501


async def test_streaming_lists_are_refused_as_by_servers_without_them(api: Api) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    answer = await api.request("GET", api.pods, watch="1", **query)
    assert (answer.status, answer.reason) == (422, "Invalid")
