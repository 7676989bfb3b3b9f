"""The pictures in the pages: shown somewhere, whole, and in need of nothing from elsewhere."""

import asyncio
import re
import sys
from xml.etree import ElementTree

import pytest

from docs.pages import PAGES, ROOT
from pictures.drawing import draw
from pictures.terminal import record

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def test_every_picture_is_shown():
    shown = {link.rpartition("/")[2] for page in PAGES for link in page.links if link.endswith(".svg")}
    assert shown == {path.name for path in PICTURES}
    assert {"demo.svg", "plan.svg", "status.svg"} <= shown


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_whole_and_fetches_nothing(path):
    root = ElementTree.fromstring(path.read_text("utf-8"))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "$" in texts[1] or "Not a screenshot." in texts[1]
    assert {one.tag.rpartition("}")[2] for one in root.iter()} & {"script", "image", "foreignObject"} == set()
    assert re.findall(r"url\((?!#)|@font-face|@import|href", path.read_text("utf-8")) == []


def test_a_drawing_has_the_command_and_the_colours():
    svg = draw("some", "make it", "\x1b[31mred\x1b[0m <plain>")
    assert "make&#160;it" in svg
    assert "&lt;plain&gt;" in svg
    assert "@font-face" not in svg


def test_each_redrawing_is_a_frame_of_its_own():
    code = "print('one\\ntwo', end=''); print('\\r\\x1b[2K\\x1b[1A\\x1b[2Kthree'); raise SystemExit(3)"
    frames = asyncio.run(record([sys.executable, "-c", code], {}, expected=3))
    assert frames == ["one\ntwo", "three"]


def test_a_command_that_fails_draws_no_picture():
    with pytest.raises(RuntimeError, match="ended with 3"):
        asyncio.run(record([sys.executable, "-c", "raise SystemExit(3)"], {}))
