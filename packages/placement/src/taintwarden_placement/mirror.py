"""The latest version of every object of a stream, by name, for a process that decides nothing about them itself."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.kube.wire.kinds import Identity, NodeObject
from taintwarden.telemetry.metrics import Metrics
from taintwarden_placement.scheduling.objects import ClaimObject, VolumeObject

Named = TypeVar("Named", NodeObject, ClaimObject, VolumeObject)
Value = TypeVar("Value")


class Mirror(StreamHandler[Named], Generic[Named, Value]):
    """Stores what is needed of each object.

    Args:
        resource: whose stream it receives.
        metrics: counts restarts and faults.
        read: what is needed of an object; None if nothing is.
        changed: told when something may have changed.

    """

    def __init__(
        self,
        resource: str,
        metrics: Metrics,
        read: Callable[[Named], Value | None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(resource, lambda _: None, metrics)
        self._on_change = changed
        self._read: Callable[[Named], Value | None] = read
        self._values: dict[str, Value] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """What is known of the object with this name; ``namespace/name`` where there are namespaces."""
        return self._values.get(key)

    def key(self, obj: Named) -> str:
        """As of ``get``."""
        if isinstance(obj, ClaimObject):
            return f"{obj.metadata.namespace}/{obj.metadata.name}"
        return obj.metadata.name

    def key_of(self, what: Identity) -> str | None:
        """Objects are known by name."""
        return str(what) if what.name else None

    def see(self, key: str, obj: Named) -> None:
        """An object, which may be new."""
        value = self._read(obj)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        self._on_change()

    def lose(self, key: str) -> None:
        """It is gone."""
        self._values.pop(key, None)
        self._on_change()

    def compare(self, listed: Mapping[str, None], version: int) -> None:
        """Exactly the objects of the list exist."""
        self._values = {key: value for key, value in self._values.items() if key in listed}
        self._on_change()
