"""Feasibility of nodes for a pod: whether the pod may be scheduled there, why not, and how well the node suits it.

The same tolerations decide on evictions: no pod is scheduled where a repelling taint would evict it at once.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from taintwarden.engine.affinity import NodeAffinity, NodeRequirement, Term
from taintwarden.engine.derived import concerns
from taintwarden.engine.model import Effect, Gates, Taint, Toleration, Tolerations
from taintwarden.engine.operators import ALL_GATES, ROWS, Row, Side, match
from taintwarden_placement.affinity.node_matching import Check, check_of, describe

REPELLING = (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)
"""Effects that keep pods off a node. ``PreferNoSchedule`` only lowers its score."""
MAX_REASONS = 3
"""Maximum number of tolerations, terms or taints in one reason. An Event has 1,024 characters for all nodes."""


class SourcedAffinity(msgspec.Struct, frozen=True):
    """A node affinity and its source as a noun: "annotation KEY", "profile gold"."""

    source: str
    affinity: NodeAffinity
    fault: str = ""
    """Why the affinity is invalid, empty if it is valid. An invalid affinity is read as ``NOWHERE``."""


class Demand(msgspec.Struct, frozen=True, cache_hash=True):
    """Requirements and preferences of a pod, equal for pods of one workload. A node has to match every affinity."""

    tolerations: Tolerations = Tolerations()
    affinities: tuple[SourcedAffinity, ...] = ()

    @property
    def is_native(self) -> bool:
        """True if the demand has no extended parts, so that the scheduler can evaluate all of it."""
        return not (self.affinities or self.tolerations.extended)

    @property
    def is_invalid(self) -> bool:
        """True if an affinity is invalid, so that no node matches."""
        return any(affinity.fault for affinity in self.affinities)


class RefusalCause(StrEnum):
    """Cause that keeps a pod off a node."""

    TAINT = "taint"
    AFFINITY = "node-affinity"
    INVALID = "invalid-node-affinity"
    """The affinity is invalid, so no node matches until it is corrected."""


class NodeRefusal(msgspec.Struct, frozen=True):
    """Refusal of a node for a pod: the first cause, and a text with all reasons."""

    cause: RefusalCause
    reason: str


class Preferences(msgspec.Struct, frozen=True):
    """The preference of a pod for a node."""

    taints: int
    """Number of ``PreferNoSchedule`` taints that the pod does not tolerate. Fewer are better."""
    weight: int
    """Total weight of the preferred node affinity that the node meets. More is better."""


MAX_REMEMBERED = 10_000


class NodeFilter:
    """Compares nodes with one demand. Each taint, and each combination of label values, is compared once.

    Args:
        demand: the demand of the pods.
        gates: which operators are switched on.
        max_remembered: maximum number of cached taints, and of label values per affinity. A full cache is cleared.

    """

    def __init__(self, demand: Demand, gates: Gates = ALL_GATES, *, max_remembered: int = MAX_REMEMBERED) -> None:
        self._demand = demand
        self._gates = gates
        self._max_remembered = max_remembered
        self._relevant: dict[tuple[str, str], tuple[tuple[Toleration, ...], AnyOf]] = {}
        """Key and effect of a taint -> the tolerations for it."""
        self._taints: dict[Taint, str] = {}
        self._affinities = [_Affinity(affinity, gates, max_remembered) for affinity in demand.affinities]

    def __len__(self) -> int:
        """Return the number of cached comparisons."""
        return len(self._taints) + sum(len(affinity.results) for affinity in self._affinities)

    def refusal(self, taints: Iterable[Taint], labels: Mapping[str, str]) -> NodeRefusal | None:
        """Return why the pods may not be scheduled on a node with these taints and labels; None if they may."""
        found: list[tuple[RefusalCause, str]] = []
        for taint in taints:
            if taint.effect in REPELLING and (reason := self.untolerated(taint)):
                found.append((RefusalCause.TAINT, reason))  # noqa: PERF401 - a comprehension costs more where it is empty
        for affinity in self._affinities:
            mismatch, _ = affinity.compare(labels)
            if mismatch is not None:
                found.append(mismatch)
        return NodeRefusal(found[0][0], _listed([reason for _, reason in found])) if found else None

    def preferences(self, taints: Iterable[Taint], labels: Mapping[str, str]) -> Preferences:
        """Return how well a node with these taints and labels suits the pods."""
        disliked = (taint for taint in taints if taint.effect == Effect.PREFER_NO_SCHEDULE)
        return Preferences(
            sum(bool(self.untolerated(taint)) for taint in disliked),
            sum(affinity.compare(labels)[1] for affinity in self._affinities),
        )

    def untolerated(self, taint: Taint) -> str:
        """Return why a taint is not tolerated; empty if it is. Extended tolerations for its key replace native ones."""
        answer = self._taints.get(taint)
        if answer is None:
            _clear_if_full(self._taints, self._max_remembered)
            answer = self._taints[taint] = self._compare(taint)
        return answer

    def _compare(self, taint: Taint) -> str:
        if not concerns(taint, self._demand.tolerations):
            return ""
        found = self._relevant.get((taint.key, taint.effect))
        if found is None:
            _clear_if_full(self._relevant, self._max_remembered)
            of_key = self._demand.tolerations.relevant_to(taint.key)
            relevant = tuple(one for one in of_key if one.effect in ("", taint.effect) and one.key in ("", taint.key))
            found = self._relevant[taint.key, taint.effect] = (relevant, AnyOf(relevant, taint.key, self._gates))
        relevant, any_of = found
        if any_of.holds(taint.value):
            return ""
        # tolerationSeconds do not matter for scheduling.
        reasons = [
            f"{replace(toleration, toleration_seconds=None)} {match(toleration, taint, self._gates)}"
            for toleration in relevant[:MAX_REASONS]
        ]
        return f"taint {taint} is not tolerated ({_listed(reasons, len(relevant)) or 'no toleration for it'})"


def _clear_if_full(remembered: dict[Any, Any], most: int) -> None:
    if len(remembered) >= most:
        remembered.clear()


_CheckedTerm = tuple[tuple[NodeRequirement, Check], ...]


class _Affinity:
    """A node affinity, prepared for comparison with many nodes. A pod may have hundreds of requirements."""

    def __init__(self, sourced: SourcedAffinity, gates: Gates, max_remembered: int) -> None:
        affinity = sourced.affinity
        self.results: dict[tuple[str | None, ...], tuple[tuple[RefusalCause, str] | None, int]] = {}
        """Values of the labels that the affinity names -> mismatch, and total weight of the preferences that hold."""
        self._sourced = sourced
        self._gates = gates
        self._max_remembered = max_remembered
        self._keys = affinity.keys
        self._required = None if affinity.required is None else [_checked(term, gates) for term in affinity.required]
        self._preferred = [(preference.weight, _checked(preference.term, gates)) for preference in affinity.preferred]

    def compare(self, labels: Mapping[str, str]) -> tuple[tuple[RefusalCause, str] | None, int]:
        """Return why a node with these labels does not match (None if it does), and the weight of its preferences."""
        values = tuple([labels.get(key) for key in self._keys])
        found = self.results.get(values)
        if found is None:
            _clear_if_full(self.results, self._max_remembered)
            weight = sum(weight for weight, term in self._preferred if _holds(term, labels))
            found = self.results[values] = (self._mismatch(labels), weight)
        return found

    def _mismatch(self, labels: Mapping[str, str]) -> tuple[RefusalCause, str] | None:
        if self._required is None or any(_holds(term, labels) for term in self._required):
            return None
        sourced = self._sourced
        if sourced.fault:
            reason = f"the node affinity of {sourced.source} is invalid, so no node matches: {sourced.fault}"
            return RefusalCause.INVALID, reason
        reasons = _listed([self._fault(term, labels) for term in self._required[:MAX_REASONS]], len(self._required))
        return (
            RefusalCause.AFFINITY,
            f"the node affinity of {sourced.source} does not match ({reasons or 'it has no term'})",
        )

    def _fault(self, term: _CheckedTerm, labels: Mapping[str, str]) -> str:
        failed = _failed(term, labels)
        return "an empty term matches no node" if failed is None else describe(failed, labels, self._gates)


def _checked(term: Term, gates: Gates) -> _CheckedTerm:
    return tuple((requirement, check_of(requirement, gates)) for requirement in term)


def _holds(term: _CheckedTerm, labels: Mapping[str, str]) -> bool:
    """True if all requirements hold. An empty term matches no node."""
    return bool(term) and _failed(term, labels) is None


def _failed(term: _CheckedTerm, labels: Mapping[str, str]) -> NodeRequirement | None:
    """Return the first requirement that does not hold; None if all hold."""
    for requirement, check in term:
        if not check(labels.get(requirement.key)):
            return requirement
    return None


def _listed(reasons: list[str], number: int = 0) -> str:
    """Join the first reasons. ``number`` is their total if ``reasons`` are not all of them."""
    more = (number or len(reasons)) - MAX_REASONS
    return "; ".join(reasons[:MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


class AnyOf:
    """Many tolerations for one taint key as one comparison, since a namespace may have a thousand of them.

    The most permissive threshold of each operator decides. The values that tolerations name form one set.

    Args:
        tolerations: the tolerations for the effect of the taints.
        key: the key of the taints.
        gates: which operators are switched on.

    """

    def __init__(self, tolerations: Iterable[Toleration], key: str, gates: Gates = ALL_GATES) -> None:
        self._decisive: dict[Row, Any] = {}
        for toleration in tolerations:
            row = ROWS.get(toleration.operator)
            if row is None or not row.family.is_on(gates) or toleration.key not in ("", key):
                continue
            wanted = row.wanted(toleration)
            if wanted is not None:
                self._add(row, wanted)

    def holds(self, value: str) -> bool:
        """True if one of the tolerations tolerates a taint with this value."""
        for row, wanted in self._decisive.items():
            parsed = row.family.parse(value)
            if parsed is not None and (parsed in wanted if row.side is Side.AT else row.holds(parsed, wanted)):
                return True
        return False

    def _add(self, row: Row, wanted: Any) -> None:
        named = set(wanted) if row.family.takes == "values" else {wanted}
        before = self._decisive.get(row)
        match row.side:
            case Side.AT:
                self._decisive.setdefault(row, set()).update(named)
            case Side.BESIDE:
                self._decisive[row] = named if before is None else before & named
            case Side.ABOVE:
                self._decisive[row] = wanted if before is None else min(before, wanted)
            case Side.BELOW:
                self._decisive[row] = wanted if before is None else max(before, wanted)
            case Side.ANYWHERE:
                self._decisive[row] = wanted
