"""The protocol of receivers of a stream."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from taintwarden.kube.wire.kinds import Followed, Identity

Received_contra = TypeVar("Received_contra", bound=Followed, contravariant=True)


class EventHandler(Protocol[Received_contra]):
    """Receives the objects and changes of one resource. Calls come in order and never overlap; none may raise."""

    def seen(self, obj: Received_contra) -> None:
        """An object was added or modified."""

    def lost(self, what: Identity) -> bool:
        """An object was deleted. Return False if too little of it is known to remove it: the stream lists again."""

    def listed(self, objects: Sequence[Received_contra]) -> None:
        """One page of a list arrived."""

    def list_ended(self, resource_version: str) -> None:
        """The list is complete: objects that it did not contain do not exist."""

    def list_began(self) -> None:
        """A list begins with its first page. An earlier list that did not end is discarded."""

    def reached(self, resource_version: str) -> None:
        """All changes up to this version were delivered."""

    def live(self, *, live: bool) -> None:
        """The delivered objects are up to date now (``live``), or may be out of date, which is so before any call."""

    def undecodable(self, what: Identity, reason: str) -> None:
        """An existing object cannot be decoded. The stream continues without it."""

    def restarted(self, reason: str, detail: str) -> None:
        """The watch ended and is resumed, or the list begins again."""
