"""Configuration of structlog, and of the same format for kopf and aiohttp, which log with the standard library."""

import logging
import sys
from typing import Any, TextIO

import msgspec
import structlog

from taintwarden.fields.text import printable


def _escape(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape control characters in values from any source. Tracebacks keep their lines."""
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
    """Log JSON lines, or text for people (``auto``: on a terminal). Other libraries log warnings at any ``level``."""
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
    # kopf logs every reaction to every object at INFO. Only its warnings concern users.
    logging.getLogger("kopf").setLevel(logging.WARNING)


def _render_json(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    """Encode by msgspec: a wave writes two lines for each pod, and the standard library is several times slower."""
    return msgspec.json.encode(event, enc_hook=str).decode()
