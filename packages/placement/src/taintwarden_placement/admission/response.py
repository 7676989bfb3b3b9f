"""The admission webhooks' answer about one object."""

from typing import Any

import msgspec

from taintwarden.fields.field_errors import FieldError


class PatchOperation(msgspec.Struct, frozen=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: str
    path: str
    value: Any = msgspec.UNSET


class AdmissionResponse(msgspec.Struct, frozen=True):
    """An object is allowed unless it has errors. Warnings are shown to its author; a patch adds fields."""

    refusals: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[PatchOperation, ...] = ()


ALLOWED = AdmissionResponse()
