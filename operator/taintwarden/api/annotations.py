"""Reading of JSON in annotations, within bounds that no tenant can exceed."""

from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.fields.field_errors import FieldError, at_least, too_long

MAX_CHARACTERS = 65_536
MAX_FAULTS = 10
"""Maximum number of errors of one annotation that are kept. Users correct these first."""


def read_json(
    text: str, path: str, example: str, decode: Callable[[str], Any] = msgspec.json.decode
) -> tuple[Any, FieldError | None]:
    """Decode the annotation at ``path``. Return its value and no fault, or None and the fault."""
    if len(text) > MAX_CHARACTERS:
        return None, too_long(path, text, MAX_CHARACTERS)
    try:
        return decode(text), None
    except msgspec.DecodeError as error:
        return None, FieldError(path, text, f"must be JSON: {error}", example)
    except RecursionError:
        return None, FieldError(path, text, "must be nested less deeply", example)
    except UnicodeEncodeError:
        return None, FieldError(path, ascii(text), "must be valid Unicode", example)


def bounded(errors: list[FieldError], unexplained: int, path: str, value: int) -> tuple[FieldError, ...]:
    """Return at most ``MAX_FAULTS`` errors. The last one, with ``value``, counts those left out and ``unexplained``."""
    left_out = unexplained + len(errors) - MAX_FAULTS
    if left_out <= 0:
        return tuple(errors)
    return (
        *errors[: MAX_FAULTS - 1],
        FieldError(path, value, f"has {at_least(len(errors))}{left_out + 1} more faults"),
    )
