"""What happened, in order, for the reader of a failure. Nothing is judged by it."""

from typing import TYPE_CHECKING, Any

from simulated.world.adapter import Notice, Order
from simulated.world.judges.base import Judge
from simulated.world.objects import Node, Pod, Policy
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.judges import Judges
    from simulated.world.replica import Replica


class Trace(Judge):
    """Keeps a line for everything, with the keys of the objects that it is about."""

    name = "trace"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._lines: list[tuple[float, tuple[str, ...], str, tuple[Any, ...]]] = []

    def _note(self, about: tuple[str, ...], text: str, *values: Any) -> None:
        self._lines.append((self.world.agenda.now, about, text, values))

    def about(self, *keys: str) -> list[str]:
        """The lines about any of these objects; without a key, all."""
        return [
            f"{at:9.3f} {text.format(*values)}"
            for at, about, text, values in self._lines
            if not keys or any(key in about for key in keys)
        ]

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        if isinstance(after, Node):
            taints = " ".join(
                f"{one.key}={one.value}" + ("" if one.added is None else f"@{one.added:.0f}") for one in after.taints
            )
            if before is None or before.taints != after.taints or before.labels != after.labels:
                self._note((key,), "node {}: {} {}", key, taints or "no taint", dict(after.labels))
        elif isinstance(after, Pod):
            state = "stops" if after.stopping_until is not None else "ready" if after.ready else "not ready"
            self._note((key,), "pod {} on {}: {} {}", key, after.node or "no node", state, dict(after.marks) or "")
        elif isinstance(after, Policy):
            if before is None or before.spec is not after.spec or before.reset != after.reset:
                self._note((key,), "policy {} (reset {}): {}", key, after.reset, after.spec)
            elif before.guard != after.guard:
                self._note((key,), "policy {} status.guard: {}", key, after.guard)
        else:
            self._note((key,), "{} {}: {}", kind, key, after)

    def told(self, replica: "Replica", kind: str, key: str, before: Any, after: Any, listed: bool) -> None:
        if kind == "nodes":
            taints = "gone" if after is None else " ".join(f"{one.key}={one.value}" for one in after.taints)
            how = "lists" if listed else "is told of"
            self._note((key,), "{} {} node {}: {}", replica.name, how, key, taints or "no taint")

    def led(self, replica: "Replica", term: int) -> None:
        self._note((replica.name, "lease"), "{} leads: term {}", replica.name, term)

    def ordered(self, replica: "Replica", order: Order) -> None:
        self._note((order.key, order.policy), "{} orders {} of {}", replica.name, order.what, order.key)

    def sent(self, request: Request) -> None:
        order = request.order
        self._note(
            (order.key, order.policy),
            "{} sends {} for {} of {}",
            request.replica.name,
            request.verb,
            order.what,
            order.key,
        )

    def effect(self, request: Request, code: int) -> None:
        order = request.order
        self._note((order.key, order.policy), "{} for {} of {}: {}", request.verb, order.what, order.key, code)

    def noticed(self, replica: "Replica", notice: Notice) -> None:
        details = getattr(notice.raw, "reason", "") or getattr(notice.raw, "cause", "")
        due = getattr(notice.raw, "due_at", None)
        due = "" if due is None else f"due {due - 1_700_000_000.25:.1f}"
        self._note(
            (notice.pod, notice.policy), "{} reports {} {} {} {}", replica.name, notice.what, notice.pod, details, due
        )
