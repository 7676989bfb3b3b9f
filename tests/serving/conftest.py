"""Fixtures of what listens."""

import pytest


@pytest.fixture
def port(unused_tcp_port: int) -> int:
    """The port to listen on."""
    return unused_tcp_port
