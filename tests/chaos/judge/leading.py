"""Terms of leaders, by the writes of the Lease."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from chaos.judge.audit import Record

LEASE_SECONDS = 15.0
"""Seconds for which a Lease lasts after its last renewal."""


class Term(NamedTuple):
    """A time in which one replica held the Lease."""

    since: float
    until: float
    holder: str
    number: int


class Leading:
    """The Lease over time.

    A replica may have had several tokens, and several names: it has a new one each time it starts. What it wrote last
    into the Lease says who it is.
    """

    def __init__(self, leases: Sequence[Record], where: str) -> None:
        self._names: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self.renewals: list[float] = []
        self.terms: list[Term] = []
        for record in sorted(leases, key=lambda one: one.completed):
            holder, at = (record.answer.get("spec") or {}).get("holderIdentity") or "", record.completed
            if holder and record.credential:
                self._names[record.credential].append((at, holder))
            if f"{record.namespace}/{record.name}" == where and "spec" in record.answer and record.verb != "delete":
                self._renewed(at, holder)

    def _renewed(self, at: float, holder: str) -> None:
        last = self.terms[-1] if self.terms else Term(0.0, 0.0, "", 0)
        if last.until > at:
            self.terms[-1] = last._replace(until=at)
        if not holder:
            return
        self.renewals.append(at)
        if last.holder == holder:
            self.terms[-1] = last._replace(until=at + LEASE_SECONDS)
        else:
            self.terms.append(Term(at, at + LEASE_SECONDS, holder, last.number + 1))

    def term(self, at: float) -> Term | None:
        """The term at a moment; None if no replica led."""
        index = bisect_right(self.terms, at, key=lambda one: one.since) - 1
        return self.terms[index] if index >= 0 and at < self.terms[index].until else None

    def name(self, record: Record) -> str:
        """Name of the sender; a replica that has not written anything yet has the first name that it writes."""
        names = self._names.get(record.credential)
        at = min(record.completed, record.received)
        return names[max(0, bisect_right(names, at, key=lambda one: one[0]) - 1)][1] if names else ""

    def longest_gap(self, begin: float, end: float) -> float:
        """The longest time without a renewal between two moments, a bound of the time without a leader."""
        times = [begin, *(at for at in self.renewals if begin <= at <= end), end]
        return max(later - earlier for earlier, later in pairwise(times))
