"""Fixtures of what listens."""

import pytest

from controlplane.api_server import free_port


@pytest.fixture
def port() -> int:
    """The port to listen on: none that another test, or a connection of this machine, may get meanwhile."""
    return free_port()
