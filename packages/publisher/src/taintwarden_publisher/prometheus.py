"""The query of Prometheus. Answers are limited in time and size, and any content is expected."""

import asyncio
import base64
import ssl
from collections.abc import Mapping
from typing import Annotated

import aiohttp
import msgspec

from taintwarden.fields.text import printable
from taintwarden_publisher.samples import Series
from taintwarden_publisher.troubles import NoAnswerError, Trouble

TIMEOUT_SECONDS = 10.0
"""Maximum seconds for one query."""
MAX_BODY_BYTES = 16 * 2**20
"""Maximum size of an answer: about 60,000 series with labels of usual length."""
MAX_TEXT = 300
"""Maximum number of characters quoted from an answer."""
MAX_SKEW_SECONDS = 60.0
"""Maximum difference between the clocks of Prometheus and of this process, in seconds."""
_CHUNK = 2**16
_ABOUT_QUERY = "PromQL "
"""Prefix of warnings about the query. Other warnings, of Thanos or remote read, name a store that did not answer."""


class Access(msgspec.Struct, frozen=True):
    """Content of a Secret: a ``token``, or ``username`` and ``password``; and ``ca.crt`` to trust."""

    authorization: str = ""
    ca: str = ""

    @classmethod
    def of_secret(cls, name: str, data: Mapping[str, str | bytes]) -> "Access":
        """Read the data of a Secret, with base64 values as in the API.

        Raises:
            NoAnswerError: the Secret has no usable content.

        """
        try:
            texts = {key: base64.b64decode(value, validate=True).decode().strip() for key, value in data.items()}
            authorization = ""
            if token := texts.get("token"):
                authorization = f"Bearer {token}"
            elif "username" in texts and "password" in texts:
                authorization = aiohttp.encode_basic_auth(texts["username"], texts["password"])
        except ValueError as error:  # its text contains no secret
            raise NoAnswerError(Trouble.SECRET_UNUSABLE, f"Secret {name} holds no usable text") from error
        if not authorization.isprintable():
            raise NoAnswerError(Trouble.SECRET_UNUSABLE, f"Secret {name} holds a token of several lines")
        if not authorization and "ca.crt" not in texts:
            message = f"Secret {name} holds neither token, nor username and password, nor ca.crt"
            raise NoAnswerError(Trouble.SECRET_UNUSABLE, message)
        return cls(authorization, texts.get("ca.crt", ""))

    def tls(self) -> ssl.SSLContext | bool:
        """Return the TLS context that trusts ``ca.crt``, or True for the default one.

        Raises:
            NoAnswerError: ``ca.crt`` contains no certificate.

        """
        if not self.ca:
            return True
        try:
            # Comments, of which bundles have many, may contain any text.
            return ssl.create_default_context(cadata=self.ca.encode("ascii", "replace").decode())
        except (ssl.SSLError, ValueError) as error:
            raise NoAnswerError(Trouble.SECRET_UNUSABLE, "ca.crt of the Secret is not a certificate") from error


_Number = Annotated[
    str, msgspec.Meta(pattern=r"\A(?:[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|NaN|[-+]?Inf)\Z")
]
"""A number as Prometheus writes it. ``float`` would also accept white space, underscores and other digits."""


class _Sample(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, _Number]


class _Data(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class _Envelope(msgspec.Struct, frozen=True):
    status: str
    data: _Data | None = None
    error: str = ""
    warnings: tuple[str, ...] | None = None
    is_partial: bool = msgspec.field(name="isPartial", default=False)
    """True if some stores of VictoriaMetrics did not answer."""

    @property
    def missing(self) -> str:
        """Why some of the data may be missing; empty if the data is complete."""
        about_data = (warning for warning in self.warnings or () if not warning.startswith(_ABOUT_QUERY))
        return next(about_data, "a store does not answer" if self.is_partial else "")


async def run_query(
    session: aiohttp.ClientSession,
    url: str,
    query: str,
    access: Access,
    now: float,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> list[Series]:
    """Return the instant vector of a query at the present time of Prometheus.

    Args:
        session: the HTTP session, which must not decompress answers.
        url: the URL of the server, without ``/api/v1/query``.
        query: the query in PromQL.
        access: credentials, and certificates to trust.
        now: seconds since 1970, by the clock of this process.
        timeout_seconds: maximum seconds for the whole query, with connecting.

    Raises:
        NoAnswerError: there is no answer, or no usable one.

    """
    try:
        async with asyncio.timeout(timeout_seconds):
            status, body = await _get(session, url, query, access, timeout_seconds)
    except TimeoutError as error:
        message = f"{url} did not answer the query within {timeout_seconds:g} s"
        raise NoAnswerError(Trouble.TIMED_OUT, message) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NoAnswerError(
            Trouble.UNREACHABLE, f"{url} cannot be reached: {printable(str(error), MAX_TEXT)}"
        ) from error
    return _vector(url, status, body, now)


async def _get(
    session: aiohttp.ClientSession, url: str, query: str, access: Access, timeout_seconds: float
) -> tuple[int, bytes]:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if access.authorization:
        headers["Authorization"] = access.authorization
    async with session.get(
        f"{url.rstrip('/')}/api/v1/query",
        params={"query": query, "timeout": f"{timeout_seconds:g}s"},
        headers=headers,
        ssl=access.tls(),
        allow_redirects=False,  # credentials would be sent to the target of the redirection
    ) as answer:
        if 300 <= answer.status < 400:
            target = printable(answer.headers.get("Location", ""), MAX_TEXT)
            raise NoAnswerError(
                Trouble.REDIRECTED, f"{url} redirects to {target}, which is not followed: set url to the server"
            )
        body = bytearray()
        async for chunk in answer.content.iter_chunked(_CHUNK):
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                message = f"the answer of {url} has more than {MAX_BODY_BYTES // 2**20} MiB: make the query narrower"
                raise NoAnswerError(Trouble.TOO_LARGE, message)
        return answer.status, bytes(body)


def _vector(url: str, status: int, body: bytes, now: float) -> list[Series]:
    if status in (401, 403):
        raise NoAnswerError(Trouble.REFUSED, f"{url} refuses the credentials of spec.auth, or needs some: {status}")
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise NoAnswerError(Trouble.WRONG_CONTENT, f"{url} answers {status} without JSON of Prometheus") from error
    if envelope.status != "success" or envelope.data is None:
        trouble = Trouble.QUERY_INVALID if status in (400, 422) else Trouble.WRONG_CONTENT
        raise NoAnswerError(trouble, f"Prometheus cannot answer the query: {printable(envelope.error, MAX_TEXT)}")
    if envelope.data.result_type != "vector":
        found_type = printable(envelope.data.result_type, MAX_TEXT)
        message = f"the query gives a {found_type}, not an instant vector with one series for each node"
        raise NoAnswerError(Trouble.QUERY_INVALID, message)
    if envelope.missing:
        message = f"the answer of {url} lacks data: {printable(envelope.missing, MAX_TEXT)}"
        raise NoAnswerError(Trouble.PARTIAL, message)
    try:
        found = msgspec.json.decode(envelope.data.result, type=list[_Sample])
        series = [Series(sample.metric, sample.value[0], float(sample.value[1])) for sample in found]
    except (msgspec.DecodeError, UnicodeError, ValueError, RecursionError) as error:
        raise NoAnswerError(Trouble.WRONG_CONTENT, f"{url} answers without samples of Prometheus") from error
    if not series:
        raise NoAnswerError(Trouble.EMPTY, "the query gives no series")
    ahead = max(one.at for one in series) - now
    if not abs(ahead) <= MAX_SKEW_SECONDS:
        message = f"its samples are of {abs(ahead):.0f} s {'after' if ahead > 0 else 'before'} now: a clock is wrong"
        raise NoAnswerError(Trouble.CLOCK_SKEW, f"the answer of {url} is not used, since {message}")
    return series


def open_session() -> aiohttp.ClientSession:
    """Return a session for :func:`run_query`, without cookies, decompression and timeouts of its own."""
    return aiohttp.ClientSession(
        auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout()
    )
