"""A small cluster, served, and a client that hides nothing."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from contract.api import Api
from localcluster import LocalCluster


@pytest.fixture
def cluster() -> LocalCluster:
    return LocalCluster(bookmark_seconds=0.02)


@pytest.fixture
async def api(cluster: LocalCluster) -> AsyncIterator[Api]:
    async with cluster.serve() as server, aiohttp.ClientSession() as session:
        yield Api(session, server.url, namespace="default")
