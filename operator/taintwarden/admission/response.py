"""The admission webhooks' answer about one object."""

from typing import Any

import msgspec

from taintwarden.api.errors import FieldError


class PatchOperation(msgspec.Struct, frozen=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: str
    path: str
    value: Any


class AdmissionResponse(msgspec.Struct, frozen=True):
    """An object is allowed unless something is refused. Warnings are shown to whoever sent it; a patch completes it."""

    refusals: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[PatchOperation, ...] = ()


ALLOWED = AdmissionResponse()
