"""Additions to the template of a DaemonSet before it is stored, in a namespace with injection.

The DaemonSet controller selects nodes by the template. Additions to the pods would come too late. An annotation of the
template records the additions, so that each later change computes them again from what the author wrote.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from taintwarden.kube.errors import NOT_JSON
from taintwarden_placement.admission.checking import mapping, value_at
from taintwarden_placement.admission.injection import Additions
from taintwarden_placement.admission.own_objects import opts_out
from taintwarden_placement.admission.pod_review import RECORD_ANNOTATION
from taintwarden_placement.admission.response import AdmissionResponse, PatchOperation

MAX_RECORD_BYTES = 65_536
"""Maximum size of the record. All annotations of an object may have 262,144 bytes together."""
_FIELDS = ("tolerations", "affinity", "nodeSelector")
Json = Mapping[str, Any]


class _Change(msgspec.Struct, omit_defaults=True, frozen=True):
    """A changed field of the template's spec: the value that its author wrote, and a digest of the new value."""

    before: Any = None
    after: str = ""


def complete_template(
    workload: Json, old: Json | None, additions_to: Callable[[dict[str, Any]], Additions]
) -> AdmissionResponse:
    """Return a response with the additions to a DaemonSet's template. The workload replaces ``old``, or is new (None).

    ``additions_to`` returns the additions to a pod. A template that did not change gets none, since labelling a
    workload must not replace its pods.
    """
    template = mapping(value_at(workload, "spec", "template"))
    if not mapping(template.get("spec")) or (old is not None and template == value_at(old, "spec", "template")):
        return AdmissionResponse()
    metadata, spec = mapping(template.get("metadata")), _as_written(template)
    found = Additions() if opts_out(template) else additions_to(_pod(workload, metadata, spec))
    record = {name: _Change(spec.get(name), _digest(value)) for name, value in found.fields.items()}
    text = msgspec.json.encode(record).decode()
    if len(text) > MAX_RECORD_BYTES:
        words = f"the template is left as it is: its additions take an annotation of {len(text)} bytes"
        return AdmissionResponse(warnings=(*found.warnings, words))
    annotations = mapping(metadata.get("annotations"))
    if record or RECORD_ANNOTATION in annotations:
        kept = {name: value for name, value in annotations.items() if name != RECORD_ANNOTATION}
        metadata["annotations"] = kept | ({RECORD_ANNOTATION: text} if record else {})
    completed = {**template, "metadata": metadata, "spec": spec | found.fields}
    patch = () if completed == template else (PatchOperation("add", "/spec/template", completed),)
    return AdmissionResponse(warnings=tuple(found.warnings), patch=patch)


def _as_written(template: Json) -> dict[str, Any]:
    """Return the spec without earlier additions. A field that was edited since counts as written by its author."""
    spec, record = mapping(template["spec"]), _record(template)
    for name in _FIELDS:
        change = record.get(name)
        if change is None or change.after != _digest(spec.get(name)):
            continue
        if change.before is None:
            del spec[name]
        else:
            spec[name] = change.before
    return spec


def _record(template: Json) -> dict[str, _Change]:
    text = value_at(template, "metadata", "annotations", RECORD_ANNOTATION)
    try:
        return msgspec.json.decode(text, type=dict[str, _Change]) if isinstance(text, str) else {}
    except NOT_JSON:  # the record was edited, so all fields count as written by the author
        return {}


def _pod(workload: Json, metadata: Json, spec: Json) -> dict[str, Any]:
    """Return a pod as the DaemonSet controller would create it from the template."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True}
    more = {"namespace": value_at(workload, "metadata", "namespace") or "", "ownerReferences": [owner]}
    return {"metadata": {**metadata, **more}, "spec": dict(spec)}


def _digest(value: object) -> str:
    return blake2b(msgspec.json.encode(value, order="sorted"), digest_size=16).hexdigest()
