"""Log lines as they are written."""

import io
import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import structlog

from taintwarden.telemetry.logs import configure_logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, kopf = logging.getLogger(), logging.getLogger("kopf")
    handlers, level, kopf_level = list(root.handlers), root.level, kopf.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    kopf.setLevel(kopf_level)


def lines(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_a_constant_event_and_pairs():
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    structlog.get_logger().info("eviction-decided", pod="shop/web-1", attempts=3)
    [line] = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "eviction-decided", "level": "info", "pod": "shop/web-1", "attempts": 3}


def test_the_time_of_a_line_has_microseconds_and_is_in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "XYZ-9")
    time.tzset()
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    structlog.get_logger().info("hello")
    written = datetime.strptime(lines(stream)[0]["timestamp"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    assert abs(written.timestamp() - time.time()) < 60
    monkeypatch.undo()
    time.tzset()


def test_away_from_a_terminal_auto_is_json():
    stream = io.StringIO()
    configure_logs("auto", "info", stream)
    structlog.get_logger().info("hello")
    assert lines(stream)[0]["event"] == "hello"


def test_on_a_terminal_auto_is_for_people():
    stream = Terminal()
    configure_logs("auto", "info", stream)
    structlog.get_logger().info("hello", pod="shop/web-1")
    assert "hello" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_console_is_for_people_anywhere_and_without_colours():
    stream = io.StringIO()
    configure_logs("console", "info", stream)
    structlog.get_logger().warning("hello")
    assert "\x1b" not in stream.getvalue()
    assert "hello" in stream.getvalue()


@pytest.mark.parametrize(("level", "seen"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_is_a_bound(level, seen):
    stream = io.StringIO()
    configure_logs("json", level, stream)
    log = structlog.get_logger()
    for name in ("debug", "info", "warning", "error"):
        getattr(log, name)("x")
    assert len(lines(stream)) == seen


def test_an_exception_is_one_line():
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    try:
        raise ValueError("boom")
    except ValueError as error:
        structlog.get_logger().critical("task-failed", exc_info=error)
    [line] = lines(stream)
    assert "ValueError: boom" in line["exception"]


def test_a_value_that_json_does_not_know_is_written_as_text():
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    structlog.get_logger().info("x", value=ValueError("boom"))
    assert lines(stream)[0]["value"] == "boom"


def test_the_standard_librarys_loggers_have_the_same_form():
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    logging.getLogger("aiohttp").warning("slow %s", "answer")
    [line] = lines(stream)
    assert (line["event"], line["level"], line["logger"]) == ("slow answer", "warning", "aiohttp")


def test_kopf_logs_only_warnings_and_errors():
    stream = io.StringIO()
    configure_logs("json", "debug", stream)
    logging.getLogger("kopf.objects").info("Handler succeeded")
    logging.getLogger("kopf.objects").warning("Patching failed")
    assert [line["event"] for line in lines(stream)] == ["Patching failed"]


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_value_reaches_the_terminal_with_control_characters(log_format):
    stream = io.StringIO()
    configure_logs(log_format, "info", stream)
    structlog.get_logger().warning("taint-invalid", reason="\x1b]0;pwned\x07 \x9b2J", name="two\nlines")
    told = stream.getvalue().removesuffix("\n")
    assert told.isprintable()
    assert "x1b]0;pwned" in told
