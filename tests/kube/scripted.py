"""A client that answers by script and keeps what it was asked."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from taintwarden.kube.errors import ApiError, ApiStatus, Fenced, Unreachable


class EndOfScriptError(Exception):
    """The script is over: the test has seen enough."""


class Call(msgspec.Struct):
    """One request that was made."""

    method: str
    path: str
    params: dict[str, str]
    body: Any = None
    content_type: str = "application/json"
    at: float = 0.0
    accept: str = "application/json"


def standing() -> bool:
    """The fence of an order that may be sent."""
    return True


class Silence(msgspec.Struct):
    """A pause of a watch, of `seconds` seconds without a frame."""

    seconds: float


class ScriptedClient:
    """Answers one request after another; a watch is one answer too, a list of chunks.

    An answer is bytes, an object to be sent as JSON, an exception to be raised, or a function of the call that returns
    one of these, perhaps as a coroutine. When the script is over, ``EndOfScriptError`` is raised, unless ``default``
    answers.
    """

    def __init__(self, *answers: Any, default: Any = EndOfScriptError) -> None:
        self.answers = deque(answers)
        self.default = default
        self.calls: list[Call] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout_seconds: float | None = None,
        fence: Callable[[], bool] | None = None,
        max_bytes: int = 0,
    ) -> bytes:
        del max_bytes
        if fence is not None and not fence():
            raise Fenced
        body = None if body is None else msgspec.json.decode(msgspec.json.encode(body))
        call = Call(method, path, dict(params or {}), body, content_type, asyncio.get_running_loop().time(), accept)
        try:
            async with asyncio.timeout(timeout_seconds or 30.0):
                answer = await self._next(call)
        except TimeoutError as error:
            raise Unreachable("no answer") from error
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle_timeout_seconds: float, *, accept: str
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        del idle_timeout_seconds, accept
        call = Call("GET", path, dict(params), at=asyncio.get_running_loop().time())
        yield self._chunks(await self._next(call))

    async def _next(self, call: Call) -> Any:
        self.calls.append(call)
        answer = self.answers.popleft() if self.answers else self.default
        if callable(answer) and not isinstance(answer, type):
            answer = answer(call)
            if asyncio.iscoroutine(answer):
                answer = await answer
        if isinstance(answer, BaseException) or (isinstance(answer, type) and issubclass(answer, BaseException)):
            raise answer
        return answer

    async def _chunks(self, chunks: Any) -> AsyncIterator[bytes]:
        for chunk in chunks:
            if isinstance(chunk, Silence):
                await asyncio.sleep(chunk.seconds)
            elif isinstance(chunk, BaseException):
                raise chunk
            else:
                yield chunk

    def paths(self, method: str = "") -> list[str]:
        """The paths that were asked for, in order."""
        return [call.path for call in self.calls if method in ("", call.method)]


def refusal(code: int, message: str = "made to fail", **more: Any) -> ApiError:
    """A refusal by the API server. ``more``: reason, retry_after, causes."""
    retry_after = more.pop("retry_after", None)
    causes = more.pop("causes", ())
    details = {"causes": list(causes)} if causes else None
    reason = "NotFound" if code == 404 else ""
    status = {"message": message, "reason": reason, "code": code, "details": details} | more
    return ApiError(code, msgspec.convert(status, ApiStatus), retry_after)


def foreign_404() -> ApiError:
    """The answer of a load balancer that knows no API server."""
    return refusal(404, "default backend - 404", reason="")


def by_path(routes: Mapping[str, Any]) -> Callable[[Call], Any]:
    """A default that answers by ``METHOD path-suffix``."""

    def answer(call: Call) -> Any:
        for route, value in routes.items():
            method, _, suffix = route.partition(" ")
            if call.method == method and call.path.endswith(suffix):
                return value(call) if callable(value) and not isinstance(value, type) else value
        raise refusal(404, f"no route for {call.method} {call.path}")

    return answer
