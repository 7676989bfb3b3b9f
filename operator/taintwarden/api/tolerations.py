"""The pod annotation ``taintwarden.io/tolerations``: extended tolerations, entry by entry."""

import re
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from taintwarden.api import names
from taintwarden.api.annotations import MAX_FAULTS, bounded, read_json
from taintwarden.api.decode import MAX_INT64, MIN_INT64, decode
from taintwarden.api.errors import FieldError
from taintwarden.api.types import Spec, checked
from taintwarden.engine.matching.numeric import explain_integer, parse_integer
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
MAX_FIELDS = 64
"""An entry with more fields has unknown ones, whatever they hold."""
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
    entries, number, fault = _read(text)
    if fault is not None:
        return (), (fault,)
    tolerations: list[Toleration] = []
    errors: list[FieldError] = []
    unexplained = 0
    for index, entry in enumerate(entries):
        given = _given(entry)
        read = _valid(given)
        if read is not None:
            tolerations.append(toleration(read))
        elif len(errors) < MAX_FAULTS:
            errors.extend(_faults(given, f"{PATH}[{index}]"))
        else:
            unexplained += 1
    if number > MAX_TOLERATIONS:
        reason = f"has {number} items, at most {MAX_TOLERATIONS} are allowed"
        errors[MAX_FAULTS - 1 :] = [FieldError(PATH, number, reason, "those after the limit count as absent")]
        unexplained = 0
    return tuple(tolerations), bounded(errors, unexplained, PATH, number)


def _valid(given: object) -> ExtendedToleration | None:
    """The entry, if nothing is wrong with it: most are valid, and this takes a twentieth of finding out what is."""
    try:
        read = msgspec.convert(given, ExtendedToleration)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    is_valid = (read.key is None or names.is_key(read.key)) and _fits_together(read)
    return read if is_valid else None


def _fits_together(read: ExtendedToleration) -> bool:
    return (
        (read.key is not None or read.operator == Operator.EXISTS)
        and (read.violation_grace_seconds is None or read.operator in COMPARISON_OPERATORS)
        and MIN_INT64 <= (read.toleration_seconds or 0) <= MAX_INT64
        and (read.violation_grace_seconds or 0) <= MAX_INT64
        and _takes(read.operator, read.value)
    )


def _faults(given: object, path: str) -> tuple[FieldError, ...]:
    """What is wrong with an entry that is not valid."""
    read, found = decode(given, ExtendedToleration, path)
    return found if read is None else tuple(error.below(path) for error in check_toleration(read))


_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])


def _read(text: str) -> tuple[list[object], int, FieldError | None]:
    """The entries that count, and how many there are."""
    read, fault = read_json(text, PATH, _EXAMPLE, _entries)
    if fault is not None:
        return [], 0, fault
    entries, number = read
    if not isinstance(entries, list):
        return [], 0, FieldError(PATH, entries, "must be a JSON list of tolerations", _EXAMPLE)
    return entries, number, None


def _entries(text: str) -> tuple[object, int]:
    number, shortened = _shortened(text)
    return msgspec.json.decode(shortened), number


def _shortened(text: str) -> tuple[int, str]:
    """How many entries a list has, and the list without those that do not count: of these nothing is made."""
    try:
        raw = _ENTRIES.decode(text)
    except msgspec.ValidationError:  # not a list: decoding the whole text reports that
        return 0, text
    if len(raw) <= MAX_TOLERATIONS:
        return len(raw), text
    return len(raw), f"[{b','.join(map(bytes, raw[:MAX_TOLERATIONS])).decode()}]"


def _given(entry: object) -> object:
    """What an entry says: nothing where a field is null or empty, and 30 for the JSON number 30.0."""
    if not isinstance(entry, dict) or len(entry) > MAX_FIELDS:
        return entry
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in entry.items()
        if value is not None and not (value == "" and name in _MAY_BE_EMPTY)
    }


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


def _takes(operator: Operator, value: str) -> bool:
    """Whether an operator can compare with this value."""
    if operator == Operator.EXISTS:
        return not value
    if operator in NUMERIC_OPERATORS:
        return parse_integer(value) is not None
    if operator in COMPARISON_OPERATORS:
        return parse_version(value) is not None
    return names.is_label_value(value)


def _check_value(operator: Operator, value: str) -> Iterator[FieldError]:
    if _takes(operator, value):
        return
    if operator == Operator.EXISTS:
        yield FieldError("", value, "Exists takes no value", "remove it, or use another operator")
    elif operator == Operator.EQUAL:
        yield from names.check_label_value(value)
    else:
        fault = explain_integer(value) if operator in NUMERIC_OPERATORS else explain_version(value)
        yield FieldError("", value, fault or "")


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
