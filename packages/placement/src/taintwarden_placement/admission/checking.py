"""Parts that all checks share: the severity of a fault, and access to JSON values of unknown shape."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum

from taintwarden.api.types import GROUP
from taintwarden.fields.field_errors import MAX_LISTED, FieldError


class FaultSeverity(StrEnum):
    """Severity of a fault. An error makes the object unusable; a warning marks what its author may not intend."""

    ERROR = "error"
    WARNING = "warning"


Faults = Iterator[tuple[FaultSeverity, FieldError]]


def annotation_path(name: str) -> str:
    """Return the path of an annotation in an object."""
    return f"metadata.annotations[{name}]"


def check_annotation_names(obj: object, known: Sequence[str]) -> Faults:
    """Warn about annotations of Taintwarden's group that are not in ``known``."""
    names = mapping(value_at(obj, "metadata", "annotations"))
    unknown = [name for name in names if name.startswith(f"{GROUP}/") and name not in known]
    if len(unknown) > MAX_LISTED:
        reason, remedy = f"has {len(unknown)} unknown annotations of {GROUP}", f"known here: {', '.join(known)}"
        yield FaultSeverity.WARNING, FieldError("metadata.annotations", unknown[0], reason, remedy)
        return
    for name in unknown:
        near = get_close_matches(name, known, n=1, cutoff=0.6)
        remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
        yield FaultSeverity.WARNING, FieldError(annotation_path(name), names[name], "unknown annotation", remedy)


def value_at(value: object, *names: str) -> object:
    """Return the value at a path of field names; None if it is absent."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def mapping(value: object) -> dict[str, object]:
    """Return a copy of ``value`` if it is a JSON object, else an empty one."""
    return {str(key): entry for key, entry in value.items()} if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[object]:
    """Return ``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def without(entry: object, *absent: object) -> object:
    """Return ``entry`` without the fields that have one of the ``absent`` values."""
    if not isinstance(entry, Mapping):
        return entry
    return {name: value for name, value in entry.items() if value not in absent}
