"""Passes the stream of policies or profiles to their store."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.controller.handlers.coalescing import Coalescer
from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.controller.loop import Feed
from taintwarden.controller.stores.object_store import Store
from taintwarden.kube.wire.kinds import CustomObject, Identity
from taintwarden.telemetry.metrics import Metrics

PAUSE_SECONDS = 1.0
"""Changes of the objects of one namespace are passed on together, once in this time."""


class StoreHandler(StreamHandler[CustomObject]):
    """Receives the stream of policies or of profiles.

    Policies are those of administrators, and have no namespace: every change counts at once. What belongs to a
    namespace waits for the changes before it, unless its spec is the same.

    Args:
        resource: whose stream it receives.
        feed: takes the events about whether the stream is up to date. What is stored, its store tells.
        metrics: counts restarts and faults.
        store: keeps the objects.

    """

    def __init__(self, resource: str, feed: Feed, metrics: Metrics, store: Store[Any]) -> None:
        super().__init__(resource, feed, metrics)
        self._store = store
        self._coalescer = Coalescer(self._pass_on, PAUSE_SECONDS)

    async def run(self) -> None:
        """Pass on what waits."""
        await self._coalescer.run()

    def key_of(self, what: Identity) -> Identity | None:
        """The store knows objects by name and UID."""
        return what if what.name and what.uid else None

    def see(self, key: str, obj: CustomObject) -> None:
        """An object, which may be new."""
        meta = obj.metadata
        if self._store.knows(key, meta.uid, meta.generation):
            self._store.seen(_stored(obj))
        else:
            self._take(meta.namespace, key, obj)

    def lose(self, key: Identity) -> None:
        """An object is gone."""
        self._take(key.namespace, str(key), key)

    def list_began(self) -> None:
        """What waits is older than the list."""
        self._coalescer.flush()
        super().list_began()

    def listed(self, objects: Sequence[CustomObject]) -> None:
        """One page of objects, which do not wait."""
        self._listed |= dict.fromkeys(map(self.key, objects))
        self._store.listed(map(_stored, objects))

    def compare(self, listed: Mapping[str, None], version: int) -> None:
        """The store now contains exactly the objects of the list."""
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
    """As the store wants it. The spec stays encoded, in bytes of its own: those that it came in are a whole page."""
    return {
        "apiVersion": obj.api_version,
        "kind": obj.kind,
        "metadata": msgspec.to_builtins(obj.metadata),
        "spec": obj.spec.copy(),
        "status": None if obj.status is None else msgspec.to_builtins(obj.status),
    }
