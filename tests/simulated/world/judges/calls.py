"""How many requests an operator makes, whatever comes of them."""

from collections import deque
from typing import TYPE_CHECKING, Any

from simulated.world import law
from simulated.world.judges.base import Judge
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.judges import Judges

WINDOW_SECONDS = 10.0
ROUNDING_CALLS = 5
EVERY = "*"
FREE_WRITES = 15
"""Requests of one kind for one object in a window that nothing has to explain: tries again, and conflicts."""
FREE_WITHHELD = 5
"""Calls for one pod in a window that were ordered and not sent, and that nothing has to explain."""


class Writes(Judge):
    """Reads of nodes and writes are bounded for each object, whatever comes of them.

    In any ``WINDOW_SECONDS`` at most ``FREE_WRITES`` requests of one kind are made for one node or policy, one more for
    each change of it, of a policy, or of a pod on it, and one more for each eviction.
    """

    name = "writes"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._requests: dict[tuple[str, str, str], deque[float]] = {}
        self._changes: dict[str, deque[float]] = {}
        judges.on_eviction.append(lambda eviction: self._changed(eviction.policy, eviction.pod.node))

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        match kind:
            case "nodes":
                self._changed(key)
            case "pods":
                self._changed((after or before).node)
            case "policies":
                self._changed(key, EVERY)

    def _changed(self, *keys: str) -> None:
        for key in keys:
            self._changes.setdefault(key, deque()).append(self.world.agenda.now)

    def sent(self, request: Request) -> None:
        order = request.order
        if order.what in ("evict", "delete"):
            return
        times = self._requests.setdefault((request.replica.name, order.what, order.key), deque())
        times.append(self.world.agenda.now)
        allowed = FREE_WRITES + self._recent(order.key) + self._recent(EVERY)
        if _within(times, self.world.agenda.now) > allowed:
            self.breach(
                f"{order.what} {order.key}",
                f"{len(times)} requests were made in {WINDOW_SECONDS:g} s for {order.what} of {order.key}, "
                f"after {allowed - FREE_WRITES} changes",
            )

    def _recent(self, key: str) -> int:
        return _within(self._changes.get(key, deque()), self.world.agenda.now)


class Withheld(Judge):
    """A call that the operator itself does not send is not prepared again and again.

    What it decides by may change between the order and the request, and its lease may be lost. In any
    ``WINDOW_SECONDS`` that happens to a pod ``FREE_WITHHELD`` times at most, and once more for each change of the pod,
    of its node, or of a policy.
    """

    name = "withheld"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._withheld: dict[tuple[str, str], deque[float]] = {}
        self._changes: dict[str, deque[float]] = {}

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        if kind in ("nodes", "pods", "policies"):
            changed = EVERY if kind == "policies" else key
            self._changes.setdefault(changed, deque()).append(self.world.agenda.now)

    def withheld(self, request: Request) -> None:
        order, now = request.order, self.world.agenda.now
        if order.what not in ("evict", "delete"):
            return
        times = self._withheld.setdefault((request.replica.name, order.key), deque())
        times.append(now)
        pod = self.world.store.get("pods", order.key)
        names = (EVERY, order.key, "" if pod is None else pod.node)
        changes = sum(_within(self._changes.get(name, deque()), now) for name in names)
        if _within(times, now) > FREE_WITHHELD + changes:
            self.breach(
                order.key,
                f"{order.what} of {order.key} was ordered {len(times)} times in {WINDOW_SECONDS:g} s without being "
                f"sent, after {changes} changes",
            )


def _within(times: deque[float], now: float) -> int:
    """How many of these are in the window that ends now; older ones are dropped."""
    while times and times[0] <= now - WINDOW_SECONDS:
        times.popleft()
    return len(times)


class Calls(Judge):
    """Requests that evict, failing ones included, are bounded.

    In any ``WINDOW_SECONDS`` a policy with a rate makes at most its burst, its rate, and for calls that failed before
    a quarter of its rate, at least one a second. ``ROUNDING_CALLS`` more are forgiven. The PATCH before a DELETE is a
    part of one call.
    """

    name = "calls"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._failed: dict[str, None] = {}
        """UIDs whose last call did not succeed."""
        self._calls: dict[str, list[tuple[float, bool]]] = {}
        self.most: dict[str, int] = {}
        """Policy -> the most calls in any window."""

    def sent(self, request: Request) -> None:
        order = request.order
        if order.what not in ("evict", "delete") or request.verb == "DELETE":
            return
        policy = self.world.store.get("policies", order.policy)
        if policy is None:
            return
        now, rules = self.world.agenda.now, law.rules_of(policy)
        calls = self._calls.setdefault(order.policy, [])
        calls.append((now, order.key in self._failed))
        while calls[0][0] <= now - WINDOW_SECONDS:
            calls.pop(0)
        self._failed[order.key] = None  # until its effect shows otherwise
        self.most[order.policy] = max(self.most.get(order.policy, 0), len(calls))
        rate = rules.limits.get("evictionsPerSecond")
        if rate is None or rules.reclaim is not None:
            return
        again = sum(failed for _, failed in calls)
        most_again = max(1.0, rate / 4) * WINDOW_SECONDS + ROUNDING_CALLS
        most = rules.limits.get("burst", 20) + rate * WINDOW_SECONDS + most_again
        if len(calls) > most or again > most_again:
            self.breach(
                order.policy,
                f"{order.policy} made {len(calls)} calls in {WINDOW_SECONDS:g} s at {rate}/s, {again} of them for pods "
                f"whose last call had failed",
            )

    def effect(self, request: Request, code: int) -> None:
        if request.order.what in ("evict", "delete") and 200 <= code < 300:
            self._failed.pop(request.order.key, None)
