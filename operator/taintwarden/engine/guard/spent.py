"""Past evictions, counted in slots of a twentieth of the window, as if they happened at the end of their slot."""

from collections import Counter, deque
from collections.abc import Iterator

from taintwarden.engine.model import Instant, MonotonicTime

Share = tuple[str, str]
"""For whom evictions count: a namespace, and the node on which they were; both empty: for all."""
FOR_ALL: Share = ("", "")
SLOTS = 20
"""The number of slots in a window."""


class _Slot:
    __slots__ = ("counts", "ends_at")

    def __init__(self, ends_at: MonotonicTime) -> None:
        self.ends_at = ends_at
        self.counts: Counter[Share] = Counter()


class Spent:
    """Evictions of one window. The counts are never too low."""

    def __init__(self) -> None:
        self._slots: deque[_Slot] = deque()

    def __bool__(self) -> bool:
        return bool(self._slots)

    def note(self, ends_at: MonotonicTime, share: Share = FOR_ALL, pods: int = 1) -> None:
        """Count evictions in the slot that ends then, which is the newest."""
        if not self._slots or self._slots[-1].ends_at != ends_at:
            self._slots.append(_Slot(ends_at))
        self._slots[-1].counts[share] += pods

    def take_back(self, ends_at: MonotonicTime, share: Share) -> None:
        """One eviction of that slot did not happen."""
        for slot in self._slots:
            if slot.ends_at == ends_at and slot.counts[share]:
                slot.counts[share] -= 1
                break

    def let_time_pass(self, now: MonotonicTime, window_seconds: float) -> None:
        """Drop the slots that have left the window."""
        while self._slots and self._slots[0].ends_at + window_seconds <= now:
            self._slots.popleft()

    def first_ends_at(self) -> MonotonicTime:
        """The end of the oldest slot, which there must be."""
        return self._slots[0].ends_at

    def of(self, namespace: str = "", besides: str = "") -> Iterator[tuple[MonotonicTime, int]]:
        """The end of each slot, and how many evictions in it count for all, and for this namespace.

        ``besides``: those of the namespace on this node do not count.
        """
        for slot in self._slots:
            pods = slot.counts[FOR_ALL]
            if namespace:
                own = (number for (name, node), number in slot.counts.items() if name == namespace and node != besides)
                pods += sum(own)
            if pods:
                yield slot.ends_at, pods

    def own(self, namespace: str) -> Counter[str]:
        """By node, how many evictions count for this namespace only."""
        found: Counter[str] = Counter()
        for slot in self._slots:
            found.update({node: pods for (name, node), pods in slot.counts.items() if name == namespace})
        return found

    def in_slot(self, ends_at: MonotonicTime) -> int:
        """How many evictions in the newest slot count for all, if it is this one."""
        return self._slots[-1].counts[FOR_ALL] if self._slots and self._slots[-1].ends_at == ends_at else 0


class Peak:
    """The greatest number of one window, in slots as above."""

    def __init__(self) -> None:
        self._slots: deque[tuple[MonotonicTime, int]] = deque()
        """The end of a slot, and a number that is greater than all later ones."""

    def note(self, ends_at: MonotonicTime, number: int) -> None:
        """A number of the slot that ends then, which is the newest."""
        while self._slots and self._slots[-1][1] <= number:
            self._slots.pop()
        if not self._slots or self._slots[-1][0] != ends_at:
            self._slots.append((ends_at, number))

    def let_time_pass(self, now: MonotonicTime, window_seconds: float) -> None:
        """Drop the slots that have left the window."""
        while self._slots and self._slots[0][0] + window_seconds <= now:
            self._slots.popleft()

    def greatest(self) -> int:
        """0 if there is none."""
        return self._slots[0][1] if self._slots else 0


def slot_end(now: Instant, window_seconds: float) -> MonotonicTime:
    """The end of the slot that contains ``now``."""
    length = window_seconds / SLOTS
    return MonotonicTime((now.monotonic // length + 1) * length)
