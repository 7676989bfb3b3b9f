"""Who led when, by the writes of the Lease."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from chaos.judge.audit import Record

LEASE_SECONDS = 15.0
"""How long a Lease lasts after its last renewal."""


class Renewal(NamedTuple):
    """One write of the Lease that succeeded."""

    at: float
    holder: str


class Leading:
    """The Lease over time.

    A replica may have had several tokens, and several names: it has a new one each time it starts. What it wrote last
    into the Lease says who it is.
    """

    def __init__(self, leases: Sequence[Record], where: str) -> None:
        self._names: dict[str, list[Renewal]] = defaultdict(list)
        for record in sorted(leases, key=lambda one: one.completed):
            if (holder := _holder(record)) and record.credential:
                self._names[record.credential].append(Renewal(record.completed, holder))
        writes = [one for one in leases if f"{one.namespace}/{one.name}" == where and "spec" in one.answer]
        self.renewals = sorted(Renewal(one.completed, _holder(one)) for one in writes if one.verb != "delete")

    def led(self, credential: str, received: float, completed: float) -> bool:
        """Whether a request was the leader's: it held the Lease at some moment of it."""
        name = self._name(credential, completed)
        first = bisect_right(self.renewals, received, key=lambda renewal: renewal.at) - 1
        last = bisect_right(self.renewals, completed, key=lambda renewal: renewal.at)
        held = [one for one in self.renewals[max(first, 0) : last] if one.holder == name]
        return bool(name) and any(received - one.at <= LEASE_SECONDS for one in held)

    def _name(self, credential: str, at: float) -> str:
        """Who used this token then; a replica that has not written anything yet has the first name that it writes."""
        names = self._names.get(credential)
        if not names:
            return ""
        return names[max(0, bisect_right(names, at, key=lambda renewal: renewal.at) - 1)].holder

    def longest_gap(self, begin: float, end: float) -> float:
        """The longest time without a renewal between two moments: for so long at most no replica led."""
        times = [one.at for one in self.renewals if begin <= one.at <= end and one.holder]
        times = [begin, *times, end]
        return max(later - earlier for earlier, later in pairwise(times))


def _holder(record: Record) -> str:
    return (record.answer.get("spec") or {}).get("holderIdentity") or ""
