"""Faults strike as often as configured, and leave no trace."""

import asyncio

import aiohttp
import pytest

from contract.api import Api, unique
from localcluster import LocalCluster


async def test_an_answer_is_made_up(cluster: LocalCluster, api: Api) -> None:
    cluster.faults.answer(429, method="POST", path="/leases$", times=2, retry_after_seconds=3)
    body = {"metadata": {"name": unique("lease")}}
    for _ in range(2):
        answer = await api.request("POST", api.leases, body)
        assert (answer.status, answer.reason, answer.headers["Retry-After"]) == (429, "TooManyRequests", "3")
    assert (await api.request("POST", api.leases, body)).status == 201


async def test_other_requests_are_spared(cluster: LocalCluster, api: Api) -> None:
    cluster.faults.answer(500, method="POST", path="/pods$")
    assert (await api.request("GET", api.pods)).status == 200
    assert (await api.request("POST", api.leases, {"metadata": {"name": "a"}})).status == 201


async def test_a_connection_is_cut_before_the_answer(cluster: LocalCluster, api: Api) -> None:
    cluster.faults.cut(path="/leases$")
    with pytest.raises(aiohttp.ClientError):
        await api.request("POST", api.leases, {"metadata": {"name": "a"}})
    assert cluster.faults.requests[-1].status == 0
    assert cluster.store.list("leases") == []


async def test_a_request_hangs_until_it_is_released(cluster: LocalCluster, api: Api) -> None:
    fault = cluster.faults.hang(path="/leases$")
    request = asyncio.create_task(api.request("POST", api.leases, {"metadata": {"name": "a"}}))
    await api.eventually(lambda: _struck(fault), "the request arrived")
    assert not request.done()
    assert cluster.store.list("leases") == []
    fault.lifted.set()
    assert (await request).status == 201


async def _struck(fault: object) -> bool:
    return bool(getattr(fault, "occurrences", 0))


async def test_a_request_is_slow(cluster: LocalCluster, api: Api) -> None:
    cluster.faults.slow(0.05, path="/pods$")
    loop = asyncio.get_running_loop()
    began = loop.time()
    await api.get(api.pods)
    assert round(loop.time() - began, 3) >= 0.05  # its clock has milliseconds


async def test_clearing_releases_everything(cluster: LocalCluster, api: Api) -> None:
    fault = cluster.faults.hang(path="/pods$")
    request = asyncio.create_task(api.request("GET", api.pods))
    await api.eventually(lambda: _struck(fault), "the request arrived")
    cluster.faults.answer(500, path="/pods$", times=100)
    cluster.faults.garble_watch()
    cluster.faults.delay_watch("pods", 600.0)
    cluster.faults.clear()
    assert (await request).status == 200
    async with api.watch(api.pods, resourceVersion=cluster.store.revision) as watch:
        await api.new_pod("pod-a")
        assert "annotations" not in (await watch.expect("ADDED", "pod-a"))["metadata"]


async def test_the_log_counts(cluster: LocalCluster, api: Api) -> None:
    await api.get(api.pods)
    await api.request("GET", f"{api.pods}/nothing")
    assert cluster.faults.count("GET", "/pods") == 2
    assert [one.status for one in cluster.faults.requests][-2:] == [200, 404]


@pytest.mark.parametrize("mid_line", [True, False])
async def test_a_watch_is_cut(cluster: LocalCluster, api: Api, mid_line: bool) -> None:
    async with api.watch(api.pods, resourceVersion=cluster.store.revision) as watch:
        await api.eventually(lambda: _open(cluster, 1), "the watch is open")
        cluster.faults.cut_watch("pods", mid_line=mid_line)
        await api.new_pod("pod-a")
        with pytest.raises((aiohttp.ClientError, ValueError) if mid_line else aiohttp.ClientError):
            await watch.next()


async def _open(cluster: LocalCluster, number: int) -> bool:
    return cluster.open_watches() == number


async def test_a_watch_fails_with_an_error_line(cluster: LocalCluster, api: Api) -> None:
    cluster.faults.fail_watch(500, "pods")
    async with api.watch(api.pods, resourceVersion=cluster.store.revision) as watch:
        await api.new_pod("pod-a")
        event = await watch.next()
        assert event is not None
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
        assert await watch.next() is None


async def test_a_garbled_line_is_valid_json_with_wrong_types(cluster: LocalCluster, api: Api) -> None:
    cluster.faults.garble_watch("pods")
    async with api.watch(api.pods, resourceVersion=cluster.store.revision) as watch:
        await api.new_pod("pod-a", labels={"a": "b"})
        event = await watch.next()
        assert event is not None
        assert event["object"]["metadata"]["annotations"] == 7
        await api.new_pod("pod-b")
        assert (await watch.expect("ADDED", "pod-b"))["metadata"]["uid"]


async def test_a_watch_is_late(cluster: LocalCluster, api: Api) -> None:
    cluster.faults.delay_watch("pods", 0.05)
    async with api.watch(api.pods, resourceVersion=cluster.store.revision) as watch:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await api.new_pod("pod-a")
        await watch.expect("ADDED", "pod-a")
        assert round(loop.time() - began, 3) >= 0.05  # its clock has milliseconds


async def test_dropped_watches_end_cleanly(cluster: LocalCluster, api: Api) -> None:
    async with api.watch(api.pods, resourceVersion=cluster.store.revision) as watch:
        await api.eventually(lambda: _open(cluster, 1), "the watch is open")
        assert cluster.drop_watches("nodes") == 0
        assert cluster.drop_watches("pods") == 1
        assert await watch.next() is None
    await api.eventually(lambda: _open(cluster, 0), "the watch is closed")
