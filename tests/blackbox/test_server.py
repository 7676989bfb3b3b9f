"""The API server is suspended and resumed."""

import os
import signal
import time

import pytest

from blackbox.box import NO_LIMIT, Box
from e2e.stories import taint

PODS, PER_SECOND, BEGUN = 16, 4, 3
FIRST_SECONDS, RETRY_SECONDS, LATER_SECONDS = 5, 5, 3


@pytest.mark.parametrize("away_seconds", [4, 12], ids=["short", "longer-than-a-leader-may-act"])
def test_evictions_continue_soon_after_a_frozen_server_has_returned(box: Box, away_seconds: int) -> None:
    box.enforce(limits=NO_LIMIT | {"evictionsPerSecond": PER_SECOND, "burst": 1})
    node = box.node()
    pods = box.crowd([box.namespace], PODS, node)
    box.taint(node, taint("900"))
    box.wait(lambda: box.left(pods) <= PODS - BEGUN, 15, "the wave to begin")
    server = box.control_plane.api_server.pid
    assert server
    os.kill(server, signal.SIGSTOP)
    try:
        time.sleep(away_seconds)  # this is the fault
    finally:
        os.kill(server, signal.SIGCONT)
    returned, back, left = time.time(), time.monotonic(), box.left(pods)
    assert left, "the wave was over before"
    box.last_gone(pods, back, FIRST_SECONDS + RETRY_SECONDS + left / PER_SECOND + LATER_SECONDS)
    assert set(box.accepted().values()) == {1}
    first = box.received(since=returned)[0] - returned
    assert first <= FIRST_SECONDS + box.lost(back, back + first)
