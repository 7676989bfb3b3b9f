"""Foreign text: printable, bounded, valid, and the same where nothing is wrong with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.fields.field_errors import MAX_LISTED, FieldError, InvalidObject
from taintwarden.fields.text import printable, shortened, without_userinfo

ANY = st.text(st.characters(exclude_categories=()), max_size=50)


@given(ANY, st.integers(10, 60) | st.none())
def test_any_text_becomes_one_printable_line_within_the_bound(text, limit):
    shown = printable(text, limit)
    assert shown.isprintable()
    assert limit is None or len(shown) <= limit
    assert shown.encode().decode() == shown


@given(st.text(st.characters(categories=("L", "N", "P", "S"))))
def test_printable_text_is_not_changed(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("two\nlines\ttab", r"two\nlines\ttab"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("no\u00a0break\u2028line", "no break line"),
        ("\ud800", r"\ud800"),
        ("Zürich 数 🙂", "Zürich 数 🙂"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(("text", "shown"), [("abcdefghij", "abcdefghij"), ("abcdefghijk", "abc ... jk")])
def test_of_long_text_beginning_and_end_are_kept(text, shown):
    assert (shortened(text, 10), printable(text, 10)) == (shown, shown)


def test_of_long_text_that_is_escaped_beginning_and_end_are_kept():
    assert printable("a\n" + "x" * 1_000 + "\nz", 15) == r"a\nxx ... xx\nz"


def test_the_name_and_kind_of_a_faulty_object_are_printable():
    assert str(InvalidObject("Kind\x1b[2J", "name\u202e", [])).isprintable()


@pytest.mark.parametrize(
    ("more", "last"),
    [(0, "* spec.f: Invalid value: 1: wrong"), (1, "* and 1 more"), (90, "* and at least 90 more")],
)
def test_of_many_faults_the_first_are_listed_and_the_others_counted(more, last):
    faults = [FieldError("spec.f", 1, "wrong")] * (MAX_LISTED + more)
    assert str(InvalidObject("Kind", "a", faults)).splitlines()[-1] == last


def test_a_password_of_any_characters_is_not_shown():
    assert without_userinfo("https://user:se@cr\net@host:1/x") == "https://...@host:1/x"
