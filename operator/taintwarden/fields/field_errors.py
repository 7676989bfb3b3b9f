"""Faults of an object by field, in the format of the API server."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from taintwarden.fields.text import printable, shortened

MAX_SHOWN_CHARACTERS = 100
"""Maximum characters of a value that are shown."""
MAX_PATH_CHARACTERS = 400
"""Maximum characters of a path. Only the name of an unknown field can be cut: paths with keys of labels are shorter."""
MAX_REASON_CHARACTERS = 500
MAX_NAME_CHARACTERS = 317
"""Maximum characters of the name of an object, and of its kind with the group: the maximum of the API server."""
MAX_FOUND = 100
"""Number of errors of one object after which no other entry of a list is read. A tenant may make 10,000 of them."""
MAX_LISTED = 10
"""Maximum number of errors of one object that are listed in a message. Further ones are only counted."""


QUOTE = "put it in quotes"
"""Remedy for a scalar that has to be text."""


class ErrorType(StrEnum):
    """Type of a fault with its text, from apimachinery's ``util/validation/field``."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    DUPLICATE = "Duplicate value"
    NOT_SUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"

    @property
    def cause(self) -> str:
        """Reason of a cause in ``metav1.Status``, such as ``FieldValueNotSupported``."""
        return f"FieldValue{self.name.title().replace('_', '')}"


_WITHOUT_VALUE = (ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG)


class FieldError(msgspec.Struct, frozen=True):
    """One fault of one field. A ``value`` of ``UNSET`` means that the field is missing, and makes it ``REQUIRED``.

    ``reason`` says what is wrong, ``remedy`` what to write instead (empty where the reason says it all). All of it is
    printable and bounded in length, whatever the object contains: faults are kept, queued, logged and shown.
    """

    path: str
    value: object
    reason: str
    remedy: str = ""
    error_type: ErrorType = ErrorType.INVALID

    def __post_init__(self) -> None:
        if self.value is msgspec.UNSET:
            msgspec.structs.force_setattr(self, "error_type", ErrorType.REQUIRED)
        texts = {
            "path": printable(self.path, MAX_PATH_CHARACTERS),
            "value": _bounded(self.value),
            "reason": printable(self.reason, MAX_REASON_CHARACTERS),
            "remedy": printable(self.remedy, MAX_REASON_CHARACTERS),
        }
        for name, text in texts.items():
            if text is not getattr(self, name):
                msgspec.structs.force_setattr(self, name, text)

    @property
    def detail(self) -> str:
        """Text of the error without its path."""
        value = "" if self.error_type in _WITHOUT_VALUE else f" {_shown(self.value)}:"
        return f"{self.error_type}:{value} {self.reason}" + (f"; {self.remedy}" if self.remedy else "")

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"

    def below(self, path: str) -> "FieldError":
        """Return the error with a path below the parent at ``path``."""
        return msgspec.structs.replace(self, path=join(path, self.path))


def duplicate(path: str, value: object, reason: str, remedy: str) -> FieldError:
    """Return the error for an entry of a list that repeats another one."""
    return FieldError(path, value, reason, remedy, ErrorType.DUPLICATE)


def forbidden(path: str, reason: str, remedy: str) -> FieldError:
    """Return the error for a field that may not be specified, whatever its value is."""
    return FieldError(path, None, reason, remedy, ErrorType.FORBIDDEN)


def too_long(path: str, text: str, most: int) -> FieldError:
    """Return the error for a text of more than ``most`` characters."""
    return FieldError(path, text, f"may not be more than {most} characters", error_type=ErrorType.TOO_LONG)


def too_many(path: str, number: int, most: int, remedy: str = "") -> FieldError:
    """Return the error for a list or map of ``number`` items, more than ``most``."""
    return FieldError(path, number, f"must have at most {most} items", remedy, ErrorType.TOO_MANY)


def as_written(fault: FieldError, text: str) -> FieldError:
    """Return a fault that shows the text of a scalar as it is in the file: ``1.30``, not the number 1.3."""
    remedy = f'write "{text}", in quotes' if fault.remedy == QUOTE else fault.remedy
    return msgspec.structs.replace(fault, value=_Cut(printable(text, MAX_SHOWN_CHARACTERS)), remedy=remedy)


class InvalidObject(ValueError):  # noqa: N818 - named for what it is, as kubectl says it
    """An object that cannot be accepted, with all its faults."""

    def __init__(self, kind: str, name: str, errors: Sequence[FieldError]) -> None:
        self.kind = kind
        self.name = name
        self.errors = tuple(errors)
        super().__init__(kind, name, self.errors)

    def __str__(self) -> str:
        lines = [str(error) for error in self.errors[:MAX_LISTED]]
        if len(self.errors) > MAX_LISTED:
            lines.append(f"and {at_least(len(self.errors))}{len(self.errors) - MAX_LISTED} more")
        listed = f" {lines[0]}" if len(lines) == 1 else "".join(f"\n* {line}" for line in lines)
        kind, name = printable(self.kind, MAX_NAME_CHARACTERS), printable(self.name, MAX_NAME_CHARACTERS)
        return f'{kind} "{name}" is invalid:{listed}'


def at_least(found: int) -> str:
    """Return a prefix for the number of further errors if not all may have been found."""
    return "at least " if found >= MAX_FOUND else ""


def join(path: str, field: str) -> str:
    """Join two parts of a path. ``spec`` and ``mode`` become ``spec.mode``; an index such as ``[0]`` needs no dot."""
    return f"{path}.{field}" if path and field and not field.startswith("[") else path + field


class _Cut(str):
    """The shown part of a value that is not kept."""

    __slots__ = ()


def _bounded(value: object) -> object:
    """Return ``value`` if it is small, else the part that is shown."""
    if isinstance(value, str):
        return value if len(value) <= MAX_SHOWN_CHARACTERS else _Cut(_shown(shortened(value, 2 * MAX_SHOWN_CHARACTERS)))
    if isinstance(value, list | tuple | dict):
        text = _shown(value)
        return value if len(text) <= MAX_SHOWN_CHARACTERS else _Cut(text)
    return value


def _shown(value: object) -> str:
    """Return ``value`` as JSON, shortened for events and conditions."""
    if isinstance(value, _Cut):
        return value
    try:
        text = msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")
    except (UnicodeEncodeError, OverflowError, RecursionError):  # lone surrogates, whole numbers beyond 64 bits
        text = ascii(value) if isinstance(value, str | int) else type(value).__name__
    return printable(text, MAX_SHOWN_CHARACTERS)
