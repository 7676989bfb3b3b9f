"""Which nodes may get a pod, and why the others may not: by the scheduler's rules for taints and labels, and by ours.

Not considered: resources, ports, affinity to pods, topology spread, the places of volumes.
"""

from collections.abc import Iterator, Sequence

from taintwarden.api.affinity import Parsed, parse_volume_affinity
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import Gates, Node, Profile, Taint
from taintwarden.engine.placement import is_mirror_label
from taintwarden.engine.profiles import Profiles
from taintwarden.engine.scheduling import MAX_TOLD, REPELLING, Demand, Judge, Preferences
from taintwarden.rehearsal.node_requirements import NodeRequirement
from taintwarden.rehearsal.places import Place, PlacedPod
from taintwarden.rehearsal.rehearsal import Rehearsal
from taintwarden.rehearsal.snapshot import Snapshot
from taintwarden.scheduling.demands import Demands

NATIVE = "only an extended toleration tolerates it, and the scheduler reads native ones: add Exists for the key"
NOT_LABELLED = "the operator has not written its labels of placement"


class Candidate:
    """A pod that is to be scheduled.

    Args:
        demand: what it demands, with extended tolerations and node affinity.
        place: what the scheduler reads in its ``nodeSelector`` and node affinity.
        gates: which operators are enabled.

    """

    def __init__(self, demand: Demand, place: Place, gates: Gates) -> None:
        self._native = demand.tolerations.native
        self._place = place
        self._gates = gates
        self._judge = Judge(demand, gates)

    def refusals(self, node: Node) -> Iterator[str]:
        """Why it may not be scheduled on the node. Empty: nothing that is considered keeps it off."""
        taints = [taint for taint, _ in node.taints]
        refused = self._judge.refusal(taints, node.labels)
        if refused is not None:
            yield refused.reason
        else:
            yield from (f"taint {taint}: {NATIVE}" for taint in taints if self._is_rejected(taint))
        failing = list(self._place.failing(node.name, node.labels))
        ours = [one is not None and is_mirror_label(one.key) for one in failing]
        if failing and not (refused is not None and all(ours)):  # otherwise the same twice
            yield _mismatch(failing, is_unlabelled=any(ours) and not any(map(is_mirror_label, node.labels)))

    def preferences(self, node: Node) -> Preferences:
        """How well the node suits."""
        return self._judge.preferences([taint for taint, _ in node.taints], node.labels)

    def _is_rejected(self, taint: Taint) -> bool:
        """Whether the scheduler rejects it, which reads native tolerations only."""
        answers = (match(one, taint, self._gates) for one in self._native)
        return taint.effect in REPELLING and Match.HOLDS not in answers


class Candidates:
    """Reads pods that are to be scheduled.

    Args:
        snapshot: the objects of the cluster.
        taught: a machine that knows them.
        gates: which operators are enabled.

    """

    def __init__(self, snapshot: Snapshot, taught: Rehearsal, gates: Gates) -> None:
        claims = {f"{one.metadata.namespace}/{one.metadata.name}": one.spec.volume_name for one in snapshot.claims}
        self._gates = gates
        self._demands = Demands(taught.decoder, _indexed(taught.profiles), claims, _volumes(snapshot))

    def of(self, pod: PlacedPod) -> Candidate:
        """What a pod demands."""
        return Candidate(self._demands.of(pod), pod.spec.place, self._gates)


def _mismatch(failing: Sequence[NodeRequirement | None], *, is_unlabelled: bool) -> str:
    told = "; ".join("an empty term matches no node" if one is None else str(one) for one in failing[:MAX_TOLD])
    why = f"its nodeSelector or node affinity does not match ({told})"
    return f"{why}: {NOT_LABELLED}" if is_unlabelled else why


def _indexed(profiles: tuple[Profile, ...]) -> Profiles:
    found = Profiles()
    for profile in profiles:
        found.put(profile.namespace, profile.name, profile)
    return found


def _volumes(snapshot: Snapshot) -> dict[str, Parsed]:
    texts = ((one.metadata.name, one.metadata.annotations) for one in snapshot.volumes)
    given = {name: ours.node_affinity for name, ours in texts if ours is not None}
    return {name: parse_volume_affinity(text) for name, text in given.items() if text is not None}
