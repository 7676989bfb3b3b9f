"""The latest version of every object of a stream, by name, for a process that decides nothing about them itself."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.kube.wire.kinds import ClaimObject, Identity, NodeObject, VolumeObject
from taintwarden.telemetry.metrics import Metrics

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
        self._listed: dict[str, Value] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """What is known of the object with this name; ``namespace/name`` where there are namespaces."""
        return self._values.get(key)

    def list_began(self) -> None:
        """Collect the list from here. Until it is complete, the one before counts."""
        self._listed = {}

    def listed(self, objects: Sequence[Named]) -> None:
        """One page of objects."""
        for obj in objects:
            self._put(self._listed, obj)

    def list_ended(self, resource_version: str) -> None:
        """Exactly the objects of the list exist."""
        self._values, self._listed = self._listed, {}
        self._on_change()

    def seen(self, obj: Named) -> None:
        """An object, which may be new."""
        self._put(self._values, obj)
        self._on_change()

    def lost(self, what: Identity) -> bool:
        """Objects are known by name."""
        if not what.name:
            return False
        self._values.pop(str(what), None)
        self._on_change()
        return True

    def _put(self, values: dict[str, Value], obj: Named) -> None:
        value = self._read(obj)
        if value is None:
            values.pop(_key(obj), None)
        else:
            values[_key(obj)] = value


def _key(obj: NodeObject | ClaimObject | VolumeObject) -> str:
    if isinstance(obj, ClaimObject):
        return f"{obj.metadata.namespace}/{obj.metadata.name}"
    return obj.metadata.name
