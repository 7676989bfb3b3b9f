"""Additions to a pod before it is stored: native tolerations for its extended ones, and node affinity.

The scheduler, the kubelet and the built-in controller do not read extended tolerations. A native ``Exists`` for the
same key leaves the decision to Taintwarden, and node affinity keeps the pod off nodes that it does not tolerate.
A pod that compares values gets no ``Exists`` for ``NoSchedule`` if no policy places by the key or evicts it: a wrong
placement would last. If node affinity is necessary and cannot be expressed, a selector keeps the pod off all nodes.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.engine.model import Gates, Toleration, Tolerations
from taintwarden_placement.admission import merged_affinity as merging
from taintwarden_placement.admission.checking import mapping, sequence, value_at
from taintwarden_placement.admission.natives import missing_natives, unenforced_keys
from taintwarden_placement.admission.placing import ConcerningPolicies, Restrictions, restrictions
from taintwarden_placement.admission.response import AdmissionResponse, PatchOperation
from taintwarden_placement.scheduling.feasibility import Demand

_KEPT_OFF = "a NoSchedule taint keeps the pod off a node, whatever its value"
_MAX_NAMED = 5

NO_NODE = {"taintwarden.io/node-affinity": "cannot-be-met"}
"""A node selector that matches no node. It replaces a restriction that cannot be expressed."""


class Additions(msgspec.Struct):
    """Complete new values of fields of a pod's spec. They contain everything that the pod's author wrote."""

    fields: dict[str, Any] = {}
    warnings: list[str] = []

    def response(self) -> AdmissionResponse:
        """Return the admission response that adds these fields to a pod."""
        patch = tuple(PatchOperation("add", f"/spec/{name}", value) for name, value in self.fields.items())
        return AdmissionResponse(warnings=tuple(self.warnings), patch=patch)


def native_additions(pod: Mapping[str, Any], tolerations: Tolerations) -> Additions:
    """Add native tolerations only, for a cluster where the scheduler extender keeps pods off nodes."""
    return Additions(_toleration_fields(pod, tolerations.extended))


def additions(
    pod: Mapping[str, Any], demand: Demand, policies: ConcerningPolicies, published: Collection[str], gates: Gates
) -> Additions:
    """Return the additions to ``pod``, an API object. A call for the completed pod adds nothing.

    ``published`` are the node labels whose versions are repeated as numbers.
    """
    wanted = restrictions(demand, policies.placing, published, gates)
    extended = demand.tolerations.extended
    placed = {alternatives.key for alternatives in wanted.taints}
    native = sequence(value_at(pod, "spec", "tolerations"))
    refused = [key for key in unenforced_keys(native, extended, policies.evicting) if key not in placed]
    found = Additions(_toleration_fields(pod, extended, refused))
    if not value_at(pod, "spec", "nodeName"):
        found.fields |= _placement_fields(pod, wanted)
        found.warnings += wanted.warnings
    if refused:
        found.warnings.append(f"{_KEPT_OFF}: no policy sets placement for {_listed(refused)}")
    return found


def _toleration_fields(
    pod: Mapping[str, Any], extended: Sequence[Toleration], refused: Collection[str] = ()
) -> dict[str, list[Any]]:
    """Return ``spec.tolerations`` with the missing native tolerations; empty if none is missing."""
    native = sequence(value_at(pod, "spec", "tolerations"))
    missing = missing_natives(native, extended, refused)
    return {"tolerations": [*native, *missing]} if missing else {}


def _placement_fields(pod: Mapping[str, Any], wanted: Restrictions) -> dict[str, Any]:
    """Return the fields that restrict a pod to nodes. A restriction that cannot be expressed selects no node."""
    own = mapping(value_at(pod, "spec", "affinity"))
    merged, problem = merging.restrict(own, wanted.required)
    wanted.warn("placement", [f"{problem}: no node is used"] if problem else ())
    if wanted.impossible or problem:
        selector = mapping(value_at(pod, "spec", "nodeSelector"))
        return {} if NO_NODE.items() <= selector.items() else {"nodeSelector": {**selector, **NO_NODE}}
    merged, problem = merging.prefer(merged, wanted.preferred)
    wanted.warn("placement", [problem] if problem else ())
    return {} if merged == own else {"affinity": merged}


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _MAX_NAMED
    return ", ".join(keys[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
