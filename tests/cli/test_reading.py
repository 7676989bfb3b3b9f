"""A snapshot of a cluster is complete in the end, whichever answer comes first."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from taintwarden_cli.rehearsal.reading import Reader
from taintwarden_cli.rehearsal.session import Session
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.rehearsal.sources import COUNTED


class Answering(Session):
    """Answers the lists of workloads in an order of its own."""

    def __init__(self, order: list[str]) -> None:
        self.server = "test"
        self._order = order

    async def pages(self, path: str, kind: Any, what: str, *_: str) -> AsyncIterator[list[Any]]:
        for _ in range(self._order.index(what) + 1):
            await asyncio.sleep(0)
        yield [msgspec.Raw(b'{"metadata": {"name": "web", "namespace": "shop", "uid": "u"}}')]


@pytest.mark.parametrize("last", [source.value for source in COUNTED])
async def test_no_kind_of_workload_is_lost(last):
    order = [source.value for source in COUNTED if source.value != last]
    found = Snapshot()
    await Reader(Answering([*order, last]), found).read(COUNTED)
    assert {kind: len(listed) for kind, listed in found.workloads.items()} == {one.value: 1 for one in COUNTED}
