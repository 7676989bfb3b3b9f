"""Requests to the API server and its answers, independent of the HTTP library."""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

MAX_ANSWER_BYTES: Final = 12 * 2**20
"""Maximum bytes of a whole answer, unless the caller sets another limit. An object of 1.5 MiB, the maximum of etcd, has
up to 9 MiB as JSON: the API server writes ``<`` as six bytes.
"""

_PATH_CHARACTERS: Final = "/:@!$&'()*+,;=~%"  # not escaped in a path (RFC 3986)


class Request(msgspec.Struct, frozen=True):
    """An HTTP request. The path is relative to the URL of the server.

    Attributes:
        fence: called each time immediately before the request is written. If it returns False, nothing is sent.
        max_bytes: maximum length of an answer that is read as a whole.

    """

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes | None = None
    fence: Callable[[], bool] | None = None
    max_bytes: int = MAX_ANSWER_BYTES

    def target(self) -> str:
        """Return the escaped path and parameters. A name from a command line may contain any character."""
        path = quote(self.path, safe=_PATH_CHARACTERS, errors="surrogateescape")
        return f"{path}?{urlencode(self.params, errors='surrogateescape')}" if self.params else path


class Answer(msgspec.Struct, frozen=True):
    """An HTTP response. ``retry_after`` and ``date`` are headers, empty if missing."""

    status: int
    body: bytes
    retry_after: str = ""
    date: str = ""

    @property
    def is_success(self) -> bool:
        """True if the server did what was requested. Redirects are not followed."""
        return self.status < 300
