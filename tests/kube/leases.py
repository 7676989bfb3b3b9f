"""A Lease in memory, with an API server's rules for it, and a network that fails on demand."""

import asyncio
import copy
import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from kube.scripted import refusal
from taintwarden.kube.calls.lease import Lease
from taintwarden.kube.errors import Unreachable

Json = dict[str, Any]


class LeaseStore:
    """The Lease that all candidates read and write, with its resourceVersion."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.twins: list[list[str]] = []
        """Holders at each moment at which there was more than one."""
        self._versions = itertools.count(1)

    def handle(self, method: str, body: Any) -> Json:
        if method != "GET" and (body["spec"].get("leaseTransitions") or 0) >= 2**31:
            raise refusal(400, reason="BadRequest")
        if method == "GET":
            if self.lease is None:
                raise refusal(404, reason="NotFound")
        elif method == "POST":
            if self.lease is not None:
                raise refusal(409, reason="AlreadyExists")
            self.lease = body
        else:
            assert method == "PUT"
            if self.lease is None:
                raise refusal(404, reason="NotFound")
            if body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]:
                raise refusal(409, reason="Conflict")
            self.lease = body
        if method != "GET":
            self.lease["metadata"] |= {"resourceVersion": str(next(self._versions))}
        return msgspec.json.decode(msgspec.json.encode(self.lease))

    @property
    def holder(self) -> str:
        return self.lease["spec"]["holderIdentity"] if self.lease else ""


class Network:
    """The connection of one candidate to the store, with a delay before and after the server acts."""

    def __init__(self, store: LeaseStore) -> None:
        self.store = store
        self.delay = 0.01
        self.delay_back = 0.0
        self._answers = asyncio.Event()
        self._answers.set()
        self.fails: Exception | None = None
        self.refuses_writes = False
        self.says: bytes | None = None
        """Answer to every request, if set, instead of the store's."""
        self.repeats = 0
        """Number of PUTs that are sent twice, as after a connection that ended before the answer."""
        self.on_answer: Callable[[], None] = lambda: None
        self.calls: list[tuple[str, float]] = []

    @property
    def hangs(self) -> bool:
        """True while no request is answered."""
        return not self._answers.is_set()

    @hangs.setter
    def hangs(self, hangs: bool) -> None:
        (self._answers.clear if hangs else self._answers.set)()

    async def request(
        self,
        method: str,
        _: str,
        *,
        body: Any = None,
        timeout_seconds: float | None = None,
        **_more: Any,
    ) -> bytes:
        self.calls.append((method, asyncio.get_running_loop().time()))
        body = msgspec.json.decode(msgspec.json.encode(body))
        try:
            async with asyncio.timeout(timeout_seconds or 30.0):
                await asyncio.sleep(self.delay)
                await self._answers.wait()
                if self.fails is not None:
                    raise self.fails
                if self.refuses_writes and method != "GET":
                    raise refusal(400, reason="Invalid")
                if self.says is not None:
                    return self.says
                if method == "PUT" and self.repeats:
                    self.repeats -= 1
                    self.store.handle(method, copy.deepcopy(body))
                answer = self.store.handle(method, body)
                await asyncio.sleep(self.delay_back)
        except TimeoutError as error:
            msg = "timeout"
            raise Unreachable(msg) from error
        if method == "PUT":
            on_answer, self.on_answer = self.on_answer, lambda: None
            on_answer()
        return msgspec.json.encode(answer)


def coarse_time() -> float:
    """The loop's time in steps: simulated time would never end the last 1e-15 of a second before a deadline."""
    return int(asyncio.get_running_loop().time() * 1024) / 1024


class Candidate:
    """A Lease that runs, and the times of its changes, errors and renewals."""

    def __init__(self, store: LeaseStore, name: str = "a", on_change: Callable[[bool], None] | None = None) -> None:
        self.network = Network(store)
        self.changes: list[tuple[float, bool]] = []
        self.errors: list[str] = []
        self.renewals: list[tuple[float, bool]] = []
        self._also = on_change
        self.lease = Lease(
            self.network,
            namespace="ns",
            name="taintwarden",
            identity=name,
            monotonic=coarse_time,
            on_change=self._changed,
            on_error=self.errors.append,
            on_renewal=lambda succeeded: self.renewals.append((coarse_time(), succeeded)),
        )
        self.task: asyncio.Task[None] | None = None

    def _changed(self, held: bool) -> None:
        self.changes.append((round(asyncio.get_running_loop().time(), 2), held))
        if self._also is not None:
            self._also(held)

    def start(self) -> "Candidate":
        self.task = asyncio.create_task(self.lease.run())
        return self

    async def kill(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
