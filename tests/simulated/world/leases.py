"""The real candidates for the lease, in simulated time, on a network that loses, delays and doubles requests.

Rules: never two may act at a time; and a leader whose renewals reach the server is not told that it leads no longer.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import looptime
import msgspec

from kube.leases import Candidate, LeaseStore, Network
from simulated.world.agenda import Noise
from taintwarden.kube.errors import Unreachable

NAMES = ("a", "b", "c")
PLAY_SECONDS = 120.0


class Rough(Network):
    """One candidate's way to the store, which fares by chance.

    Args:
        store: the Lease.
        noise: what happens to each request.
        name: of the candidate.
        twice: how probable it is that a PUT is sent again, since the connection ended after it was carried out.
        lost: how probable it is that an answer is lost.

    """

    def __init__(self, store: LeaseStore, noise: Noise, name: str, twice: float, lost: float) -> None:
        super().__init__(store)
        self.renewed_at = float("-inf")
        """When a renewal of this candidate took effect last."""
        self._noise = noise
        self._name = name
        self._twice = twice
        self._lost = lost
        self._number = 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout_seconds: float | None = None,
        **more: Any,
    ) -> bytes:
        del path, params, content_type, timeout_seconds, more
        self._number += 1
        question = (self._name, self._number)
        await asyncio.sleep(self._noise.between(0.005, 0.2, "there", *question))
        sent = msgspec.json.encode(body)
        answer = self._handle(method, sent)
        if method == "PUT" and self._noise.happens(self._twice, "twice", *question):
            await asyncio.sleep(0.01)
            answer = self._handle(method, sent)
        await asyncio.sleep(self._noise.between(0.005, 0.2, "back", *question))
        if self._noise.happens(self._lost, "lost", *question):
            msg = "connection reset"
            raise Unreachable(msg)
        return msgspec.json.encode(answer)

    def _handle(self, method: str, sent: bytes) -> Any:
        answer = self.store.handle(method, msgspec.json.decode(sent))
        if method != "GET":
            self.renewed_at = asyncio.get_running_loop().time()
        return answer


def play(seed: int, twice: float = 0.1, lost: float = 0.1) -> list[str]:
    """What is wrong with how the lease changed hands in one history."""
    loop = looptime.new_event_loop()
    try:
        return loop.run_until_complete(_story(seed, twice, lost))
    finally:
        loop.close()


async def _story(seed: int, twice: float, lost: float) -> list[str]:
    noise, store, found = Noise(seed), LeaseStore(), list[str]()
    loop = asyncio.get_running_loop()
    candidates: dict[str, Candidate] = {}

    def changed(name: str, held: bool) -> None:
        network = candidates[name].network
        assert isinstance(network, Rough)
        if not held and store.holder == name and loop.time() < network.renewed_at + 2.0:
            found.append(f"{name} is told at {loop.time():.2f} that it lost the lease, which it renewed just before")

    for name in NAMES:
        network = Rough(store, noise, name, twice, lost)
        candidates[name] = Candidate(store, name, partial(changed, name), network).start()
    while loop.time() < PLAY_SECONDS:
        holders = [name for name, one in candidates.items() if one.lease.held]
        if len(holders) > 1:
            found.append(f"{holders} may act at {loop.time():.2f}")
        await asyncio.sleep(0.5)
    for one in candidates.values():
        await one.kill()
    return found
