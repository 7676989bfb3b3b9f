"""Faults that are reported once while they do not change, because a tenant, kubelet or server may repeat them."""

from collections import OrderedDict

MAX_REMEMBERED = 1_000


class Complaints:
    """The fault last reported about each subject. Beyond the maximum, the oldest reports are dropped.

    Args:
        max_remembered: maximum number of subjects.

    """

    def __init__(self, max_remembered: int = MAX_REMEMBERED) -> None:
        self._max_remembered = max_remembered
        self._reported: OrderedDict[str, object] = OrderedDict()

    def is_new(self, about: str, fault: object) -> bool:
        """Return True if the fault differs from the last one about this subject, and remember it."""
        before = self._reported.pop(about, None)
        self._reported[about] = fault
        if len(self._reported) > self._max_remembered:
            self._reported.popitem(last=False)
        return before != fault

    def settle(self, about: str) -> None:
        """Forget the fault of this subject. If it recurs, it is new."""
        self._reported.pop(about, None)
