"""Hooks of ProperDocs: navigation by the index in ``docs/README.md``, and files outside ``docs`` that pages link to.

Pages use links within the repository, so that they also work there. A file outside ``docs``, such as the changelog or
a sample, is part of the site below ``project/``. Links are rewritten accordingly.
"""

import posixpath
import re
from pathlib import Path

from properdocs.config.defaults import ProperDocsConfig
from properdocs.structure.files import File, Files
from properdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

from reference.diagrams import BLOCK, name_of

ROOT = Path(__file__).parents[2]
INDEX = "docs/README.md"
ASSETS = ROOT / "tools" / "reference" / "site_assets"
CONTENTS = re.compile(r"(?:^ *- \[[^\]]+\]\(#[^)]+\)\n){3,}", re.MULTILINE)
"""A list of links to sections of the same page."""
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
ROW = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<link>[^)]+)\)")


def on_config(config: ProperDocsConfig) -> ProperDocsConfig:
    """Add a section for each heading of the index, and an entry for each row of its table."""
    nav: list[dict[str, object]] = [{"Overview": "README.md"}]
    entries: list[dict[str, str]] = []
    for line in (ROOT / INDEX).read_text("utf-8").splitlines():
        if line.startswith("## "):
            entries = []
            nav.append({line.removeprefix("## "): entries})
        elif row := ROW.match(line):
            entries.append({row["title"]: _in_site(_target(INDEX, row["link"]))})
    config.nav = nav
    return config


def on_files(files: Files, *, config: ProperDocsConfig) -> Files:
    """Add style, script, and all files outside ``docs`` that pages link to, directly or indirectly."""
    for path in sorted(ASSETS.iterdir()):
        files.append(File.generated(config, path.name, abs_src_path=str(path)))
    files.append(File.generated(config, "colours.css", content=_colours()))
    waiting = [f"docs/{file.src_uri}" for file in files if file.is_documentation_page()]
    known = set(waiting)
    while waiting:
        origin = waiting.pop()
        targets = {_target(origin, link) for link in LINK.findall((ROOT / origin).read_text("utf-8"))} - known
        for target in sorted(
            target for target in targets if not target.startswith("docs/") and (ROOT / target).is_file()
        ):
            files.append(File.generated(config, _in_site(target), abs_src_path=str(ROOT / target)))
            known.add(target)
            waiting += [target] if target.endswith(".md") else []
    return files


def on_page_markdown(markdown: str, *, page: Page, config: ProperDocsConfig, files: Files) -> str:
    """Rewrite links for the site, replace diagrams by pictures, and remove a page's list of its sections.

    The theme shows a table of contents beside the page. The list is for readers of the repository.
    """
    markdown = CONTENTS.sub("", BLOCK.sub(lambda block: _diagram(block[1], page), markdown), count=1)
    here = posixpath.dirname(page.file.src_uri)
    origin = page.file.src_uri.removeprefix("project/") if here.startswith("project") else f"docs/{page.file.src_uri}"
    return LINK.sub(lambda link: posixpath.relpath(_in_site(_target(origin, link[1])), here or "."), markdown)


def _diagram(source: str, page: Page) -> str:
    """Return the picture of a diagram in both colour modes."""
    folder = posixpath.relpath("pictures/diagrams", posixpath.dirname(page.file.src_uri) or ".")
    pictures = [
        f'<img class="{mode}-mode" src="{folder}/{name_of(source, mode)}" alt="Diagram">' for mode in ("light", "dark")
    ]
    return f'<figure class="diagram">{"".join(pictures)}</figure>\n'


def _colours() -> str:
    """Return the colours of code in both colour modes."""
    light, dark = HtmlFormatter(style="default"), HtmlFormatter(style="github-dark")
    return "\n".join([light.get_style_defs(".highlight"), dark.get_style_defs('[data-bs-theme="dark"] .highlight'), ""])


def _target(origin: str, link: str) -> str:
    """Return the path of a link's target, relative to the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def _in_site(path: str) -> str:
    return path.removeprefix("docs/") if path.startswith("docs/") else f"project/{path}"
