"""Hypothesis: the same cases in every automated run, so that main is not guarded by chance; new ones on a desk."""

import asyncio
import os

import pytest
import structlog
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# looptime asks for the current loop before each test, and Python makes one for the first that is not asynchronous,
# which nobody closes. From here on it is told that there is none.
asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def plain_logs() -> None:
    """A test that configures logs, as every command does, silences them for no other test."""
    structlog.reset_defaults()
