"""Who receives a stream."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from taintwarden.kube.wire.kinds import Followed, Identity

Received_contra = TypeVar("Received_contra", bound=Followed, contravariant=True)


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
