"""The requests of schedulers over HTTP: decoded, passed on, answered.

A scheduler whose configuration says ``ignorable: true`` schedules without the extender when it gets another status
than 200, so an error here never stops scheduling.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec
import structlog
from aiohttp import web

from taintwarden.fields.text import printable
from taintwarden.kube.errors import NOT_JSON
from taintwarden.serving.seldom import Seldom
from taintwarden_placement.scheduling.extender import Args, PreemptionArgs, SchedulerExtender
from taintwarden_placement.serving.bodies import MAX_BODY_BYTES, Answered, Bodies, Observe, Refuse

VERBS = ("filter", "prioritize", "preempt")
"""The verbs that a KubeSchedulerConfiguration names, each the last part of its URL."""
RESULTS = ("answered", "failed", "malformed", "stranger", "too-large", "late", "broken-off")

_ENCODER = msgspec.json.Encoder()
Given = TypeVar("Given")

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
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    bodies, is_logged = Bodies(observe, refuse, answered), Seldom()
    args, preemption = msgspec.json.Decoder(Args), msgspec.json.Decoder(PreemptionArgs)

    async def prioritize(given: Args) -> object:
        return extender.prioritize(given)

    async def preempt(given: PreemptionArgs) -> object:
        return extender.preempt(given)

    answers = {
        "filter": partial(_answer, "filter", is_logged, args, extender.filter),
        "prioritize": partial(_answer, "prioritize", is_logged, args, prioritize),
        "preempt": partial(_answer, "preempt", is_logged, preemption, preempt),
    }
    app.add_routes([web.post(f"/{verb}", bodies.handler(verb, answers[verb])) for verb in VERBS])
    return app


async def _answer(
    verb: str,
    is_logged: Seldom,
    decoder: "msgspec.json.Decoder[Given]",
    answer: Callable[[Given], Awaitable[object]],
    body: bytearray,
) -> tuple[web.Response, str]:
    try:
        given = decoder.decode(body)
    except NOT_JSON as error:
        told = f"no arguments of an extender with nodeCacheCapable: true: {printable(str(error), 300)}\n"
        return web.Response(status=400, text=told), "malformed"
    try:
        result = _ENCODER.encode(await answer(given))
    except Exception as error:
        if is_logged((verb, type(error))):
            log.error("extender-failed", verb=verb, exc_info=error)
        return web.Response(status=500, text="internal error\n"), "failed"
    return web.Response(body=result, content_type="application/json"), "answered"
