"""Errors of calls to the API server, by what a caller can do about them."""

import msgspec

from taintwarden.engine.model import Int64
from taintwarden.fields.text import printable

MAX_MESSAGE_LENGTH = 1_024
"""Maximum characters of a message from the API server. A webhook or a gateway may have written it."""
MAX_CAUSES = 10

MAX_RETRY_AFTER_SECONDS = 300.0
"""Maximum wait that a server or a proxy can request. After that its answer may be different."""

UID_CONFLICTS = ("the UID in the precondition", "UID in precondition", "uid mismatch")

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors that msgspec raises for invalid JSON. ValidationError is a DecodeError."""


class KubeError(Exception):
    """Base of all errors of this package."""


class ConfigError(KubeError):
    """The kubeconfig or the service account cannot be used. A person has to correct it."""


class MissingDefinitionError(KubeError):
    """The API server does not serve Taintwarden's custom resources: a CustomResourceDefinition is missing."""


class Unreachable(KubeError):  # noqa: N818 - clear without the suffix
    """No usable answer came: the connection failed, or something else answered. The request may have taken effect."""


class Fenced(KubeError):  # noqa: N818 - clear without the suffix
    """The fence of the request declined, so the request was not sent."""


class Untrusted(Unreachable):
    """The certificate of the server is not trusted. Nothing was sent."""


class TooLong(Unreachable):
    """The answer exceeds its maximum length, and was not read to its end."""


UNSERVED_MESSAGE = "404 page not found"
"""The API server's answer for a resource that it does not serve. It has no Status."""


class StatusCause(msgspec.Struct, frozen=True):
    """An entry of ``Status.details.causes``."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True):
    """The fields of ``Status.details`` that are used."""

    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: Int64 | None = msgspec.field(default=None, name="retryAfterSeconds")


class ApiStatus(msgspec.Struct, frozen=True):
    """The API server's ``Status`` object. Every field has a default, so that any JSON object decodes."""

    message: str = ""
    reason: str = ""
    code: Int64 = 0
    details: Details | None = None


class ApiError(KubeError):
    """A refusal by the API server.

    Attributes:
        code: the HTTP status.
        reason: ``Status.reason``, for example ``Conflict``.
        retry_after: seconds that the server asks to wait, at most five minutes; None if it does not ask.
        causes: ``Status.details.causes``.

    """

    def __init__(self, code: int, status: ApiStatus, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = printable(status.reason, MAX_MESSAGE_LENGTH)
        self.message = printable(status.message, MAX_MESSAGE_LENGTH) or f"HTTP status {code}"
        details = status.details or Details()
        self.causes = tuple(
            StatusCause(*(printable(text, MAX_MESSAGE_LENGTH) for text in (cause.reason, cause.message, cause.field)))
            for cause in details.causes[:MAX_CAUSES]
        )
        asked = details.retry_after_seconds if retry_after is None else retry_after
        self.retry_after = None if asked is None else max(0.0, min(float(asked), MAX_RETRY_AFTER_SECONDS))
        super().__init__(f"{code} {self.reason}: {self.message}" if self.reason else f"{code}: {self.message}")

    @property
    def is_final(self) -> bool:
        """True if the server refused the request itself: it is neither overloaded nor failing."""
        return self.code != 429 and self.code < 500

    @property
    def is_not_found(self) -> bool:
        """True if the API server says that the object does not exist. A 404 of a load balancer lacks this reason."""
        return self.code == 404 and self.reason == "NotFound"

    @property
    def is_unserved(self) -> bool:
        """True if the resource is not served, or the requested object does not exist. A proxy's 404 does not count."""
        return self.is_not_found or (self.code == 404 and self.message == UNSERVED_MESSAGE)

    @property
    def is_object_gone(self) -> bool:
        """True if the object is gone. Another object may have its name.

        A failed UID precondition is a 409. In the body of a patch or an apply the UID is an immutable field, so it is a
        422. Other 409 are conflicts of versions, which only the message distinguishes (``registry/rest/delete.go``,
        ``storage/interfaces.go``): the Eviction API returns one when it could not update the budget of the pod.
        """
        if self.code == 422:
            return any(cause.field == "metadata.uid" for cause in self.causes)
        if self.code == 409:
            return any(words in self.message for words in UID_CONFLICTS)
        return self.is_not_found

    @property
    def is_namespace_gone(self) -> bool:
        """True if nothing can be created in the namespace, because it is being deleted or is gone."""
        is_gone = self.is_not_found and self.message.startswith("namespaces ")
        return is_gone or any(cause.reason == "NamespaceTerminating" for cause in self.causes)

    @property
    def is_conflict(self) -> bool:
        """True if another write was faster: the object has another version, and a retry may succeed."""
        return self.code == 409 and not self.is_object_gone
