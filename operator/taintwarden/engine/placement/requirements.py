"""From a pod's extended tolerations for one taint key to what its node affinity has to require."""

from collections.abc import Iterable, Sequence
from itertools import product

import msgspec

from taintwarden.engine.matching.tolerations import ALL_GATES
from taintwarden.engine.model import Gates, Toleration
from taintwarden.engine.placement.labels import value_label, version_label
from taintwarden.engine.placement.terms import NodeOperator, Term
from taintwarden.engine.placement.translation import Translation


class Alternatives(msgspec.Struct, frozen=True):
    """What a node must meet because of one taint key: one of ``terms``, unless it is ``unrestricted``.

    ``faults`` are sentences about nodes that are tolerated and left out all the same.
    """

    key: str
    terms: tuple[Term, ...] = ()
    unrestricted: bool = False
    faults: tuple[str, ...] = ()


def requirements(
    key: str, tolerations: Sequence[Toleration], effects: Iterable[str], gates: Gates = ALL_GATES
) -> Alternatives:
    """The nodes that a pod with these *extended* ``tolerations`` may be put on, as far as the taint ``key`` goes.

    ``effects`` are those with which policies select the taint for placement. Unrestricted: an ``Exists``, or no
    extended toleration names the key, so that the native ones decide, which the scheduler knows. A node without the
    taint is always among the nodes.
    """
    if all(entry.key != key for entry in tolerations):
        return Alternatives(key, unrestricted=True)
    value, version = value_label(key), version_label(key)
    if value is None or version is None:
        return Alternatives(key, unrestricted=True, faults=(f"{key}: its prefix is too long for a label",))
    groups: dict[tuple[Term, ...] | None, None] = {}
    faults: dict[str, None] = {}
    for effect in dict.fromkeys(effects):
        translation = Translation(value, version, gates)
        for entry in tolerations:
            if entry.key in ("", key) and entry.effect in ("", effect):
                translation.add(entry)
        terms = translation.terms()
        groups[terms] = None
        if terms is not None:
            faults |= dict.fromkeys(translation.faults)
    if len(groups) > 1:
        faults[f"{key}: is tolerated otherwise with another effect: only nodes that suit all effects are found"] = None
    restricting = [terms for terms in groups if terms is not None]
    if not restricting:
        return Alternatives(key, unrestricted=True)
    return Alternatives(key, _all_of(restricting, value), faults=tuple(faults))


def _all_of(groups: Sequence[tuple[Term, ...]], value_label: str) -> tuple[Term, ...]:
    """One term of each group in every combination, but for those that no node can meet."""
    found: dict[Term, None] = {}
    for terms in product(*groups):
        joined = dict.fromkeys(requirement for term in terms for requirement in term)
        absent = any(entry.key == value_label and entry.operator is NodeOperator.DOES_NOT_EXIST for entry in joined)
        if not absent or len(joined) == 1:  # without the value's label there is none of the version either
            found[tuple(joined)] = None
    return tuple(found)
