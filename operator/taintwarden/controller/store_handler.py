"""Passes the stream of policies or profiles to their store, for a process without kopf."""

from collections.abc import Sequence
from typing import Any

import msgspec

from taintwarden.controller.stores import Store
from taintwarden.controller.stream_handlers import StreamHandler
from taintwarden.kube.objects import CustomMeta, CustomObject, Identity
from taintwarden.telemetry.metrics import Metrics


class StoreHandler(StreamHandler[CustomObject]):
    """Receives the stream of policies or of profiles.

    Args:
        resource: whose stream it receives.
        store: keeps the objects.
        metrics: counts restarts and faults.

    """

    def __init__(self, resource: str, store: Store[Any], metrics: Metrics) -> None:
        super().__init__(resource, lambda _: None, metrics)
        self._store = store
        self._listed: list[dict[str, Any]] = []

    def list_began(self) -> None:
        """Collect the list from here."""
        self._listed = []

    def listed(self, objects: Sequence[CustomObject]) -> None:
        """One page of objects."""
        self._listed.extend(map(msgspec.to_builtins, objects))

    def list_ended(self, resource_version: str) -> None:
        """The store now contains exactly the objects of the list."""
        self._store.load(self._listed, resource_version)
        self._listed = []
        self.listed_once.set()

    def lost(self, what: Identity) -> bool:
        """The store knows objects by name and UID."""
        if not (what.name and what.uid):
            return False
        meta = CustomMeta(what.name, what.namespace, what.uid, what.resource_version)
        self._store.gone({"metadata": msgspec.to_builtins(meta)})
        return True

    def seen(self, obj: CustomObject) -> None:
        """An object, which may be new."""
        self._store.seen(msgspec.to_builtins(obj))
