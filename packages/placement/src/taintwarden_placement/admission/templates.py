"""What the template of a DaemonSet gets before it is stored, in a namespace with injection.

The controller of a DaemonSet reads the template, never the pods, when it decides on which nodes there should be a pod:
native tolerations and node affinity that pods get later are too late. What was added is recorded in an annotation of
the DaemonSet, so that it is made again from what the author wrote when the template changes. A rollback brings back an
earlier template with what was added to it then, so the record has the versions before, too.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from taintwarden.kube.errors import NOT_JSON
from taintwarden_placement.admission.checking import look, mapping
from taintwarden_placement.admission.injection import Additions
from taintwarden_placement.admission.merged_affinity import is_affinity
from taintwarden_placement.admission.own_objects import opts_out
from taintwarden_placement.admission.response import AdmissionResponse, PatchOperation

RECORD_ANNOTATION = "taintwarden.io/completed-template"
MAX_RECORD_BYTES = 65_536
"""Of the 262,144 that all annotations of an object may have."""
MAX_VERSIONS = 11
"""Of a template that are remembered: the present one, and as many as Kubernetes keeps by default for a rollback."""
_FIELDS = ("tolerations", "affinity", "nodeSelector")
_SPEC = "/spec/template/spec"
_ANNOTATIONS = "/metadata/annotations"
Json = Mapping[str, Any]


class _Change(msgspec.Struct, omit_defaults=True, frozen=True):
    """A field of the template's spec: what its author wrote, and a digest of what it became."""

    before: Any = None
    after: str = ""


class _Changes(_Change, omit_defaults=True, frozen=True):
    """The last change of a field, and those of earlier versions of the template, the latest first."""

    earlier: tuple[_Change, ...] = ()


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
    known = _known(workload, old)
    written = _as_written(given, known)
    spec = {name: value for name, value in {**given, **written}.items() if name not in written or value is not None}
    found = Additions() if opts_out(template) else additions_to(_pod(workload, template, spec))
    completed = found.added_to(spec)
    made = {
        name: _Change(spec.get(name), _digest(completed[name]))
        for name in _FIELDS
        if completed.get(name) != spec.get(name)
    }
    text = _text(made, known)
    if len(text) > MAX_RECORD_BYTES:
        told = f"the template is left as it is: what is added to it would take {len(text)} bytes of an annotation"
        return AdmissionResponse(warnings=(*found.warnings, told))
    steps = [step for name in _FIELDS for step in _steps(f"{_SPEC}/{name}", given.get(name), completed.get(name))]
    return AdmissionResponse(warnings=tuple(found.warnings), patch=(*steps, *_recorded(workload, text)))


def _known(workload: Json, old: Json | None) -> dict[str, list[_Change]]:
    """What became of the fields of this version and of earlier ones, the latest first."""
    known: dict[str, list[_Change]] = {}
    for record in (_record(workload), _record(old or {})):  # a manifest that is applied again has none
        for name, changes in record.items():
            known.setdefault(name, []).extend((_Change(changes.before, changes.after), *changes.earlier))
    return known


def _record(workload: Json) -> dict[str, _Changes]:
    text = look(workload, "metadata", "annotations", RECORD_ANNOTATION)
    try:
        return msgspec.json.decode(text, type=dict[str, _Changes]) if isinstance(text, str) else {}
    except NOT_JSON:  # edited: what is in the template counts as written by its author
        return {}


def _as_written(given: Json, known: Mapping[str, Sequence[_Change]]) -> dict[str, Any]:
    """The fields as their author wrote them, where they are still what they became."""
    found: dict[str, Any] = {}
    for name in _FIELDS:
        if name not in given or name not in known:
            continue
        digest = _digest(given[name])
        changes = (one for one in known[name] if one.after == digest and _may_be(name, one.before))
        if change := next(changes, None):
            found[name] = change.before
    return found


def _may_be(name: str, value: object) -> bool:
    """Whether a field may have been that. A record can be edited, and the API server refuses what has another type."""
    if value is None:
        return True
    if name == "tolerations":
        return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)
    return isinstance(value, Mapping) and (name != "affinity" or is_affinity(value))


def _text(made: Mapping[str, _Change], known: Mapping[str, Sequence[_Change]]) -> str:
    """The record of these changes, and of as many of those before as it may hold."""
    for versions in range(MAX_VERSIONS, -1, -1):
        record: dict[str, _Changes] = {}
        for name in _FIELDS:
            changes = ([made[name]] if name in made else []) + list(known.get(name, ()))
            latest = {one.after: one for one in reversed(changes)}  # of the same result the latest
            kept = list(dict.fromkeys(one.after for one in changes))[: max(versions, name in made)]
            if kept:
                first, *earlier = (latest[after] for after in kept)
                record[name] = _Changes(first.before, first.after, tuple(earlier))
        text = msgspec.json.encode(record).decode() if record else ""
        if len(text) <= MAX_RECORD_BYTES:
            break
    return text


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
