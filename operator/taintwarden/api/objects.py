"""Functions shared by all kinds: convert an object that a user writes into a value of the engine."""

from collections.abc import Mapping
from typing import Any, TypeVar

from taintwarden.api.decode import decode
from taintwarden.api.types import LabelSelectorSpec
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.fields.field_errors import InvalidObject

T = TypeVar("T")


def read_object(obj: Mapping[str, Any], wanted: type[T], kind: str) -> T:
    """Decode a whole object, as the API server or a YAML parser returns it, into the type ``wanted``.

    Raises:
        InvalidObject: the object is invalid. The exception lists all of its faults.

    """
    read, errors = decode(obj, wanted)
    if read is None:
        raise InvalidObject(kind, _name(obj), errors)
    return read


def label_selector(spec: LabelSelectorSpec) -> LabelSelector:
    """Join ``matchLabels`` and ``matchExpressions`` into one selector."""
    equal = [Requirement(key, SelectorOperator.IN, (value,)) for key, value in sorted(spec.match_labels.items())]
    return LabelSelector(
        (*equal, *(Requirement(part.key, part.operator, part.values) for part in spec.match_expressions))
    )


def _name(obj: object) -> str:
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""
