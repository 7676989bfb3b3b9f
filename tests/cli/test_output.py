import json
import re
from enum import StrEnum

import msgspec
import pytest
from rich.cells import cell_len

from taintwarden.controller.words.wording import ago, duration, relative
from taintwarden_cli.data_output import write_answer
from taintwarden_cli.output import printable
from taintwarden_cli.rendering import Lines, render


class Colour(StrEnum):
    RED = "Red"


class Sample(msgspec.Struct, rename="camel"):
    first_field: str = "Zürich \U0001f600"
    colour: Colour = Colour.RED
    nothing: str | None = None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.4, "0s"), (59, "59s"), (60, "1m"), (90, "1m30s"), (3600, "1h"), (3601, "1h"), (90_061, "1d1h")],
)
def test_duration_has_two_units(seconds, text):
    assert duration(seconds) == text


def test_very_long_duration_is_still_short():
    assert len(duration(2.0**63)) < 25


@pytest.mark.parametrize(("at", "text"), [(90.0, "in 1m30s"), (-30.0, "30s ago"), (0.2, "now"), (-0.2, "now")])
def test_relative_time(at, text):
    assert relative(at, 0.0) == text


@pytest.mark.parametrize(("at", "text"), [(-90.0, "1m30s ago"), (-0.2, "0s ago"), (0.0, "0s ago"), (5.0, "0s ago")])
def test_what_has_happened_has_an_age(at, text):
    assert ago(at, 0.0) == text


@pytest.mark.parametrize(("text", "shown"), [("a\x1b[31mb", r"a\x1b[31mb"), ("a\nb", r"a\nb"), ("Zürich", "Zürich")])
def test_control_characters_are_shown_not_sent(text, shown):
    assert printable(text) == shown


def test_data_is_ascii_and_reads_back(capsys):
    write_answer(Sample(), "json", lambda: "no")
    text = capsys.readouterr().out
    assert text.isascii()
    assert json.loads(text) == {"firstField": "Zürich \U0001f600", "colour": "Red", "nothing": None}


def widest(line: str) -> int:
    """Width on a terminal that draws an emoji's tone, or what a variation selector makes wide, after the character."""
    return cell_len(line) + sum(2 if "\U0001f3fb" <= one <= "\U0001f3ff" else one == "\ufe0f" for one in line)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("before", range(80, 90))
@pytest.mark.parametrize("character", ["\U0001f44d\U0001f3fd", "x\U0001f3fd", "\u2764\ufe0f", "a\u0301", "\u4e2d"])
def test_a_table_is_as_wide_as_any_terminal_takes_it_for(character, before):
    lines = Lines()
    lines.add("value", "x" * before + character * 4)
    assert max(map(widest, render(lines.grid).splitlines())) <= 100


def test_nothing_is_folded_in_a_pipe():
    lines = Lines()
    lines.add("value", "x" * 500)
    assert render(lines.grid).endswith("x" * 500)


def test_a_terminal_is_used_to_its_width(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "140")
    lines = Lines()
    lines.add("value", "x" * 200)
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in render(lines.grid).splitlines()) == 140
