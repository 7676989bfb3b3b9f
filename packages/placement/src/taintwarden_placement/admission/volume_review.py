"""What a PersistentVolume gets before it is stored: node affinity without versions, for that of its annotation.

The scheduler evaluates ``spec.nodeAffinity`` of a volume for every pod that uses its claim, also later.
"""

from collections.abc import Collection, Mapping
from typing import Any

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION, parse_volume_affinity
from taintwarden.engine.affinity import NodeOperator, NodeRequirement
from taintwarden.engine.model import Gates
from taintwarden_placement.admission.checking import look, mapping
from taintwarden_placement.admission.injection import NO_NODE
from taintwarden_placement.admission.merged_affinity import is_selector, merge
from taintwarden_placement.admission.response import AdmissionResponse, PatchOperation
from taintwarden_placement.affinity import Alternatives, native_affinity

_NOWHERE = (tuple(NodeRequirement(key, NodeOperator.IN, (value,)) for key, value in NO_NODE.items()),)


def inject_volume(
    volume: Mapping[str, Any], old: Mapping[str, Any] | None, published: Collection[str], gates: Gates
) -> AdmissionResponse:
    """The additions to ``volume``, which replaces ``old`` if there is one. Node affinity that is stored never changes.

    ``published`` are the labels of nodes whose versions are repeated as numbers.
    """
    text = look(volume, "metadata", "annotations", AFFINITY_ANNOTATION)
    if not isinstance(text, str):
        return AdmissionResponse()
    affinity, faults = parse_volume_affinity(text)
    if faults:  # refused where its author can correct it
        return AdmissionResponse()
    native = native_affinity(affinity, published, gates)
    own = look(volume, "spec", "nodeAffinity", "required")
    if not is_selector(own):  # no API server asks about such a volume, and it would store none
        return AdmissionResponse()
    merged, problem = merge(
        mapping(own) if own else None, [Alternatives(AFFINITY_ANNOTATION, terms=native.required or _NOWHERE)]
    )
    told = [*native.faults, *([problem] if problem else [])]
    patch: tuple[PatchOperation, ...] = ()
    if merged != own and old is not None and look(old, "spec", "nodeAffinity") is not None:
        told.append("Kubernetes does not change the node affinity of a volume: create it again")
    elif merged != own:
        told += [] if native.required else ["no node can match it, so pods that use the volume stay Pending"]
        patch = (PatchOperation("add", "/spec/nodeAffinity", {"required": merged}),)
    return AdmissionResponse(
        warnings=tuple(f"node affinity of {AFFINITY_ANNOTATION}: {one}" for one in told), patch=patch
    )
