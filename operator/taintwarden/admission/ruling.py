"""What the API server is answered about an object at the door."""

from typing import Any

import msgspec

from taintwarden.api.errors import FieldError


class PatchStep(msgspec.Struct, frozen=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: str
    path: str
    value: Any


class Ruling(msgspec.Struct, frozen=True):
    """An object is allowed unless something is refused. Warnings are shown to whoever sent it; a patch completes it."""

    refusals: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[PatchStep, ...] = ()


AS_IT_IS = Ruling()
