"""Label selectors as text, by the rules of kubectl."""

import re

import pytest

from taintwarden_cli.rehearsal.places import parse_selector


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a in (x, y),b!=z", {"a": "y"}, True),
        ("a in(x)", {"a": "y"}, False),
        ("a notin (x)", {}, True),
        ("a==x , b", {"a": "x", "b": "1"}, True),
        ("a>5", {"a": "6"}, True),
        ("a<5", {"a": "six"}, False),
        ("a>5", {"a": "1_000"}, False),  # as strconv.ParseInt, which the scheduler uses
        ("a>5", {"a": "9" * 19}, False),
        ("example.com/a=b", {"example.com/a": "b"}, True),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
    ],
)
def test_selectors(text: str, labels: dict[str, str], expected: bool) -> None:
    assert all(one.holds(labels) for one in parse_selector(text)) is expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a b", "cannot read 'a b'"),
        ("(a)", "cannot read '(a)'"),
        ("b,a=b=c", '"b=c": must be empty, or at most 63'),
        ("a=!", '"!": must be empty, or at most 63'),
        ("a in (x,-)", '"-": must be empty, or at most 63'),
        ("-a=b", '"-a": is not a key'),
    ],
)
def test_what_is_none(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_selector(text)
