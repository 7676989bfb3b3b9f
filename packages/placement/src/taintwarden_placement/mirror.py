"""What is known of every node, by name, for a process that evicts nothing."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden.telemetry.metrics import Metrics

Value = TypeVar("Value")


class Mirror(StreamHandler[NodeObject], Generic[Value]):
    """Stores what is needed of each node.

    Args:
        resource: whose stream it receives.
        metrics: counts restarts and faults.
        read: what is needed of a node.
        changed: told when something may have changed.

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
        """What is known of the node with this name."""
        return self._values.get(key)

    def see(self, key: str, obj: NodeObject) -> None:
        """A node, which may be new."""
        self._values[key] = self._read(obj)
        self._on_change()

    def lose(self, key: str) -> None:
        """It is gone."""
        self._values.pop(key, None)
        self._on_change()

    def compare(self, listed: Mapping[str, None], version: int) -> None:
        """Exactly the nodes of the list exist."""
        self._values = {key: value for key, value in self._values.items() if key in listed}
        self._on_change()
