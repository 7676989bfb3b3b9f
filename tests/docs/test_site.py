"""The web site is built without a dead link, holds every page, and loads nothing from other servers."""

import re
import subprocess
import sys

import pytest

from docs.pages import PAGES, ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "properdocs", "build", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
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
