"""What is wrong with an object, field by field, in the form the API server uses."""

from collections.abc import Sequence

import msgspec

MAX_SHOWN_CHARACTERS = 100


class FieldError(msgspec.Struct, frozen=True):
    """One fault of one field. A ``value`` of ``UNSET`` means that the field is missing.

    ``reason`` says what is wrong, ``remedy`` what to write instead (empty where the reason says it all).
    """

    path: str
    value: object
    reason: str
    remedy: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the fault is that there is no value."""
        return self.value is msgspec.UNSET

    @property
    def detail(self) -> str:
        """All but the path."""
        head = "Required value" if self.is_missing else f"Invalid value: {_shown(self.value)}"
        return f"{head}: {self.reason}" + (f"; {self.remedy}" if self.remedy else "")

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"

    def below(self, path: str) -> "FieldError":
        """The same error seen from the parent at ``path``."""
        return msgspec.structs.replace(self, path=join(path, self.path))


class InvalidObject(ValueError):  # noqa: N818 - named for what it is, as kubectl says it
    """An object that cannot be accepted, with all its faults."""

    def __init__(self, kind: str, name: str, errors: Sequence[FieldError]) -> None:
        self.kind = kind
        self.name = name
        self.errors = tuple(errors)
        super().__init__(kind, name, self.errors)

    def __str__(self) -> str:
        lines = [str(error) for error in self.errors]
        listed = f" {lines[0]}" if len(lines) == 1 else "".join(f"\n* {line}" for line in lines)
        return f'{self.kind} "{self.name}" is invalid:{listed}'


def join(path: str, field: str) -> str:
    """``spec`` and ``mode`` are ``spec.mode``; an index such as ``[0]`` needs no dot."""
    return f"{path}.{field}" if path and field and not field.startswith("[") else path + field


def _shown(value: object) -> str:
    """``value`` as JSON, cut where it is long: it stands in events and conditions."""
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "..."
