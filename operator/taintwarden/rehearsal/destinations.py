"""Which nodes may get a pod, and why the others may not: by the scheduler's rules for taints and labels, and by ours.

Not considered: resources, ports, affinity to pods, topology spread, the places of volumes.
"""

from collections.abc import Iterator

import msgspec

from taintwarden.api.affinity import Parsed, parse_volume_affinity
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import Gates, Node, Profile
from taintwarden.engine.placement import is_mirror_label
from taintwarden.engine.profiles import Profiles
from taintwarden.engine.scheduling import REPELLING, Demand, Preferences, preferences, refusal
from taintwarden.rehearsal.places import Place, PlacedPod
from taintwarden.rehearsal.rehearsal import Rehearsal
from taintwarden.rehearsal.snapshot import Snapshot
from taintwarden.scheduling.demands import Demands

NATIVE = "only an extended toleration tolerates it, and the scheduler reads native ones: add Exists for the key"
NOT_LABELLED = "the operator has not written its labels of placement"


class Wanted(msgspec.Struct, frozen=True, cache_hash=True):
    """What a pod demands of a node: equal for pods of one workload."""

    demand: Demand
    place: Place = Place()


class Destinations:
    """Evaluates nodes for pods.

    Args:
        snapshot: the objects of the cluster.
        taught: a machine that knows them.
        gates: which operators are enabled.

    """

    def __init__(self, snapshot: Snapshot, taught: Rehearsal, gates: Gates) -> None:
        claims = {f"{one.metadata.namespace}/{one.metadata.name}": one.spec.volume_name for one in snapshot.claims}
        self._gates = gates
        self._demands = Demands(taught.decoder, _indexed(taught.profiles), claims, _volumes(snapshot))

    def wanted(self, pod: PlacedPod) -> Wanted:
        """What a pod demands."""
        return Wanted(self._demands.of(pod), pod.spec.place)

    def refusals(self, wanted: Wanted, node: Node) -> Iterator[str]:
        """Why a pod may not be scheduled on the node. Empty: nothing that is considered keeps it off."""
        taints = [taint for taint, _ in node.taints]
        refused = refusal(wanted.demand, taints, node.labels, self._gates)
        if refused is not None:
            yield refused.reason
        else:
            yield from (
                f"taint {taint}: {NATIVE}"
                for taint in taints
                if taint.effect in REPELLING
                and not any(match(one, taint, self._gates) is Match.HOLDS for one in wanted.demand.tolerations.native)
            )
        failing = list(wanted.place.failing(node.name, node.labels))
        ours = [one is not None and is_mirror_label(one.key) for one in failing]
        if failing and not (refused is not None and all(ours)):  # otherwise the same twice
            told = "; ".join("an empty term matches no node" if one is None else str(one) for one in failing[:3])
            unlabelled = any(ours) and not any(map(is_mirror_label, node.labels))
            yield f"its nodeSelector or node affinity does not match ({told})" + (
                f": {NOT_LABELLED}" if unlabelled else ""
            )

    def preferences(self, wanted: Wanted, node: Node) -> Preferences:
        """How well the node suits."""
        return preferences(wanted.demand, [taint for taint, _ in node.taints], node.labels, self._gates)


def _indexed(profiles: tuple[Profile, ...]) -> Profiles:
    found = Profiles()
    for profile in profiles:
        found.put(profile.namespace, profile.name, profile)
    return found


def _volumes(snapshot: Snapshot) -> dict[str, Parsed]:
    texts = ((one.metadata.name, one.metadata.annotations) for one in snapshot.volumes)
    return {name: parse_volume_affinity(ours.node_affinity) for name, ours in texts if ours and ours.node_affinity}
