"""Each text is parsed once, while there is room for its result."""

import pytest

from engine.kept import kept
from taintwarden.controller.decoding.remembered import Remembered

TEXTS = [f"text-{number}" for number in range(10)]
SIZE = len(TEXTS[0])


@pytest.fixture
def parsed() -> list[str]:
    return []


def remembered(parsed: list[str], texts: int) -> Remembered[str]:
    """With room for so many."""

    def parse(text: str) -> str:
        parsed.append(text)
        return text.upper()

    return Remembered(parse, max_characters=texts * SIZE)


def test_a_text_is_parsed_once(parsed):
    parse = remembered(parsed, 3)
    assert [parse(TEXTS[0]) for _ in range(3)] == ["TEXT-0"] * 3
    assert parsed == [TEXTS[0]]


@pytest.mark.parametrize("room", [1, 3])
def test_what_is_remembered_is_bounded_in_characters(parsed, room):
    parse = remembered(parsed, room)
    for text in TEXTS:
        parse(text)
        assert sum(bool(kept(parse, one.upper())) for one in TEXTS) <= room
    assert parsed == TEXTS


def test_the_oldest_are_dropped_and_parsed_again(parsed):
    parse = remembered(parsed, 3)
    for text in TEXTS:
        parse(text)
    parsed.clear()
    for text in (*TEXTS[7:], TEXTS[0]):
        parse(text)
    assert parsed == [TEXTS[0]]


def test_a_text_without_room_is_parsed_and_not_kept(parsed):
    parse = remembered(parsed, 1)
    assert parse("x" * 50) == "X" * 50
    assert kept(parse, "X" * 50) == []
