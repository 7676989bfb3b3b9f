"""The requests of schedulers over HTTP: decoded, passed on, answered.

A scheduler whose configuration says ``ignorable: true`` schedules without the extender when it gets another status
than 200, so an error here never stops scheduling.
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
from taintwarden_placement.scheduling.extender import Args, PreemptionArgs, SchedulerExtender
from taintwarden_placement.serving.bodies import Answered, Bodies, Observe, Refuse

VERBS = ("filter", "prioritize", "preempt")
"""The verbs that a KubeSchedulerConfiguration names, each the last part of its URL."""
RESULTS = ("answered", "failed", "malformed", "stranger", "too-large", "late", "broken-off")

MAX_BODY_BYTES = 3 * 2**20
"""Of a pod, and the names of all nodes."""
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
        extender: answers.
        observe: told of each request: verb, result, seconds.
        refuse: says which callers are not answered.
        answered: told of each request that could be answered.

    """
    is_logged = LogLimiter()
    args, preemption = msgspec.json.Decoder(Args), msgspec.json.Decoder(PreemptionArgs)
    answers = {
        "filter": partial(_answer, "filter", is_logged, args, extender.filter),
        "prioritize": partial(_answer, "prioritize", is_logged, args, extender.prioritize),
        "preempt": partial(_answer, "preempt", is_logged, preemption, extender.preempt),
    }
    return Bodies(observe, refuse, answered, max_bytes=MAX_BODY_BYTES).app(answers)


async def _answer(
    verb: str,
    is_logged: LogLimiter,
    decoder: "msgspec.json.Decoder[Any]",
    answer: Callable[[Any], Any],
    body: bytearray,
) -> tuple[web.Response, str]:
    try:
        given = decoder.decode(body)
    except NOT_JSON as error:
        words = f"no arguments of an extender with nodeCacheCapable: true: {printable(str(error), 300)}\n"
        return web.Response(status=400, text=words), "malformed"
    try:
        result = answer(given)
        result = _ENCODER.encode(await result if isawaitable(result) else result)
    except Exception as error:
        if is_logged((verb, type(error))):
            log.error("extender-failed", verb=verb, exc_info=error)
        return web.Response(status=500, text="internal error\n"), "failed"
    return web.Response(body=result, content_type="application/json"), "answered"
