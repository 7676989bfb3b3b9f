"""Requests of the command line to a cluster: page by page, and with patience for a server that asks for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from kube import wire
from localcluster import LocalCluster
from taintwarden.kube.watch.paging import PageLimit
from taintwarden.kube.wire.resources import NODES
from taintwarden_cli.rehearsal.session import Session

NAMES = [f"n{number}" for number in range(7)]


@pytest.fixture
def cluster() -> LocalCluster:
    made = LocalCluster()
    for name in NAMES:
        made.create("nodes", {"metadata": {"name": name, "labels": {"long": "x" * 60}}})
    return made


@asynccontextmanager
async def session(cluster: LocalCluster, **more: Any) -> AsyncIterator[Session]:
    async with cluster.serve() as server, wire.client(server.url) as client:
        yield Session(client, server.url, **more)


async def listed(session: Session) -> list[str]:
    return [one["metadata"]["name"] for one in await session.items(NODES.path, dict[str, Any], NODES.name)]


async def test_lists_are_read_page_by_page(cluster):
    async with session(cluster, page_limit=partial(PageLimit, 2)) as opened:
        pages = [page async for page in opened.pages(NODES.path, dict[str, Any], NODES.name)]
        assert await listed(opened) == NAMES
    assert len(pages[0]) == 2
    assert len(pages) > 1


async def test_a_page_that_is_too_long_is_read_in_parts(cluster):
    async with session(cluster, page_limit=partial(PageLimit, max_answer_bytes=2_000)) as opened:
        assert await listed(opened) == NAMES
    assert len(cluster.faults.requests) > 2
