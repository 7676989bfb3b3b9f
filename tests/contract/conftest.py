"""The small API server for the contract."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from contract import MODULES

pytest.register_assert_rewrite(*[f"contract.{name}" for name in MODULES])

from contract.api import Api  # noqa: E402 the assertions of the cases are rewritten first
from localcluster import LocalCluster  # noqa: E402


@asynccontextmanager
async def _serving(*, comparison_operators: bool) -> AsyncIterator[Api]:
    cluster = LocalCluster(comparison_operators=comparison_operators)

    async def compact() -> None:
        cluster.expire_history()

    async with cluster.serve() as server, aiohttp.ClientSession() as session:
        api = Api(session, server.url, compact=compact, comparison_operators=comparison_operators)
        await api.new_namespace()
        yield api


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with _serving(comparison_operators=False) as api:
        yield api


@pytest.fixture
async def api_with_gate() -> AsyncIterator[Api]:
    """With the feature gate TaintTolerationComparisonOperators."""
    async with _serving(comparison_operators=True) as api:
        yield api
