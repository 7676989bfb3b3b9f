"""The pod annotation ``taintwarden.io/tolerations``: extended tolerations, entry by entry."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from taintwarden.api.annotations import MAX_FAULTS, bounded, read_json
from taintwarden.api.decode import MAX_INT64, decode
from taintwarden.engine.model import Effect, Int64, Toleration, ValueType
from taintwarden.engine.operators import ROWS, Operator
from taintwarden.fields import names
from taintwarden.fields.field_errors import FieldError, forbidden, too_many
from taintwarden.fields.spec import LabelValue, Spec, checked

TOLERATIONS_ANNOTATION = "taintwarden.io/tolerations"
PATH = f"metadata.annotations[{TOLERATIONS_ANNOTATION}]"
MAX_TOLERATIONS = 100
MAX_FIELDS = 64
"""An entry with more fields has unknown ones, whatever they hold."""
MAX_VALUE_LENGTH = 256
"""Taints have at most 63 characters, so nothing longer is meant."""
MAX_VALUES = 32
"""Of one toleration."""

# Kubernetes writes and reads these empty for "not given".
_MAY_BE_EMPTY = ("key", "operator", "value", "effect")
_EXAMPLE = 'write for example [{"key": "sla", "operator": "Gt", "value": "950", "effect": "NoExecute"}]'


class ExtendedToleration(Spec, frozen=True):
    """A toleration as users write it outside ``spec.tolerations``, where the API server would refuse its operator."""

    key: Annotated[str, checked(names.check_key, max_length=names.MAX_KEY_LENGTH)] | None = None
    operator: Operator = Operator.EQUAL
    value: Annotated[str, Meta(max_length=MAX_VALUE_LENGTH)] = ""
    values: Annotated[tuple[LabelValue, ...], Meta(max_length=MAX_VALUES)] = ()
    effect: Effect | None = None
    toleration_seconds: Int64 | None = None
    violation_grace_seconds: Annotated[int, Meta(ge=0, le=MAX_INT64)] | None = None


def check_toleration(read: ExtendedToleration) -> Iterator[FieldError]:
    """What the fields ask of each other. ``tolerationSeconds`` goes with any effect: policies may act on all three."""
    operator, row = read.operator, ROWS[read.operator]
    if read.key is None and row.family.takes:
        yield FieldError("key", UNSET, f"must be specified when operator is {operator}", "only Exists may omit it")
    yield from _check_values(read)
    if read.violation_grace_seconds is not None and not row.is_comparison:
        reason = f"may not be specified when operator is {operator}"
        yield forbidden("violationGraceSeconds", reason, "use it with a comparison")


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
        errors[MAX_FAULTS - 1 :] = [too_many(PATH, number, MAX_TOLERATIONS, "those after the limit count as absent")]
        unexplained = 0
    return tuple(tolerations), bounded(errors, unexplained, PATH, number)


def _valid(given: object) -> ExtendedToleration | None:
    """The entry, if nothing is wrong with it: most are valid, and this takes a twentieth of finding out what is."""
    try:
        read = msgspec.convert(given, ExtendedToleration)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    is_valid = (read.key is None or names.is_key(read.key)) and _takes(read) and not any(check_toleration(read))
    return read if is_valid else None


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
        values=read.values,
    )


def _takes(read: ExtendedToleration) -> bool:
    """Whether an operator can compare with what the toleration names."""
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
    if _takes(read):
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
