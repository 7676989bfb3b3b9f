"""Failures as clients of Kubernetes receive them: a `Status` object with a code, a reason and causes.

Wording and shape follow `k8s.io/apimachinery/pkg/api/errors`. Forbidden here: knowing a kind, a store or HTTP.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple


class Cause(NamedTuple):
    """A violated rule of an invalid object: `field: message`, as in `field.Error` of the API machinery."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """A refused request. `code` is the HTTP status. `retry_after_seconds` also becomes the header `Retry-After`."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        retry_after_seconds: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        self.retry_after_seconds = retry_after_seconds
        if retry_after_seconds:
            self.details["retryAfterSeconds"] = retry_after_seconds

    def status(self) -> dict[str, Any]:
        """Return the body of the response."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        body["code"] = self.code
        return body


def _where(resource: str, group: str, name: str) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": resource}
    return {key: value for key, value in details.items() if value}


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(resource: str, group: str, name: str) -> ApiError:
    """404: the object does not exist."""
    message = f'{_qualified(resource, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_where(resource, group, name))


def no_such_path() -> ApiError:
    """404: the resource does not exist. The API server gives no details."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def not_served(what: str) -> ApiError:
    """501: only a real API server serves this. No client can mistake it for an answer of a real server."""
    return ApiError(501, "NotImplemented", f"the embedded API server does not serve {what}")


def already_exists(resource: str, group: str, name: str) -> ApiError:
    """409: an object with this name exists."""
    message = f'{_qualified(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_where(resource, group, name))


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    """409: a precondition or an optimistic lock failed."""
    message = f'Operation cannot be fulfilled on {_qualified(resource, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_where(resource, group, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def bad_request(message: str) -> ApiError:
    """400: the request cannot be parsed."""
    return ApiError(400, "BadRequest", message)


def forbidden(resource: str, group: str, name: str, why: str, causes: Sequence[tuple[str, str]] = ()) -> ApiError:
    """403: admission or authorization refuses the request. `causes` are pairs of reason and message."""
    message = f'{_qualified(resource, group)} "{name}" is forbidden: {why}'
    details = _where(resource, group, name)
    if causes:
        details["causes"] = [{"reason": reason, "message": text} for reason, text in causes]
    return ApiError(403, "Forbidden", message, details=details)


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422: the object is invalid. The message names every violated rule."""
    sentences = [f"{cause.field}: {cause.message}" for cause in causes]
    text = sentences[0] if len(sentences) == 1 else "[" + ", ".join(sentences) + "]"
    details = _where(kind, group, name)
    details["causes"] = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
    subject = f"{kind}.{group}" if group else kind
    return ApiError(422, "Invalid", f'{subject} "{name}" is invalid: {text}', details=details)


def gone(message: str) -> ApiError:
    """410: the requested history was compacted."""
    return ApiError(410, "Expired", message)


def too_many_requests(message: str, causes: Sequence[tuple[str, str]] = (), retry_after_seconds: int = 0) -> ApiError:
    """429: a budget or flow control refuses the request. `causes` are pairs of reason and message."""
    details: dict[str, Any] = {}
    if causes:
        details["causes"] = [{"reason": reason, "message": text} for reason, text in causes]
    return ApiError(429, "TooManyRequests", message, details=details, retry_after_seconds=retry_after_seconds)


def required(field: str, why: str = "") -> Cause:
    """`field: Required value`."""
    return Cause("FieldValueRequired", "Required value" + (f": {why}" if why else ""), field)


def wrong(field: str, value: Any, why: str) -> Cause:
    """`field: Invalid value: ...`."""
    return Cause("FieldValueInvalid", f"Invalid value: {_show(value)}: {why}", field)


def unsupported(field: str, value: Any, allowed: Sequence[str]) -> Cause:
    """`field: Unsupported value: ...: supported values: ...`."""
    names = ", ".join(_show(one) for one in allowed)
    return Cause("FieldValueNotSupported", f"Unsupported value: {_show(value)}: supported values: {names}", field)


def refused(field: str, why: str) -> Cause:
    """`field: Forbidden: ...`."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def duplicate(field: str, shown: str, why: str = "") -> Cause:
    """`field: Duplicate value: ...`. The value is formatted already."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown}" + (f": {why}" if why else ""), field)


def _show(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
