"""Who receives a stream."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from taintwarden.kube.encoding import ExpiredError
from taintwarden.kube.objects import Followed, Identity, Object

Received_contra = TypeVar("Received_contra", bound=Followed, contravariant=True)


class EventHandler(Protocol[Received_contra]):
    """Receives a stream. Calls come in order and never overlap; none may raise."""

    def changed(self, changes: Sequence[tuple[str, Received_contra]]) -> None:
        """Watch frames: ``ADDED``, ``MODIFIED`` or ``DELETED``, each with the object."""

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

    def undecodable(self, what: Identity, reason: str, *, deleted: bool) -> bool:
        """An object of a list or a watch cannot be decoded; the stream continues without it.

        False: it was deleted, and its identity is not known. Then only another list shows what is gone.
        """

    def restarted(self, reason: str, detail: str) -> None:
        """The watch ended and is taken up again, or the list is begun again."""


class Held(Generic[Object]):
    """Keeps what a watch delivers while the list before it still comes. It has no bound: lists take seconds.

    Args:
        handler: receives it afterwards.

    """

    def __init__(self, handler: EventHandler[Object]) -> None:
        self._handler = handler
        self._kept: deque[Callable[[], object]] = deque()

    def changed(self, changes: Sequence[tuple[str, Object]]) -> None:
        """Watch frames, for later."""
        self._kept.append(partial(self._handler.changed, changes))

    def reached(self, resource_version: str) -> None:
        """The handler has not got there yet."""
        self._kept.append(partial(self._handler.reached, resource_version))

    def undecodable(self, what: Identity, reason: str, *, deleted: bool) -> bool:
        """Whether a deleted object is known, shows when it is passed on."""
        self._kept.append(partial(self._pass_undecodable, what, reason, deleted=deleted))
        return True

    async def pass_on(self) -> None:
        """Deliver everything, in order; other tasks run in between.

        Raises:
            ExpiredError: which object was deleted is not known; only another list shows it.

        """
        while self._kept:
            self._kept.popleft()()
            if self._kept:
                await asyncio.sleep(0)

    def _pass_undecodable(self, what: Identity, reason: str, *, deleted: bool) -> None:
        if not self._handler.undecodable(what, reason, deleted=deleted):
            raise unknown_deletion(reason)


def unknown_deletion(reason: str) -> ExpiredError:
    """An object was deleted, and nothing says which."""
    return ExpiredError("the deleted object is not known", reason)
