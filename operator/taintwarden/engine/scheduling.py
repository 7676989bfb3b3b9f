"""Whether a pod may be scheduled on a node, how well the node suits it, and why not.

The tolerations are those that decide on evictions, so a pod is never scheduled where a taint would evict it at once.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from taintwarden.engine.affinity import NodeAffinity, Term
from taintwarden.engine.matching.affinity import LabelMatch, describe, match_label, matches, weight
from taintwarden.engine.matching.tolerations import ALL_GATES, Match, match, why_not
from taintwarden.engine.model import Effect, Gates, Taint, Toleration, Tolerations

REPELLING = (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)
"""The effects that keep pods off a node; ``PreferNoSchedule`` only lowers its score."""
MAX_TOLD = 3
"""Of tolerations, terms and taints in one reason: an Event has 1,024 characters for all nodes."""


class Untolerated(msgspec.Struct, frozen=True):
    """A taint that a pod does not tolerate, with those tolerations for it that do not hold."""

    taint: Taint
    answers: tuple[tuple[Toleration, Match], ...] = ()

    def __str__(self) -> str:
        told = [
            f"{msgspec.structs.replace(toleration, toleration_seconds=None)} {answer}"
            for toleration, answer in self.answers
        ]
        return f"taint {self.taint} is not tolerated ({_listed(told) or 'no toleration for it'})"


class Sourced(msgspec.Struct, frozen=True):
    """A node affinity, and who asks for it, as a noun: "the annotation", "profile gold"."""

    source: str
    affinity: NodeAffinity
    fault: str = ""
    """Why it cannot be read. Its affinity then is ``NOWHERE``."""


class Demand(msgspec.Struct, frozen=True, cache_hash=True):
    """What a pod demands of a node: equal for pods of one workload. Every affinity has to match."""

    tolerations: Tolerations = Tolerations()
    affinities: tuple[Sourced, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The labels of nodes that decide, each once."""
        return tuple(dict.fromkeys(key for one in self.affinities for key in one.affinity.keys))

    @property
    def is_native(self) -> bool:
        """Whether the scheduler knows all of it: nothing is extended."""
        return not (self.affinities or self.tolerations.extended)

    @property
    def is_invalid(self) -> bool:
        """Whether no node will ever do, because an affinity cannot be read."""
        return any(one.fault for one in self.affinities)


class Cause(StrEnum):
    """What keeps a pod off a node."""

    TAINT = "taint"
    AFFINITY = "node-affinity"
    INVALID = "invalid-node-affinity"
    """The affinity cannot be read, so no node matches until it is corrected."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a pod may not be scheduled on a node: the first cause, and all reasons."""

    cause: Cause
    reason: str


def untolerated(tolerations: Tolerations, taints: Iterable[Taint], gates: Gates = ALL_GATES) -> list[Untolerated]:
    """The taints among these that a pod does not tolerate, whatever their effect. Extended tolerations narrow."""
    found = []
    for taint in taints:
        relevant = tolerations.relevant_to(taint.key)
        if not any(match(toleration, taint, gates) is Match.HOLDS for toleration in relevant):
            found.append(Untolerated(taint, tuple(why_not(relevant, taint, gates))))
    return found


def refusal(
    demand: Demand, taints: Iterable[Taint], labels: Mapping[str, str], gates: Gates = ALL_GATES
) -> Refusal | None:
    """Why a pod may not be scheduled on a node with these taints and labels; None if it may."""
    repelling = [taint for taint in taints if taint.effect in REPELLING]
    found = [(Cause.TAINT, str(one)) for one in untolerated(demand.tolerations, repelling, gates)]
    found += [_mismatch(one, labels, gates) for one in demand.affinities if not matches(one.affinity, labels, gates)]
    return Refusal(found[0][0], _listed([reason for _, reason in found])) if found else None


class Preferences(msgspec.Struct, frozen=True):
    """How well a node suits a pod."""

    taints: int
    """``PreferNoSchedule`` taints that the pod does not tolerate: fewer are better."""
    weight: int
    """Of the preferred node affinity that the node meets: more is better."""


def preferences(
    demand: Demand, taints: Iterable[Taint], labels: Mapping[str, str], gates: Gates = ALL_GATES
) -> Preferences:
    """What speaks against a node with these taints, and what for one with these labels."""
    disliked = [taint for taint in taints if taint.effect == Effect.PREFER_NO_SCHEDULE]
    number = len(untolerated(demand.tolerations, disliked, gates))
    return Preferences(number, sum(weight(one.affinity, labels, gates) for one in demand.affinities))


def _mismatch(one: Sourced, labels: Mapping[str, str], gates: Gates) -> tuple[Cause, str]:
    if one.fault:
        return Cause.INVALID, f"the node affinity of {one.source} is invalid, so no node matches: {one.fault}"
    terms = [_first_fault(term, labels, gates) for term in one.affinity.required or ()]
    return Cause.AFFINITY, f"the node affinity of {one.source} does not match ({_listed(terms) or 'it has no term'})"


def _first_fault(term: Term, labels: Mapping[str, str], gates: Gates) -> str:
    failed = (one for one in term if match_label(one, labels, gates) is not LabelMatch.HOLDS)
    first = next(failed, None)
    return "an empty term matches no node" if first is None else describe(first, labels, gates)


def _listed(told: list[str]) -> str:
    more = len(told) - MAX_TOLD
    return "; ".join(told[:MAX_TOLD]) + (f"; and {more} more" if more > 0 else "")
