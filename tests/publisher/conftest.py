"""A server in the place of Prometheus, and a session to ask it."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from publisher.answering import Answers, answering
from taintwarden_publisher.prometheus import open_session


@pytest.fixture
async def prometheus() -> AsyncIterator[Answers]:
    async with answering() as answers:
        yield answers


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session
