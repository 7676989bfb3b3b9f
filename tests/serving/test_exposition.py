"""Share of the time that goes into the exposition of metrics."""

import asyncio

import pytest

from taintwarden.serving.exposition import SHARE, Exposition

COST_SECONDS = 2.0

pytestmark = pytest.mark.looptime


class Metrics:
    """Metrics whose exposition takes some seconds, and contains the number of expositions made."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.made: list[float] = []

    def __call__(self) -> bytes:
        self.seconds += COST_SECONDS
        self.made.append(asyncio.get_running_loop().time())
        return str(len(self.made)).encode()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def exposition(metrics: Metrics) -> Exposition:
    return Exposition(metrics, lambda: metrics.seconds)


async def test_the_first_exposition_is_made_at_once(exposition, metrics):
    assert (await exposition.response()).body == b"1"
    assert metrics.made == [0.0]


async def test_the_next_exposition_waits_so_that_the_share_is_kept(exposition, metrics):
    for _ in range(3):
        await exposition.response()
    rest = COST_SECONDS * (1 / SHARE - 1)
    assert metrics.made == [0.0, rest, 2 * rest]


async def test_clients_that_wait_share_one_exposition(exposition):
    await exposition.response()
    found = await asyncio.gather(*(exposition.response() for _ in range(50)))
    assert {one.body for one in found} == {b"2"}


async def test_a_client_that_disconnects_does_not_end_the_exposition_of_others(exposition):
    await exposition.response()
    leaving, staying = (asyncio.create_task(exposition.response()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).body == b"2"
