"""A copy of the needed facts about every node, for a process that evicts nothing."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden.telemetry.metrics import Metrics

Value = TypeVar("Value")


class Mirror(StreamHandler[NodeObject], Generic[Value]):
    """The needed facts about each node, by its name.

    Args:
        resource: the resource whose stream it receives.
        metrics: counts restarts and faults.
        read: returns the needed facts about a node.
        changed: called when a node may have changed.

    """

    def __init__(
        self,
        resource: str,
        metrics: Metrics,
        read: Callable[[NodeObject], Value],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(resource, lambda _: None, metrics)
        self._on_change = changed
        self._read: Callable[[NodeObject], Value] = read
        self._values: dict[str, Value] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """Return the facts about a node; None if it is not known."""
        return self._values.get(key)

    def pass_on(self, key: str, obj: NodeObject) -> None:
        """Store a new or changed node."""
        self._values[key] = self._read(obj)
        self._on_change()

    def withdraw(self, key: str) -> None:
        """Remove a deleted node."""
        self._values.pop(key, None)
        self._on_change()

    def compare(self, listed: Mapping[str, None], version: int) -> None:
        """Remove all nodes that are not in a complete list."""
        self._values = {key: value for key, value in self._values.items() if key in listed}
        self._on_change()
