"""Faults of objects, each reported only once until it changes, since a tenant, kubelet or server may repeat it."""

from collections import OrderedDict

MAX_REMEMBERED = 1_000


class ReportedFaults:
    """Last reported fault of each subject. Beyond the maximum, the least recently reported are dropped.

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

    def forget(self, about: str) -> bool:
        """Forget the fault of a subject, so that it is reported again if it recurs. Returns True if there was one."""
        return self._reported.pop(about, None) is not None
