"""The pod annotation ``taintwarden.io/tolerations``: extended tolerations, entry by entry."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from taintwarden.api.annotations import MAX_FAULTS, bounded, read_json
from taintwarden.api.decode import MAX_INT64, decode
from taintwarden.engine.model import Effect, Int64, Toleration
from taintwarden.engine.operators import ROWS, Operator
from taintwarden.engine.policy import ValueType
from taintwarden.fields import names
from taintwarden.fields.field_errors import FieldError, forbidden, too_many
from taintwarden.fields.spec import LabelValue, Spec, checked

TOLERATIONS_ANNOTATION = "taintwarden.io/tolerations"
PATH = f"metadata.annotations[{TOLERATIONS_ANNOTATION}]"
MAX_TOLERATIONS = 100
MAX_FIELDS = 64
"""Maximum number of fields of an entry that are searched for nulls. One with more has unknown fields in any case."""
MAX_VALUE_LENGTH = 256
"""Maximum length of a value. Values of taints have at most 63 characters."""
MAX_VALUES = 32
"""Maximum number of values of one toleration."""

# Kubernetes writes and reads an empty value of these as "not set".
_MAY_BE_EMPTY = ("key", "operator", "value", "effect")
_EXAMPLE = 'write for example [{"key": "sla", "operator": "Gt", "value": "950", "effect": "NoExecute"}]'


class ExtendedToleration(Spec, frozen=True):
    """A toleration outside ``spec.tolerations``, where the API server would reject its operator."""

    key: Annotated[str, checked(names.check_key, max_length=names.MAX_KEY_LENGTH)] | None = None
    operator: Operator = Operator.EQUAL
    value: Annotated[str, Meta(max_length=MAX_VALUE_LENGTH)] = ""
    values: Annotated[tuple[LabelValue, ...], Meta(max_length=MAX_VALUES)] = ()
    effect: Effect | None = None
    toleration_seconds: Int64 | None = None
    violation_grace_seconds: Annotated[int, Meta(ge=0, le=MAX_INT64)] | None = None


def check_toleration(read: ExtendedToleration) -> Iterator[FieldError]:
    """Check the fields against each other. ``tolerationSeconds`` is valid with any effect: policies act on all."""
    operator, row = read.operator, ROWS[read.operator]
    if read.key is None and row.family.takes:
        yield FieldError("key", UNSET, f"must be specified when operator is {operator}", "only Exists may omit it")
    yield from _check_values(read)
    if read.violation_grace_seconds is not None and not row.is_comparison:
        reason = f"may not be specified when operator is {operator}"
        yield forbidden("violationGraceSeconds", reason, "use it with a comparison")


def parse_tolerations(text: str) -> tuple[tuple[Toleration, ...], tuple[FieldError, ...]]:
    """Return the valid entries of the annotation, in order, and the faults of the others.

    An invalid entry counts as absent and invalidates no other. Equal entries are not a fault: the first match decides.
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
        errors[MAX_FAULTS - 1 :] = [too_many(PATH, number, MAX_TOLERATIONS, "those after the limit count as absent")]
        unexplained = 0
    return tuple(tolerations), bounded(errors, unexplained, PATH, number)


def _valid(given: object) -> ExtendedToleration | None:
    """Return the entry if it is valid. Most are, and this takes a twentieth of the time for finding faults."""
    try:
        read = msgspec.convert(given, ExtendedToleration)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    is_valid = (read.key is None or names.is_key(read.key)) and _values_fit(read) and not any(check_toleration(read))
    return read if is_valid else None


def _faults(given: object, path: str) -> tuple[FieldError, ...]:
    """Return the faults of an invalid entry."""
    read, found = decode(given, ExtendedToleration, path)
    return found if read is None else tuple(error.below(path) for error in check_toleration(read))


_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])


def _read(text: str) -> tuple[list[object], int, FieldError | None]:
    """Return the entries that count, the number of all entries, and a fault or None."""
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
    """Return the number of entries of a list, and the list without those beyond the maximum, which are not decoded."""
    try:
        raw = _ENTRIES.decode(text)
    except msgspec.ValidationError:  # not a list: decoding the whole text reports that
        return 0, text
    if len(raw) <= MAX_TOLERATIONS:
        return len(raw), text
    return len(raw), f"[{b','.join(map(bytes, raw[:MAX_TOLERATIONS])).decode()}]"


def _given(entry: object) -> object:
    """Return the set fields of an entry: no nulls, no empty texts, and 30 for the JSON number 30.0."""
    if not isinstance(entry, dict) or len(entry) > MAX_FIELDS:
        return entry
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in entry.items()
        if value is not None and not (value == "" and name in _MAY_BE_EMPTY)
    }


def toleration(read: ExtendedToleration) -> Toleration:
    """Convert the toleration into that of the engine."""
    return Toleration(
        key=read.key or "",
        operator=read.operator,
        value=read.value,
        effect=read.effect or "",
        toleration_seconds=read.toleration_seconds,
        violation_grace_seconds=read.violation_grace_seconds,
        values=read.values,
    )


def _values_fit(read: ExtendedToleration) -> bool:
    """Return True if the operator can compare with the values of the toleration."""
    family = ROWS[read.operator].family
    match family.takes:
        case "values":
            return bool(read.values) and not read.value and all(map(names.is_label_value, read.values))
        case "value" if family.value_type is ValueType.STRING:
            return not read.values and names.is_label_value(read.value)
        case "value":
            return not read.values and family.parse(read.value) is not None
        case _:
            return not read.value and not read.values


def _check_values(read: ExtendedToleration) -> Iterator[FieldError]:
    if _values_fit(read):
        return
    operator, family = read.operator, ROWS[read.operator].family
    if read.values and family.takes != "values":
        remedy = "write one value" if family.takes else "remove it, or use In or NotIn"
        yield FieldError("values", list(read.values), f"must be empty when operator is {operator}", remedy)
    if read.value and family.takes != "value":
        remedy = "write a list: values" if family.takes else "remove it, or use another operator"
        yield FieldError("value", read.value, f"must be empty when operator is {operator}", remedy)
    if family.takes == "values" and not read.values:
        reason = f"must be specified when operator is {operator}"
        yield FieldError("values", UNSET, reason, f"write for example [{family.example}]")
    if family.takes == "value" and family.value_type is ValueType.STRING:
        yield from (error.below("value") for error in names.check_label_value(read.value))
    elif family.takes == "value" and (fault := family.explain(read.value)) is not None:
        yield FieldError("value", read.value, fault)
