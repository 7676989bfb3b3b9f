"""Faults are reported once while they do not change: a tenant, a kubelet or a server may cause them without an end."""

from collections import OrderedDict

MAX_REMEMBERED = 1_000


class Complaints:
    """Knows what was reported last about what. The oldest are forgotten.

    Args:
        max_remembered: about how many things.

    """

    def __init__(self, max_remembered: int = MAX_REMEMBERED) -> None:
        self._max_remembered = max_remembered
        self._reported: OrderedDict[str, object] = OrderedDict()

    def is_new(self, about: str, fault: object) -> bool:
        """Whether to report this fault."""
        before = self._reported.pop(about, None)
        self._reported[about] = fault
        if len(self._reported) > self._max_remembered:
            self._reported.popitem(last=False)
        return before != fault

    def settle(self, about: str) -> None:
        """There is none any more. The same one is reported again."""
        self._reported.pop(about, None)
