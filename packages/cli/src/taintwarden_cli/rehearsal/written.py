"""What the webhook would write now for a pod that is stored, compared with what the pod has.

A pod keeps the affinity with which it was created. So it may be of an earlier policy or profile, or of none, if the
webhook was away.
"""

from collections.abc import Mapping, Sequence

import msgspec

from taintwarden.api.placement_labels import is_mirror_label, keys_of
from taintwarden.engine.affinity import SEMVER_NODE_OPERATORS
from taintwarden.engine.model import Effect, Gates
from taintwarden_cli.rehearsal.places import Place
from taintwarden_placement.admission.advice import compared_keys
from taintwarden_placement.admission.injection import NO_NODE
from taintwarden_placement.admission.merged_affinity import merge
from taintwarden_placement.admission.natives import missing_natives, without_guard
from taintwarden_placement.admission.placing import ConcerningPolicies, Restrictions, restrictions
from taintwarden_placement.affinity import REQUIRED_EFFECTS, Alternatives
from taintwarden_placement.scheduling.feasibility import Demand

Parts = frozenset[tuple[str, ...]]
"""What the terms of an affinity require of some labels, each requirement as text."""


class WrittenPod:
    """A pod as it is stored, and as it would be stored now.

    Args:
        place: what it requires of the labels of nodes.
        demand: what it demands.
        acting: the policies that concern it.
        published: the labels of nodes whose versions are repeated as numbers.
        gates: which operators are enabled.

    """

    def __init__(
        self, place: Place, demand: Demand, acting: ConcerningPolicies, published: Sequence[str], gates: Gates
    ) -> None:
        self._place = place
        self._demand = demand
        self._acting = acting
        self.wanted: Restrictions = restrictions(demand, acting.placing, published, gates)
        selector = tuple(pair for pair in place.selector if pair not in NO_NODE.items())
        self.own = Place(selector, place.terms).without(is_mirror_label)
        """What it requires besides placement."""
        required, self.problem = merge(self.own.required(), self.wanted.required)
        self.place = self.own.requiring(required)
        """What it would require."""

    @property
    def is_impossible(self) -> bool:
        """Whether no node matches it, since its restrictions could not be written."""
        return bool(NO_NODE.items() & set(self._place.selector))

    @property
    def is_possible_now(self) -> bool:
        """Whether they could be written now."""
        return not (self.wanted.impossible or self.problem)

    @property
    def faults(self) -> list[str]:
        """What cannot be written now."""
        return [*self.wanted.warnings, *([f"placement: {self.problem}"] if self.problem else [])]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of taints that its affinity names."""
        return tuple(one.key for one in keys_of(self._place.labels) if not one.of_label)

    @property
    def source_labels(self) -> tuple[str, ...]:
        """The labels whose versions its affinity compares."""
        return tuple(one.key for one in keys_of(self._place.labels) if one.of_label)

    @property
    def compared_labels(self) -> tuple[str, ...]:
        """The labels whose versions its node affinity with versions compares."""
        terms = (term for one in self._demand.affinities for term in one.affinity.required or ())
        found = (one.key for term in terms for one in term if one.operator in SEMVER_NODE_OPERATORS)
        return tuple(dict.fromkeys(found))

    @property
    def compared_keys(self) -> list[str]:
        """The keys of taints whose values its extended tolerations compare."""
        return compared_keys(self._demand.tolerations.extended)

    @property
    def has_affinities(self) -> bool:
        """Whether its node affinity with versions was written, or could not be written."""
        required = self._place.required()
        return self.is_impossible or merge(required, self.wanted.affinities)[0] is required

    def ended(self) -> list[str]:
        """The keys that its affinity names although no policy places it by them any more."""
        now = {one.key for one in self.wanted.taints if not one.unrestricted}
        return [key for key in self.keys if key not in now]

    def outdated(self) -> list[str]:
        """The keys that its affinity names otherwise than it would now."""
        return [
            one.key
            for one in self.wanted.taints
            if one.key in self.keys and not one.unrestricted and _parts(self._place, one) != _wanted(one)
        ]

    def missing_natives(self) -> list[Mapping[str, str]]:
        """The native tolerations that it would get."""
        tolerations = self._demand.tolerations
        placed = {one.key for one in self.wanted.taints}
        refused = [key for key in without_guard(tolerations.extended, self._acting.evicting) if key not in placed]
        withheld = dict.fromkeys(refused, (Effect.NO_SCHEDULE,)) | (
            dict.fromkeys(self.wanted.keys, REQUIRED_EFFECTS) if self.problem else {}
        )
        native = [msgspec.to_builtins(one) for one in tolerations.native]
        return list(missing_natives(native, tolerations.extended, withheld))


def _parts(place: Place, alternatives: Alternatives) -> Parts:
    return frozenset(
        tuple(sorted(str(one.as_json()) for one in term.match_expressions if one.key in alternatives.labels))
        for term in place.terms or ()
    )


def _wanted(alternatives: Alternatives) -> Parts:
    return frozenset(tuple(sorted(str(one.as_json()) for one in term)) for term in alternatives.terms)
