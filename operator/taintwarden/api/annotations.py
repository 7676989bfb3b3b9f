"""JSON in annotations: read within bounds, whatever a tenant writes."""

from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.fields.field_errors import FieldError, too_long

MAX_CHARACTERS = 65_536
MAX_FAULTS = 10
"""Maximum number of errors of one annotation that are kept; users correct the first ones first."""


def read_json(
    text: str, path: str, example: str, decode: Callable[[str], Any] = msgspec.json.decode
) -> tuple[Any, FieldError | None]:
    """What the annotation at ``path`` holds, and no fault; or None and why it cannot be read."""
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


def bounded(errors: list[FieldError], unexplained: int, path: str, number: int) -> tuple[FieldError, ...]:
    """The first of ``errors``; the last one says how many more there are, with the ``unexplained`` ones."""
    left_out = unexplained + len(errors) - MAX_FAULTS
    if left_out <= 0:
        return tuple(errors)
    return (*errors[: MAX_FAULTS - 1], FieldError(path, number, f"has {left_out + 1} more faults"))
