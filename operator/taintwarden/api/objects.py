"""Shared parts of all kinds: decoding an object that users write into a value for the engine."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from taintwarden.api.decode import decode
from taintwarden.api.field_errors import InvalidObject
from taintwarden.api.types import AttributeRequirementSpec, LabelSelectorSpec, RequirementSpec
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator

T = TypeVar("T")


def read_object(obj: Mapping[str, Any], wanted: type[T], kind: str) -> T:
    """``obj``, a whole object as the API server or a YAML parser gives it, as ``wanted``.

    Raises:
        InvalidObject: with every fault of the object.

    """
    read, errors = decode(obj, wanted)
    if read is None:
        raise InvalidObject(kind, _name(obj), errors)
    return read


def label_selector(spec: LabelSelectorSpec) -> LabelSelector:
    """``matchLabels`` and ``matchExpressions`` in one."""
    return requirements(spec.match_labels, spec.match_expressions)


def requirements(
    equal: Mapping[str, str], expressions: Iterable[RequirementSpec | AttributeRequirementSpec]
) -> LabelSelector:
    """The same of labels or attributes: those that have to equal a value, and the others."""
    first = tuple(Requirement(key, SelectorOperator.IN, (value,)) for key, value in sorted(equal.items()))
    return LabelSelector(first + tuple(Requirement(one.key, one.operator, one.values) for one in expressions))


def _name(obj: object) -> str:
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""
