"""What can go wrong between us and the API server, in three kinds a caller can act on."""

import msgspec

from taintwarden.engine.model import Int64
from taintwarden.fields.text import printable

MAX_MESSAGE_LENGTH = 1_024
"""Messages of the server are shortened to this, so that no payload ends up in logs and Events. Nor do control
characters: a webhook or a gateway may have written the message, and people read it in a terminal.
"""
MAX_CAUSES = 10

LONGEST_RETRY_AFTER_SECONDS = 300.0
"""The longest wait, whatever a server or a proxy requests: after that it may answer differently."""

UID_CONFLICTS = ("the UID in the precondition", "UID in precondition", "uid mismatch")

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not the JSON they should be; ValidationError is a DecodeError."""


class KubeError(Exception):
    """Base of all errors of this package."""


class ConfigError(KubeError):
    """The kubeconfig or the service account cannot be used: it has to be corrected."""


class MissingDefinitionError(KubeError):
    """The cluster does not know our kinds."""


class Unreachable(KubeError):  # noqa: N818 - reads as what it says
    """No answer: the connection failed, broke or timed out. The request may or may not have been carried out."""


class Fenced(KubeError):  # noqa: N818 - reads as what it says
    """The reason of the request was gone when it was to be sent, so it was not sent."""


class Untrusted(Unreachable):
    """The certificate of the server is not trusted. Nothing was sent."""


class TooLong(Unreachable):
    """The answer is longer than it may be, and was not read to its end."""


UNSERVED = "404 page not found"
"""An API server about a kind that it does not serve: it has no Status then."""


class StatusCause(msgspec.Struct, frozen=True):
    """One of ``Status.details.causes``."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True):
    """``Status.details``, as far as it is used."""

    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: Int64 | None = msgspec.field(default=None, name="retryAfterSeconds")


class ApiStatus(msgspec.Struct, frozen=True):
    """The API server's ``Status`` object. The class has defaults for everything, so that any JSON object decodes."""

    message: str = ""
    reason: str = ""
    code: Int64 = 0
    details: Details | None = None


class ApiError(KubeError):
    """The API server refused.

    Attributes:
        code: the HTTP status.
        reason: ``Status.reason``, for example ``Conflict``.
        retry_after: seconds that the server asks to wait, if it does; five minutes at most.
        causes: ``Status.details.causes``.

    """

    def __init__(self, code: int, status: ApiStatus, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = printable(status.reason, MAX_MESSAGE_LENGTH)
        self.message = printable(status.message, MAX_MESSAGE_LENGTH) or f"HTTP status {code}"
        details = status.details or Details()
        self.causes = tuple(
            StatusCause(*(printable(text, MAX_MESSAGE_LENGTH) for text in (one.reason, one.message, one.field)))
            for one in details.causes[:MAX_CAUSES]
        )
        asked = details.retry_after_seconds if retry_after is None else retry_after
        self.retry_after = None if asked is None else max(0.0, min(float(asked), LONGEST_RETRY_AFTER_SECONDS))
        super().__init__(f"{code} {self.reason}: {self.message}" if self.reason else f"{code}: {self.message}")

    @property
    def is_not_found(self) -> bool:
        """Whether the API server says that the object does not exist. A load balancer answers 404, too, by itself."""
        return self.code == 404 and self.reason == "NotFound"

    @property
    def is_unserved(self) -> bool:
        """Whether the API server does not serve what is asked for. What a load balancer says is no answer to that."""
        return self.is_not_found or (self.code == 404 and self.message == UNSERVED)

    @property
    def is_about_another(self) -> bool:
        """Whether the object is gone, or another one bears its name.

        A precondition on the UID fails with 409, but in the body of a patch or an apply it is an immutable field: 422.
        Other 409 are conflicts of versions, which only the message tells apart (``registry/rest/delete.go``,
        ``storage/interfaces.go``): the Eviction API gives one when it could not update the budget of the pod.
        """
        if self.code == 422:
            return any(cause.field == "metadata.uid" for cause in self.causes)
        if self.code == 409:
            return any(words in self.message for words in UID_CONFLICTS)
        return self.is_not_found

    @property
    def is_of_gone_namespace(self) -> bool:
        """Whether nothing can be created in the namespace, because it is being deleted or is gone."""
        is_gone = self.is_not_found and self.message.startswith("namespaces ")
        return is_gone or any(cause.reason == "NamespaceTerminating" for cause in self.causes)

    @property
    def is_conflict(self) -> bool:
        """Whether another write was faster: the object has another version, and a retry may succeed."""
        return self.code == 409 and not self.is_about_another
