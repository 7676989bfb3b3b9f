"""Reading of JSON in annotations, within bounds that no tenant can exceed."""

from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.fields.field_errors import FieldError

MAX_CHARACTERS = 65_536
MAX_FAULTS = 10
"""Maximum number of errors of one annotation that are kept. Users correct these first."""


def read_json(
    text: str, path: str, example: str, decode: Callable[[str], Any] = msgspec.json.decode
) -> tuple[Any, FieldError | None]:
    """Decode the annotation at ``path``. Return its value and no fault, or None and the fault."""
    if len(text) > MAX_CHARACTERS:
        return None, FieldError(path, text, f"has {len(text)} characters, at most {MAX_CHARACTERS} are allowed")
    try:
        return decode(text), None
    except msgspec.DecodeError as error:
        return None, FieldError(path, text, f"is not JSON: {error}", example)
    except RecursionError:
        return None, FieldError(path, text, "is nested too deeply", example)
    except UnicodeEncodeError:
        return None, FieldError(path, ascii(text), "is not valid Unicode", example)


def bounded(errors: list[FieldError], unexplained: int, path: str, number: int) -> tuple[FieldError, ...]:
    """Return the first ``errors``. The last one shows the number of all others, including the ``unexplained`` ones."""
    left_out = unexplained + len(errors) - MAX_FAULTS
    if left_out <= 0:
        return tuple(errors)
    return (*errors[: MAX_FAULTS - 1], FieldError(path, number, f"has {left_out + 1} more faults"))
