"""Who receives a stream."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from taintwarden.kube.wire.formats import ExpiredError
from taintwarden.kube.wire.kinds import Followed, Identity, Object

Received_contra = TypeVar("Received_contra", bound=Followed, contravariant=True)


HELD_AT_MOST = 20_000
"""Changes that wait for the end of a list: 30 MB of pods."""
BATCHES_AT_ONCE = 2
"""A watch with a backlog brings one batch while so many are passed on."""


class EventHandler(Protocol[Received_contra]):
    """Receives a stream. Calls come in order and never overlap; none may raise."""

    def seen(self, obj: Received_contra) -> None:
        """An object was added or modified."""

    def lost(self, what: Identity) -> bool:
        """An object was deleted. False: too little of it is known, and only another list shows what is gone."""

    def listed(self, objects: Sequence[Received_contra]) -> None:
        """One page of a list."""

    def list_ended(self, resource_version: str) -> None:
        """The list is complete: what it did not name does not exist (any more)."""

    def list_began(self) -> None:
        """A list begins, from its first page; a list that had begun before does not count."""

    def reached(self, resource_version: str) -> None:
        """All changes up to here have been delivered."""

    def live(self, *, live: bool) -> None:
        """Whether what was delivered is up to date. It is not before this was called."""

    def undecodable(self, what: Identity, reason: str) -> None:
        """An object that exists cannot be decoded; the stream continues without it."""

    def restarted(self, reason: str, detail: str) -> None:
        """The watch ended and is taken up again, or the list is begun again."""


_Call = Callable[[EventHandler[Object]], object]


class HeldChanges(Generic[Object]):
    """Keeps what a watch delivers while the list before it still comes.

    Args:
        most: how many changes it may keep.

    """

    def __init__(self, most: int = HELD_AT_MOST) -> None:
        self._most = most
        self._batches: deque[list[_Call[Object]]] = deque()
        self._batch: list[_Call[Object]] = []
        self._changes = 0

    @property
    def is_full(self) -> bool:
        """Whether it has as many changes as it may."""
        return self._changes >= self._most

    def seen(self, obj: Object) -> None:
        """For later."""
        self._changes += 1
        self._batch.append(lambda handler: handler.seen(obj))

    def lost(self, what: Identity) -> bool:
        """Whether enough of it is known, shows when it is passed on."""

        def lose(handler: EventHandler[Object]) -> None:
            if not handler.lost(what):
                raise unknown_deletion(what)

        self._changes += 1
        self._batch.append(lose)
        return True

    def reached(self, resource_version: str) -> None:
        """What came since the last call is one batch."""
        self._batch.append(lambda handler: handler.reached(resource_version))
        self._batches.append(self._batch)
        self._batch = []

    def undecodable(self, what: Identity, reason: str) -> None:
        """For later."""
        self._batch.append(lambda handler: handler.undecodable(what, reason))

    async def pass_on(self, handler: EventHandler[Object]) -> None:
        """Deliver everything, in order. Other tasks run in between, and the watch may add less than is taken.

        Raises:
            ExpiredError: which object was deleted is not known; only another list shows it.

        """
        turn = 0
        while self._batches:
            for call in self._batches.popleft():
                call(handler)
            turn += 1
            if turn % BATCHES_AT_ONCE == 0:
                await asyncio.sleep(0)


def unknown_deletion(what: Identity) -> ExpiredError:
    """An object was deleted, and nothing says which."""
    return ExpiredError(f"an object was deleted of which too little is known: {what}")
