"""What a pod gets before it is stored: native tolerations beside its extended ones, and nodes that suit it.

The scheduler, the kubelet and the built-in controller do not read extended tolerations. A native ``Exists`` for the
same key leaves the decision to Taintwarden, and node affinity keeps the scheduler from nodes that it does not suit.
Without anything that keeps the pod off, ``NoSchedule`` is not tolerated: nothing would undo it. Where node affinity
should keep it off and cannot be written, no effect is tolerated, or the pod gets no node at all.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.engine.model import Effect, Gates, Tolerations
from taintwarden_placement.admission import merged_affinity as merging
from taintwarden_placement.admission.checking import look, mapping, sequence
from taintwarden_placement.admission.natives import missing_natives, without_guard
from taintwarden_placement.admission.placing import ConcerningPolicies, Restrictions, may_enter, restrictions
from taintwarden_placement.admission.response import AdmissionResponse, PatchOperation
from taintwarden_placement.affinity import REQUIRED_EFFECTS
from taintwarden_placement.scheduling.feasibility import Demand

_MIRROR = "kubernetes.io/config.mirror"
_KEPT_OFF = "the pod is kept off nodes with the effect NoSchedule, whatever the value"
_MAX_NAMED = 5

NO_NODE = {"taintwarden.io/node-affinity": "cannot-be-met"}
"""A node selector that no node matches, for a restriction that cannot be written: it may require anything."""


class Additions(msgspec.Struct, kw_only=True):
    """What the spec of a pod lacks. ``affinity`` and ``node_selector`` are the whole fields; None: as they are."""

    tolerations: list[dict[str, str]] = []
    affinity: Mapping[str, Any] | None = None
    node_selector: Mapping[str, Any] | None = None
    warnings: list[str] = []

    def patch(self, spec: object) -> tuple[PatchOperation, ...]:
        """The additions to this spec. Existing fields never change."""
        steps: list[PatchOperation] = []
        if self.tolerations and not sequence(look(spec, "tolerations")):
            steps.append(PatchOperation("add", "/spec/tolerations", self.tolerations))
        else:
            steps += [PatchOperation("add", "/spec/tolerations/-", entry) for entry in self.tolerations]
        if self.node_selector is not None:
            steps.append(PatchOperation("add", "/spec/nodeSelector", self.node_selector))
        if self.affinity is not None:
            steps.append(PatchOperation("add", "/spec/affinity", self.affinity))
        return tuple(steps)

    def added_to(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The spec with them."""
        found = dict(spec)
        if self.tolerations:
            found["tolerations"] = [*sequence(spec.get("tolerations")), *self.tolerations]
        if self.node_selector is not None:
            found["nodeSelector"] = self.node_selector
        if self.affinity is not None:
            found["affinity"] = self.affinity
        return found


def tolerate(pod: Mapping[str, Any], tolerations: Tolerations) -> Additions:
    """Only the native tolerations, for a cluster whose schedulers ask the extender: it keeps pods off nodes."""
    if look(pod, "metadata", "annotations", _MIRROR) is not None:
        return Additions()
    native = sequence(look(pod, "spec", "tolerations"))
    return Additions(tolerations=missing_natives(native, tolerations.extended, {}))


def additions(
    pod: Mapping[str, Any], demand: Demand, acting: ConcerningPolicies, published: Collection[str], gates: Gates
) -> Additions:
    """What ``pod``, an object of the API, lacks. A second call adds nothing.

    ``published`` are the labels of nodes whose versions are repeated as numbers.
    """
    if look(pod, "metadata", "annotations", _MIRROR) is not None:
        return Additions()
    wanted = restrictions(demand, acting.placing, published, gates)
    extended, native = demand.tolerations.extended, sequence(look(pod, "spec", "tolerations"))
    found = Additions()
    lacking: list[str] = []
    if not look(pod, "spec", "nodeName"):
        lacking = _place(found, pod, wanted, demand)
        found.warnings = wanted.warnings
    unguarded = without_guard(extended, acting.evicting)
    placed = {one.key for one in wanted.taints}
    refused = [key for key in unguarded if key not in placed]
    if refused:
        found.warnings.append(f"{_KEPT_OFF}: no policy sets placement for {_listed(refused)}")
    withheld = {**dict.fromkeys(refused, (Effect.NO_SCHEDULE,)), **dict.fromkeys(lacking, REQUIRED_EFFECTS)}
    found.tolerations = missing_natives(native, extended, withheld)
    return found


def response(pod: Mapping[str, Any], found: Additions) -> AdmissionResponse:
    """The response with what a pod lacks."""
    return AdmissionResponse(warnings=tuple(found.warnings), patch=found.patch(look(pod, "spec")))


def _place(found: Additions, pod: Mapping[str, Any], wanted: Restrictions, demand: Demand) -> list[str]:
    """Add what keeps it off nodes. Returns the keys of taints by which nothing keeps it off.

    If something has to be written and cannot, no node is better than any node.
    """
    own = mapping(look(pod, "spec", "affinity"))
    merged, problem = merging.restrict(own, wanted.required)
    lets_itself_in = any(
        may_enter(key, effect, Tolerations(demand.tolerations.native))
        for key in wanted.keys
        for effect in REQUIRED_EFFECTS
    )
    if problem:
        keys = _listed(wanted.keys)
        effect = "no node is used" if demand.affinities or lets_itself_in else f"no node with a taint {keys} is used"
        wanted.warn("placement", [f"{problem}: {effect}"])
    if wanted.impossible or (problem and (demand.affinities or lets_itself_in)):
        selector = mapping(look(pod, "spec", "nodeSelector"))
        found.node_selector = None if NO_NODE.items() <= selector.items() else {**selector, **NO_NODE}
        return []
    if problem:
        return wanted.keys
    merged, problem = merging.prefer(merged, wanted.preferred)
    wanted.warn("placement", [problem] if problem else ())
    found.affinity = None if merged == own else merged
    return []


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _MAX_NAMED
    return ", ".join(keys[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
