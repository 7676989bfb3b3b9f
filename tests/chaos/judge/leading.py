"""Who led when, by the writes of the Lease."""

from bisect import bisect_right
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
    """The Lease over time. A replica may have had several tokens: what it wrote into the Lease says who it is."""

    def __init__(self, leases: Sequence[Record], where: str) -> None:
        self._names = {
            record.credential: holder for record in leases if (holder := _holder(record)) and record.credential
        }
        writes = [one for one in leases if f"{one.namespace}/{one.name}" == where and "spec" in one.answer]
        self.renewals = sorted(Renewal(one.completed, _holder(one)) for one in writes if one.verb != "delete")

    def led(self, credential: str, received: float, completed: float) -> bool:
        """Whether a request was the leader's: it held the Lease at some moment of it."""
        name = self._names.get(credential)
        first = bisect_right(self.renewals, received, key=lambda renewal: renewal.at) - 1
        last = bisect_right(self.renewals, completed, key=lambda renewal: renewal.at)
        held = [one for one in self.renewals[max(first, 0) : last] if one.holder == name]
        return bool(name) and any(received - one.at <= LEASE_SECONDS for one in held)

    def longest_gap(self, begin: float, end: float) -> float:
        """The longest time without a renewal between two moments: for so long at most no replica led."""
        times = [one.at for one in self.renewals if begin <= one.at <= end and one.holder]
        times = [begin, *times, end]
        return max(later - earlier for earlier, later in pairwise(times))


def _holder(record: Record) -> str:
    return (record.answer.get("spec") or {}).get("holderIdentity") or ""
