"""Handler that passes the stream of policies or profiles to their store."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.controller.handlers.coalescing import Coalescer
from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.controller.stores.object_store import Store
from taintwarden.engine.events import Feed
from taintwarden.kube.wire.kinds import CustomObject, Identity
from taintwarden.telemetry.metrics import Metrics

PAUSE_SECONDS = 1.0
"""Seconds between two batches of changes of one namespace. A tenant may write its profiles at any rate."""


class StoreHandler(StreamHandler[CustomObject]):
    """Receives the stream of policies or of profiles.

    Policies have no namespace, and only administrators write them: each change is passed on at once. A profile that is
    new, deleted, or has a new spec waits while its namespace pauses.

    Args:
        resource: name of the resource whose stream is received.
        feed: receives events about whether the stream is up to date. The store feeds those about objects.
        metrics: counts restarts and faults.
        store: keeps the objects.

    """

    def __init__(self, resource: str, feed: Feed, metrics: Metrics, store: Store[Any]) -> None:
        super().__init__(resource, feed, metrics)
        self._store = store
        self._coalescer = Coalescer(self._pass_on, PAUSE_SECONDS)

    async def run(self) -> None:
        """Pass on changes at the end of each pause, forever."""
        await self._coalescer.run()

    def key_of(self, what: Identity) -> Identity | None:
        """Return the identity, whose key or UID the store looks up; None if its name or UID is unknown."""
        return what if what.name and what.uid else None

    def pass_on(self, key: str, obj: CustomObject) -> None:
        """Pass on an object that was added or modified."""
        meta = obj.metadata
        if not meta.name:  # no API server stores it
            self.report_fault(key, "it has no name")
        elif self._store.knows(key, meta.uid, meta.generation):
            self._store.seen(_stored(obj))
        else:
            self._take(meta.namespace, key, obj)

    def withdraw(self, key: Identity) -> None:
        """Pass on that an object was deleted."""
        self._take(key.namespace, str(key), key)

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report the object. It still exists, so its last valid version stays in force if a list contains it."""
        super().undecodable(what, reason)
        self._listed[str(what)] = None

    def list_began(self) -> None:
        """Pass on the changes that wait, because they are older than the list."""
        self._coalescer.flush()
        super().list_began()

    def listed(self, objects: Sequence[CustomObject]) -> None:
        """Pass on the objects of one page at once."""
        self._listed |= dict.fromkeys(map(self.key, objects))
        self._store.listed(_stored(one) for one in objects if one.metadata.name)

    def compare(self, listed: Mapping[str, None], version: int) -> None:
        """Have the store drop all objects that the list does not contain."""
        self._store.list_ended(listed)

    def _take(self, namespace: str, key: str, change: CustomObject | Identity) -> None:
        if namespace:
            self._coalescer.put(namespace, key, change)
        else:
            self._pass_on([change])

    def _pass_on(self, changes: Sequence[CustomObject | Identity]) -> None:
        for change in changes:
            if isinstance(change, Identity):
                self._store.gone(str(change), change.uid)
        self._store.seen(*(_stored(one) for one in changes if not isinstance(one, Identity)))


def _stored(obj: CustomObject) -> dict[str, Any]:
    """Return the object as its store reads it. The encoded spec is copied, since its bytes are part of a whole page."""
    return {
        "apiVersion": obj.api_version,
        "kind": obj.kind,
        "metadata": msgspec.to_builtins(obj.metadata),
        "spec": obj.spec.copy(),
        "status": None if obj.status is None else msgspec.to_builtins(obj.status),
    }
