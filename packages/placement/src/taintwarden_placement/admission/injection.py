"""What a pod gets before it is stored: native tolerations beside its extended ones, and nodes that suit it.

The scheduler, the kubelet and the built-in controller do not read extended tolerations. A native ``Exists`` for the
same key leaves the decision to Taintwarden, and node affinity keeps the scheduler from nodes that it does not suit.
Without anything that keeps the pod off, ``NoSchedule`` is not tolerated: nothing would undo it. Where node affinity
should keep it off and cannot be written, the pod gets no node at all.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.engine.model import Gates, Toleration, Tolerations
from taintwarden_placement.admission import merged_affinity as merging
from taintwarden_placement.admission.checking import look, mapping, sequence
from taintwarden_placement.admission.natives import missing_natives, without_guard
from taintwarden_placement.admission.placing import ConcerningPolicies, Restrictions, restrictions
from taintwarden_placement.admission.response import AdmissionResponse, PatchOperation
from taintwarden_placement.scheduling.feasibility import Demand

_KEPT_OFF = "the pod is kept off nodes with the effect NoSchedule, whatever the value"
_MAX_NAMED = 5

NO_NODE = {"taintwarden.io/node-affinity": "cannot-be-met"}
"""A node selector that no node matches, for a restriction that cannot be written: it may require anything."""


class Additions(msgspec.Struct):
    """What the spec of a pod lacks: the fields that change, each as a whole. What it has never changes."""

    fields: dict[str, Any] = {}
    warnings: list[str] = []

    def response(self) -> AdmissionResponse:
        """The response about a pod."""
        patch = tuple(PatchOperation("add", f"/spec/{name}", value) for name, value in self.fields.items())
        return AdmissionResponse(warnings=tuple(self.warnings), patch=patch)


def tolerate(pod: Mapping[str, Any], tolerations: Tolerations) -> Additions:
    """Only the native tolerations, for a cluster whose schedulers ask the extender: it keeps pods off nodes."""
    return Additions(_tolerated(pod, tolerations.extended))


def additions(
    pod: Mapping[str, Any], demand: Demand, acting: ConcerningPolicies, published: Collection[str], gates: Gates
) -> Additions:
    """What ``pod``, an object of the API, lacks. A second call adds nothing.

    ``published`` are the labels of nodes whose versions are repeated as numbers.
    """
    wanted = restrictions(demand, acting.placing, published, gates)
    extended = demand.tolerations.extended
    placed = {one.key for one in wanted.taints}
    refused = [key for key in without_guard(extended, acting.evicting) if key not in placed]
    found = Additions(_tolerated(pod, extended, refused))
    if not look(pod, "spec", "nodeName"):
        found.fields |= _placed(pod, wanted)
        found.warnings += wanted.warnings
    if refused:
        found.warnings.append(f"{_KEPT_OFF}: no policy sets placement for {_listed(refused)}")
    return found


def _tolerated(
    pod: Mapping[str, Any], extended: Sequence[Toleration], refused: Collection[str] = ()
) -> dict[str, list[Any]]:
    """Its native tolerations with those that it lacks; nothing if it lacks none."""
    native = sequence(look(pod, "spec", "tolerations"))
    missing = missing_natives(native, extended, refused)
    return {"tolerations": [*native, *missing]} if missing else {}


def _placed(pod: Mapping[str, Any], wanted: Restrictions) -> dict[str, Any]:
    """What keeps it off nodes. If something has to be written and cannot, no node is better than any node."""
    own = mapping(look(pod, "spec", "affinity"))
    merged, problem = merging.restrict(own, wanted.required)
    wanted.warn("placement", [f"{problem}: no node is used"] if problem else ())
    if wanted.impossible or problem:
        selector = mapping(look(pod, "spec", "nodeSelector"))
        return {} if NO_NODE.items() <= selector.items() else {"nodeSelector": {**selector, **NO_NODE}}
    merged, problem = merging.prefer(merged, wanted.preferred)
    wanted.warn("placement", [problem] if problem else ())
    return {} if merged == own else {"affinity": merged}


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _MAX_NAMED
    return ", ".join(keys[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
