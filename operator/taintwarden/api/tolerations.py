"""The pod annotation ``taintwarden.io/tolerations``: extended tolerations, entry by entry."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from taintwarden.api import names
from taintwarden.api.decode import decode
from taintwarden.api.errors import FieldError
from taintwarden.api.types import Spec, checked
from taintwarden.engine.matching.numeric import explain_integer
from taintwarden.engine.matching.versions import parse_version
from taintwarden.engine.model import (
    COMPARISON_OPERATORS,
    NUMERIC_OPERATORS,
    Effect,
    Operator,
    Toleration,
)

TOLERATIONS_ANNOTATION = "taintwarden.io/tolerations"
PATH = f"metadata.annotations[{TOLERATIONS_ANNOTATION}]"
MAX_TOLERATIONS = 100
MAX_CHARACTERS = 65_536
MAX_VALUE_LENGTH = 256
"""Taints have at most 63 characters, so nothing longer is meant."""

# Kubernetes writes and reads these empty for "not given".
_MAY_BE_EMPTY = ("key", "operator", "value", "effect")
_EXAMPLE = 'write for example [{"key": "sla", "operator": "Gt", "value": "950", "effect": "NoExecute"}]'


class ExtendedToleration(Spec, frozen=True):
    """A toleration as users write it outside ``spec.tolerations``, where the API server would refuse its operator."""

    key: Annotated[str, checked(names.check_key, max_length=names.MAX_KEY_LENGTH)] | None = None
    operator: Operator = Operator.EQUAL
    value: Annotated[str, Meta(max_length=MAX_VALUE_LENGTH)] = ""
    effect: Effect | None = None
    toleration_seconds: int | None = None
    violation_grace_seconds: Annotated[int, Meta(ge=0)] | None = None


def check_toleration(read: ExtendedToleration) -> Iterator[FieldError]:
    """What the fields ask of each other. ``tolerationSeconds`` goes with any effect: policies may act on all three."""
    operator = read.operator
    if read.key is None and operator != Operator.EXISTS:
        yield FieldError("key", UNSET, f"{operator} needs a key", "without a key only Exists is allowed")
    yield from (error.below("value") for error in _check_value(operator, read.value))
    if read.violation_grace_seconds is not None and operator not in COMPARISON_OPERATORS:
        yield FieldError(
            "violationGraceSeconds",
            read.violation_grace_seconds,
            f"has no effect with {operator}",
            "use it with a comparison",
        )


def parse_tolerations(text: str) -> tuple[tuple[Toleration, ...], tuple[FieldError, ...]]:
    """The valid entries of the annotation, in order, and the faults of the others.

    An invalid entry counts as absent and costs no other entry. Two equal entries are no fault: the first match decides.
    """
    entries, fault = _read(text)
    if fault is not None:
        return (), (fault,)
    tolerations: list[Toleration] = []
    errors: list[FieldError] = []
    for index, entry in enumerate(entries[:MAX_TOLERATIONS]):
        read, found = decode(_without_empty(entry), ExtendedToleration, f"{PATH}[{index}]")
        found += () if read is None else tuple(error.below(f"{PATH}[{index}]") for error in check_toleration(read))
        errors.extend(found)
        if read is not None and not found:
            tolerations.append(toleration(read))
    if len(entries) > MAX_TOLERATIONS:
        reason = f"has {len(entries)} items, at most {MAX_TOLERATIONS} are allowed"
        errors.append(FieldError(PATH, len(entries), reason, "those after the limit count as absent"))
    return tuple(tolerations), tuple(errors)


def _read(text: str) -> tuple[list[object], FieldError | None]:
    if len(text) > MAX_CHARACTERS:
        return [], FieldError(PATH, text, f"has {len(text)} characters, at most {MAX_CHARACTERS} are allowed")
    try:
        entries = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return [], FieldError(PATH, text, f"is not JSON: {error}", _EXAMPLE)
    except RecursionError:
        return [], FieldError(PATH, text, "is nested too deeply", _EXAMPLE)
    except UnicodeEncodeError:
        return [], FieldError(PATH, ascii(text), "is not valid Unicode", _EXAMPLE)
    if not isinstance(entries, list):
        return [], FieldError(PATH, entries, "must be a JSON list of tolerations", _EXAMPLE)
    return entries, None


def _without_empty(entry: object) -> object:
    if not isinstance(entry, Mapping):
        return entry
    return {name: value for name, value in entry.items() if not (name in _MAY_BE_EMPTY and value == "")}


def toleration(read: ExtendedToleration) -> Toleration:
    """What was read, as the engine has it."""
    return Toleration(
        key=read.key or "",
        operator=read.operator,
        value=read.value,
        effect=read.effect or "",
        toleration_seconds=read.toleration_seconds,
        violation_grace_seconds=read.violation_grace_seconds,
    )


def _check_value(operator: Operator, value: str) -> Iterator[FieldError]:
    if operator == Operator.EXISTS and value:
        yield FieldError("", value, "Exists takes no value", "remove it, or use another operator")
    elif operator == Operator.EQUAL:
        yield from names.check_label_value(value)
    elif operator in COMPARISON_OPERATORS:
        fault = explain_integer(value) if operator in NUMERIC_OPERATORS else explain_version(value)
        if fault:
            yield FieldError("", value, fault)


def explain_version(text: str) -> str | None:
    """Why ``text`` is no version and what to write instead; None where it is one."""
    if parse_version(text) is not None:
        return None
    if not text:
        return "a version is required, for example 1.28.0"
    if "://" in text and parse_version(bare := text.split("://", 1)[1]) is not None:
        return f"a version has no scheme: write {bare}"
    if parse_version(bare := text.lstrip("vV=^~<> ")) is not None:
        return f"only a lower-case v may stand in front: write {bare}"
    if short := re.fullmatch(r"v?([0-9]+)(\.[0-9]+)?([-+].+)", text):
        return f"a pre-release or build needs all three numbers: write {short[1]}{short[2] or '.0'}.0{short[3]}"
    return "is not a version: numbers as in 1.28.0, then optionally a pre-release (-rc.1) and a build (+5)"
