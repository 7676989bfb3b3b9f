"""The web site is built without a dead link, holds every page, and loads nothing from other servers."""

import os
import re
import subprocess
import sys

import pytest

from docs.pages import PAGES, ROOT
from reference.diagrams import FOLDER, THEMES, name_of, sources


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "properdocs", "build", "--site-dir", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr  # strict: a warning about a link is an error
    return folder


def test_every_page_is_in_the_site(site):
    inside = [
        page.name.removeprefix("docs/") if page.name.startswith("docs/") else f"project/{page.name}" for page in PAGES
    ]
    expected = {name.replace("README.md", "index.html").replace(".md", ".html") for name in inside}
    assert {name for name in expected if not (site / name).is_file()} == set()


def test_no_page_loads_anything_from_another_server(site):
    loaded = r"<(?:script|img|link)[^>]*(?:src|href)=\"(https?:[^\"]*)"
    assert {link for page in site.rglob("*.html") for link in re.findall(loaded, page.read_text("utf-8"))} == set()


def test_every_diagram_is_drawn_as_it_is_written():
    """`make diagrams` draws them; those whose source is gone are removed."""
    wanted = {name_of(source, mode) for source in sources() for mode in THEMES}
    assert {path.name for path in FOLDER.glob("*.svg")} == wanted


def test_no_diagram_is_shown_as_source(site):
    pages = [page.read_text("utf-8") for page in site.rglob("*.html")]
    assert not [page for page in pages if "language-mermaid" in page or "flowchart LR" in page]
    assert sum(page.count('<figure class="diagram">') for page in pages) >= len(sources())


def test_pictures_of_pages_exist(site):
    for page in site.rglob("*.html"):
        for source in re.findall(r'<img[^>]* src="([^"]+)"', page.read_text("utf-8")):
            assert (page.parent / source).is_file(), (page.name, source)


def test_code_has_colours_in_both_modes(site):
    style = (site / "colours.css").read_text("utf-8")
    assert ".highlight .k" in style
    assert '[data-bs-theme="dark"] .highlight' in style
    assert '<span class="nt">' in (site / "policies.html").read_text("utf-8")


def test_a_page_has_one_table_of_contents(site):
    page = (site / "concepts.html").read_text("utf-8")
    main = page[page.index('role="main"') :]
    assert len(re.findall(r'<li><a href="#', main)) < 3
