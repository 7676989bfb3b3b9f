"""Parts of structs that users write: their base, fields with bounds, and checks that a type cannot express."""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from taintwarden.fields import names
from taintwarden.fields.field_errors import FieldError, duplicate

MAX_INT32 = 2**31 - 1
MAX_RATE = 10_000
"""Rate that means no limit."""

Check = Callable[[Any], Iterable[FieldError]]


def checked(check: Check, **bounds: Any) -> Meta:
    """Constrain a field by a function that yields errors with paths relative to that field."""
    return Meta(extra={"check": check}, **bounds)


class Spec(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all structs that users write: camelCase names, no unknown fields."""


Seconds = Annotated[int, Meta(ge=0, le=MAX_INT32)]
Rate = Annotated[float, Meta(ge=0.00001, le=MAX_RATE)]
"""Pods per second."""
LabelKey = Annotated[str, checked(names.check_key, max_length=names.MAX_KEY_LENGTH)]
LabelValue = Annotated[str, checked(names.check_label_value, max_length=names.MAX_NAME_LENGTH)]


def no_duplicates(values: tuple[object, ...]) -> Iterator[FieldError]:
    """Yield an error for each value that repeats an earlier one of the list."""
    for index, value in enumerate(values):
        first = values.index(value)
        if first != index:
            yield duplicate(f"[{index}]", value, f"is listed in [{first}]", "remove it")
