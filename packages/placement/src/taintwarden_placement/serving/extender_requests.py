"""The web application for the requests of schedulers to the extender.

With ``ignorable: true`` in its configuration, a scheduler ignores the extender when the status is not 200, so an error
here never stops scheduling.
"""

from collections.abc import Callable
from functools import partial
from inspect import isawaitable
from typing import Any

import msgspec
import structlog
from aiohttp import web

from taintwarden.fields.text import printable
from taintwarden.kube.errors import NOT_JSON
from taintwarden.serving.log_limiter import LogLimiter
from taintwarden_placement.scheduling.extender import ExtenderArgs, PreemptionArgs, SchedulerExtender
from taintwarden_placement.serving.bounded_handlers import Answered, BoundedHandlers, Observe, Refuse

VERBS = ("filter", "prioritize", "preempt")
"""Verbs in a KubeSchedulerConfiguration. Each is the last segment of its URL."""
RESULTS = ("answered", "failed", "malformed", "stranger", "too-large", "late", "broken-off")

MAX_BODY_BYTES = 3 * 2**20
"""Maximum size of a request, which contains a pod and the names of all nodes."""
_ENCODER = msgspec.json.Encoder()

log = structlog.get_logger()


def extender_app(
    extender: SchedulerExtender,
    observe: Observe,
    refuse: Refuse = lambda _: "",
    answered: Answered = lambda _: None,
) -> web.Application:
    """Build the web application.

    Args:
        extender: computes the answers.
        observe: called with verb, result and seconds of each request.
        refuse: returns why a caller gets no answer; empty if it gets one.
        answered: called with each request that got status 200.

    """
    may_log = LogLimiter()
    args, preemption = msgspec.json.Decoder(ExtenderArgs), msgspec.json.Decoder(PreemptionArgs)
    answers = {
        "filter": partial(_answer, "filter", may_log, args, extender.filter),
        "prioritize": partial(_answer, "prioritize", may_log, args, extender.prioritize),
        "preempt": partial(_answer, "preempt", may_log, preemption, extender.preempt),
    }
    return BoundedHandlers(observe, refuse, answered, max_bytes=MAX_BODY_BYTES).app(answers)


async def _answer(
    verb: str,
    may_log: LogLimiter,
    decoder: "msgspec.json.Decoder[Any]",
    answer: Callable[[Any], Any],
    body: bytearray,
) -> tuple[web.Response, str]:
    try:
        given = decoder.decode(body)
    except NOT_JSON as error:
        words = f"not the arguments of a call with nodeCacheCapable: true: {printable(str(error), 300)}\n"
        return web.Response(status=400, text=words), "malformed"
    try:
        result = answer(given)
        result = _ENCODER.encode(await result if isawaitable(result) else result)
    except Exception as error:
        if may_log((verb, type(error))):
            log.error("extender-failed", verb=verb, exc_info=error)
        return web.Response(status=500, text="internal error\n"), "failed"
    return web.Response(body=result, content_type="application/json"), "answered"
