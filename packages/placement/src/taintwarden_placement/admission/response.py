"""The response of an admission webhook about one object."""

from typing import Any

import msgspec

from taintwarden.fields.field_errors import FieldError


class PatchOperation(msgspec.Struct, frozen=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: str
    path: str
    value: Any = msgspec.UNSET


class AdmissionResponse(msgspec.Struct, frozen=True):
    """A response about one object. Any refusal rejects the object. Clients show the warnings to its author."""

    refusals: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[PatchOperation, ...] = ()


ALLOWED = AdmissionResponse()
