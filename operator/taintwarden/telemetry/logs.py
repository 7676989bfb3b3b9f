"""structlog for us, and the same form for the standard library's loggers that kopf and aiohttp use."""

import logging
import sys
from typing import Any, TextIO

import msgspec
import structlog

from taintwarden.fields.text import printable


def _escape(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """No value controls the terminal on which a log is read, whatever its source. Tracebacks keep their lines."""
    for name, value in event.items():
        if isinstance(value, str) and name != "exception" and not value.isprintable():
            event[name] = printable(value)
    return event


_SHARED: list[structlog.typing.Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper("%Y-%m-%dT%H:%M:%S.%fZ"),
    structlog.processors.format_exc_info,
    _escape,
]


def configure_logs(log_format: str, level: str, stream: TextIO = sys.stderr) -> None:
    """JSON lines, or for people on a terminal: ``auto`` looks at ``stream``."""
    for_people = log_format == "console" or (log_format == "auto" and stream.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
        if for_people
        else _render_json
    )
    structlog.configure(
        processors=[*_SHARED, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # kopf logs every reaction to every object at INFO; what concerns users are warnings.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # Its warning that it cannot receive signals in its thread: the operator receives them and stops it.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


def _render_json(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    """A wave writes two lines a pod: msgspec makes them several times faster than the standard library."""
    return msgspec.json.encode(event, enc_hook=str).decode()
