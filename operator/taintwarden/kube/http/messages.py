"""What is sent to the API server and what it answers, however they are transported."""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

MAX_ANSWER_BYTES: Final = 8 * 2**20
"""Of a whole answer, unless the caller expects more. An object of the API server has at most 3 MiB."""

_PATH_CHARACTERS: Final = "/:@!$&'()*+,;=~%"  # what a path may contain as it is (RFC 3986)


class Request(msgspec.Struct, frozen=True):
    """An HTTP request. The path is below that of the server.

    Attributes:
        fence: asked immediately before its bytes are written, and each time that happens: False, and it is not sent.
        max_bytes: of the answer, if it is taken as a whole.

    """

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes | None = None
    fence: Callable[[], bool] | None = None
    max_bytes: int = MAX_ANSWER_BYTES

    def target(self) -> str:
        """Path and parameters as they are sent. A name from a command line may have any character."""
        path = quote(self.path, safe=_PATH_CHARACTERS, errors="surrogateescape")
        return f"{path}?{urlencode(self.params, errors='surrogateescape')}" if self.params else path


class Answer(msgspec.Struct, frozen=True):
    """An HTTP response. ``retry_after`` and ``date`` are headers, or empty."""

    status: int
    body: bytes
    retry_after: str = ""
    date: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the server did what it was asked for. Redirections are not followed."""
        return self.status < 300
