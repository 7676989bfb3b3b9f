"""What the template of a DaemonSet gets before it is stored, in a namespace with injection.

The controller of a DaemonSet reads the template, never the pods, when it decides on which nodes there should be a pod:
native tolerations and node affinity that pods get later are too late. What was added is recorded in an annotation of
the DaemonSet, so that it is made again from what the author wrote when the template changes.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from taintwarden.placement.admission.checking import look, mapping
from taintwarden.placement.admission.injection import Additions
from taintwarden.placement.admission.own_objects import opts_out
from taintwarden.placement.admission.response import AdmissionResponse, PatchOperation

RECORD_ANNOTATION = "taintwarden.io/completed-template"
MAX_RECORD_BYTES = 65_536
"""Of the 262,144 that all annotations of an object may have."""
_FIELDS = ("tolerations", "affinity", "nodeSelector")
_SPEC = "/spec/template/spec"
_ANNOTATIONS = "/metadata/annotations"
Json = Mapping[str, Any]


class _Change(msgspec.Struct, omit_defaults=True):
    """A field of the template's spec: what its author wrote, and a digest of what it became."""

    before: Any = None
    after: str = ""


def complete_template(
    workload: Json, old: Json | None, additions_to: Callable[[dict[str, Any]], Additions]
) -> AdmissionResponse:
    """The additions to the template of a DaemonSet, which replaces ``old`` if there is one.

    ``additions_to``: what a pod of it would get. A template that did not change stays as it is: scaling or labelling a
    workload must not replace its pods.
    """
    template = look(workload, "spec", "template")
    given = mapping(look(template, "spec"))
    if not given or (old is not None and template == look(old, "spec", "template")):
        return AdmissionResponse()
    written = _as_written(given, _record(workload))
    spec = {name: value for name, value in {**given, **written}.items() if name not in written or value is not None}
    found = Additions() if opts_out(template) else additions_to(_pod(workload, template, spec))
    completed = found.added_to(spec)
    changes = {
        name: _Change(spec.get(name), _digest(completed[name]))
        for name in _FIELDS
        if completed.get(name) != spec.get(name)
    }
    text = msgspec.json.encode(changes).decode() if changes else ""
    if len(text) > MAX_RECORD_BYTES:
        told = f"the template is left as it is: what is added to it would take {len(text)} bytes of an annotation"
        return AdmissionResponse(warnings=(*found.warnings, told))
    steps = [step for name in _FIELDS for step in _steps(f"{_SPEC}/{name}", given.get(name), completed.get(name))]
    return AdmissionResponse(warnings=tuple(found.warnings), patch=(*steps, *_recorded(workload, text)))


def _record(workload: Json) -> dict[str, _Change]:
    text = look(workload, "metadata", "annotations", RECORD_ANNOTATION)
    try:
        return msgspec.json.decode(text, type=dict[str, _Change]) if isinstance(text, str) else {}
    except msgspec.DecodeError:  # edited: what is in the template counts as written by its author
        return {}


def _as_written(given: Json, record: Mapping[str, _Change]) -> dict[str, Any]:
    """The fields as their author wrote them, where they are still what they became."""
    return {
        name: change.before
        for name, change in record.items()
        if name in _FIELDS and name in given and _digest(given[name]) == change.after
    }


def _pod(workload: Json, template: object, spec: Json) -> dict[str, Any]:
    """A pod that would be created from the template."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True}
    metadata = mapping(look(template, "metadata"))
    more = {"namespace": look(workload, "metadata", "namespace") or "", "ownerReferences": [owner]}
    return {"metadata": {**metadata, **more}, "spec": dict(spec)}


def _steps(path: str, before: object, after: object) -> list[PatchOperation]:
    if before == after:
        return []
    return [PatchOperation("remove", path)] if after is None else [PatchOperation("add", path, after)]


def _recorded(workload: Json, text: str) -> list[PatchOperation]:
    annotations = mapping(look(workload, "metadata", "annotations"))
    path = f"{_ANNOTATIONS}/{RECORD_ANNOTATION.replace('/', '~1')}"
    if not text:
        return [PatchOperation("remove", path)] if RECORD_ANNOTATION in annotations else []
    if annotations.get(RECORD_ANNOTATION) == text:
        return []
    if not annotations:
        return [PatchOperation("add", _ANNOTATIONS, {RECORD_ANNOTATION: text})]
    return [PatchOperation("add", path, text)]


def _digest(value: object) -> str:
    return blake2b(msgspec.json.encode(value, order="sorted"), digest_size=16).hexdigest()
