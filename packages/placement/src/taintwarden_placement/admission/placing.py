"""Requirements and preferences about node labels that keep a pod off nodes that it does not tolerate."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from taintwarden.engine.evaluate import exclusion
from taintwarden.engine.model import Effect, Gates, PodClass, Tolerations
from taintwarden.engine.policy import Policy
from taintwarden_placement.admission import merged_affinity as merging
from taintwarden_placement.affinity import REQUIRED_EFFECTS, Alternatives, native_affinity, requirements
from taintwarden_placement.node_labels.wanted import placed_keys
from taintwarden_placement.scheduling.feasibility import Demand, SourcedAffinity


class ConcerningPolicies(NamedTuple):
    """The policies that concern a pod."""

    placing: tuple[Policy, ...] = ()
    evicting: tuple[Policy, ...] = ()


def concerning_policies(
    policies: Iterable[Policy], pod_class: PodClass, namespace_labels: Mapping[str, str] | None
) -> ConcerningPolicies:
    """Return which of ``policies`` place pods of a class, and which may evict them.

    Pods that opt out of evictions and pods of a DaemonSet are placed, too: no policy would evict them from a node that
    they do not tolerate.
    """
    placed = msgspec.structs.replace(pod_class, do_not_evict=False, do_not_disrupt=False, daemon_set=False)
    enforced = [policy for policy in policies if not policy.rehearses]
    return ConcerningPolicies(
        tuple(policy for policy in enforced if not exclusion(policy, placed, namespace_labels)),
        tuple(policy for policy in enforced if not exclusion(policy, pod_class, namespace_labels)),
    )


class Restrictions(msgspec.Struct):
    """Restrictions of a pod to nodes, before they are merged with the pod's own affinity."""

    taints: list[Alternatives] = []
    """Restrictions because of taints, one for each key by which policies place pods."""
    affinities: list[Alternatives] = []
    """Restrictions because of node affinity with versions."""
    preferred: list[list[dict[str, Any]]] = []  # preferences of each node affinity, as the API has them
    impossible: bool = False
    """True if no node can match."""
    warnings: list[str] = []

    @property
    def required(self) -> list[Alternatives]:
        """All restrictions that a node must meet."""
        return [*self.taints, *self.affinities]

    def warn(self, source: str, faults: Iterable[str]) -> None:
        """Add a warning for each fault that is not reported yet."""
        self.warnings += [text for fault in faults if (text := f"{source}: {fault}") not in self.warnings]


def restrictions(demand: Demand, policies: Sequence[Policy], published: Collection[str], gates: Gates) -> Restrictions:
    """Return the restrictions for a pod. ``policies`` place it; ``published`` labels are repeated as numbers."""
    found = Restrictions()
    for key in placed_keys(policies):
        tolerated = [effect for effect in REQUIRED_EFFECTS if _has_native(key, effect, demand.tolerations)]
        found.taints.append(requirements(key, demand.tolerations.extended, gates, tolerated))
        found.warn("placement", found.taints[-1].faults)
    for sourced in demand.affinities:
        _add_affinity(found, sourced, published, gates)
    return found


def _add_affinity(found: Restrictions, sourced: SourcedAffinity, published: Collection[str], gates: Gates) -> None:
    """Add the restrictions and preferences of one node affinity."""
    source, native = f"node affinity of {sourced.source}", native_affinity(sourced.affinity, published, gates)
    found.warn(source, [sourced.fault] if sourced.fault else native.faults)
    if native.required == ():
        found.impossible = True
        found.warn(source, ["no node can match it, so the pod stays Pending"])
    elif native.required is not None:
        found.affinities.append(Alternatives(sourced.source, terms=native.required))
    found.preferred.append([merging.preference(preference.weight, preference.term) for preference in native.preferred])


def _has_native(key: str, effect: Effect, tolerations: Tolerations) -> bool:
    """True if the pod has, or will get, a native toleration for some taint with this key and effect."""
    named = (entry for entry in tolerations.extended if entry.key)
    return any(entry.key in ("", key) and entry.effect in ("", effect) for entry in (*named, *tolerations.native))
