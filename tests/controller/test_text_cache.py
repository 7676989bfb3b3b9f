"""Each text is parsed once, up to a number of cached results."""

import pytest

from taintwarden.controller.decoding.text_cache import LONG, LONG_TEXTS, SHORT, SHORT_TEXTS, cached_by_text


@pytest.fixture
def parsed() -> list[str]:
    return []


def parsing(parsed: list[str]):
    """A parser that notes what it parses."""

    def parse(text: str) -> str:
        parsed.append(text)
        return text.upper()

    return cached_by_text(parse)


@pytest.mark.parametrize("text", ["x", "x" * 2 * SHORT])
def test_a_text_is_parsed_once(parsed, text):
    parse = parsing(parsed)
    assert [parse(text) for _ in range(3)] == [text.upper()] * 3
    assert parsed == [text]


@pytest.mark.parametrize(("length", "room"), [(SHORT, SHORT_TEXTS), (SHORT + 1, LONG_TEXTS)])
def test_the_oldest_texts_are_dropped_and_parsed_again(parsed, length, room):
    parse = parsing(parsed)
    texts = [f"{number:0{length}}" for number in range(room + 1)]
    for text in texts:
        parse(text)
    parsed.clear()
    for text in (*texts[1:], texts[0]):
        parse(text)
    assert parsed == [texts[0]]


def test_a_text_that_is_too_long_is_not_cached(parsed):
    parse = parsing(parsed)
    for _ in range(2):
        parse("x" * (LONG + 1))
    assert len(parsed) == 2


def test_long_texts_do_not_displace_short_ones(parsed):
    parse = parsing(parsed)
    parse("x")
    for number in range(SHORT_TEXTS + 1):
        parse(f"{number:0{SHORT + 1}}")
    parsed.clear()
    parse("x")
    assert parsed == []
