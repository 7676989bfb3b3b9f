"""What can go wrong between us and the API server, in three kinds a caller can act on."""

from typing import Any, TypeVar

import msgspec

MAX_MESSAGE_LENGTH = 512
"""Messages of the server are cut here, so that no payload ends up in logs and Events."""


NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError)
"""What msgspec raises for bytes that are not the JSON they should be; ValidationError is a DecodeError."""


class KubeError(Exception):
    """Base of all errors of this room."""


class ConfigError(KubeError):
    """The kubeconfig or the service account cannot be used: a person has to mend it."""


class MissingDefinitionError(KubeError):
    """The cluster does not know our kinds."""


class Unreachable(KubeError):  # noqa: N818 - reads as what it says
    """No answer: the connection failed, broke or timed out. The request may or may not have been carried out."""


class Cause(msgspec.Struct, frozen=True):
    """One of ``Status.details.causes``."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True):
    """``Status.details``, as far as it is used."""

    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int | None = msgspec.field(default=None, name="retryAfterSeconds")


class Status(msgspec.Struct, frozen=True):
    """The API server's ``Status`` object. The class has defaults for everything, so that any JSON object decodes."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class ApiError(KubeError):
    """The API server refused.

    Attributes:
        code: the HTTP status.
        reason: ``Status.reason``, for example ``Conflict``.
        retry_after: seconds that the server asks to wait, if it does.
        causes: ``Status.details.causes``.

    """

    def __init__(self, code: int, status: Status, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = status.reason
        self.message = status.message[:MAX_MESSAGE_LENGTH] or f"HTTP status {code}"
        details = status.details or Details()
        self.causes = details.causes
        asked = details.retry_after_seconds
        self.retry_after = retry_after if retry_after is not None else (None if asked is None else float(asked))
        super().__init__(f"{code} {self.reason}: {self.message}" if self.reason else f"{code}: {self.message}")

    @property
    def is_about_another(self) -> bool:
        """Whether the object is gone, or another one bears its name.

        A precondition on the UID fails with 409, but in the body of a patch or an apply it is an immutable field: 422.
        """
        if self.code == 422:
            return any(cause.field == "metadata.uid" for cause in self.causes)
        return self.code in (404, 409)

    @classmethod
    def from_response(cls, code: int, body: bytes, headers: Any = None) -> "ApiError":
        """Read a refusal; a body that is no ``Status`` (a proxy's HTML, say) is quoted shortly."""
        try:
            status = msgspec.json.decode(body, type=Status)
        except NOT_JSON:
            status = Status(message=" ".join(body[:200].decode("utf-8", "replace").split()))
        return cls(code, status, _seconds((headers or {}).get("Retry-After", "")))


T = TypeVar("T")


def decoded(body: bytes, kind: type[T], what: str) -> T:
    """An answer as what it should be.

    Raises:
        Unreachable: it is something else, as when a gateway answers in the API server's place.

    """
    try:
        return msgspec.json.decode(body, type=kind)
    except NOT_JSON as error:
        msg = f"the answer is no {what}: {error}"
        raise Unreachable(msg) from error


def _seconds(header: str) -> float | None:
    return float(header) if header.isascii() and header.isdigit() else None
