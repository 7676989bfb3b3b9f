"""Markdown as far as these tests need it: fenced blocks, tables, headings, links, code spans. All with line numbers."""

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^ *```(\S*)\s*$")
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#{1,6}) (.+)$")


@dataclass(frozen=True)
class Block:
    """A fenced block. ``where`` is for people."""

    where: str
    language: str
    text: str


@dataclass(frozen=True)
class Table:
    """A table with the headings it stands under."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str]:
        index = self.columns.index(name)
        return [row[index] for row in self.rows]


class Page:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.text = path.read_text("utf-8")

    @cached_property
    def _parts(self) -> tuple[list[Block], list[str]]:
        """The blocks, and the lines outside of them (lines of blocks are empty there)."""
        blocks: list[Block] = []
        prose: list[str] = []
        inside: list[str] | None = None
        language, began = "", 0
        for number, line in enumerate(self.text.splitlines(), 1):
            fence = FENCE.match(line)
            if inside is None and fence:
                inside, language, began = [], fence[1], number
            elif inside is not None and line.lstrip().startswith("```"):
                text = textwrap.dedent("\n".join(inside) + "\n")  # in a list it is indented
                blocks.append(Block(f"{self.name}:{began}", language, text))
                inside = None
            elif inside is not None:
                inside.append(line)
            prose.append("" if inside is not None or fence else line)
        assert inside is None, f"{self.name}:{began}: the block does not end"
        return blocks, prose

    @property
    def blocks(self) -> list[Block]:
        return self._parts[0]

    @property
    def prose(self) -> list[str]:
        return self._parts[1]

    @cached_property
    def code(self) -> list[str]:
        """Code spans of the prose; one may go over the end of a line."""
        return [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", "\n".join(self.prose))]

    @property
    def links(self) -> list[str]:
        return [link for line in self.prose for link in LINK.findall(line)]

    @cached_property
    def anchors(self) -> set[str]:
        """Anchors of the titles, as GitHub makes them."""
        titles = [HEADING.match(line) for line in self.prose]
        return {anchor(title[2]) for title in titles if title}

    def tables(self, heading: str) -> list[Table]:
        """The tables between this heading and the next one of any level."""
        titles = [(number, found[2]) for number, line in enumerate(self.prose) if (found := HEADING.match(line))]
        starts = [number for number, title in titles if title == heading]
        assert len(starts) == 1, f"{self.name} has {len(starts)} headings {heading!r}"
        end = next((number for number, _ in titles if number > starts[0]), len(self.prose))
        return list(_tables(self.prose[starts[0] : end]))

    @cached_property
    def every_table(self) -> list[Table]:
        """The tables of the whole page."""
        return list(_tables(self.prose))

    def table(self, heading: str) -> Table:
        """The one table under a heading."""
        (found,) = self.tables(heading)
        return found


def anchor(title: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", title.replace("`", "").lower())
    return kept.replace(" ", "-")


def spans(cell: str) -> list[str]:
    """Contents of the code spans of a cell."""
    return CODE.findall(cell)


def only_span(cell: str) -> str:
    """The one code span that the cell consists of."""
    found = re.fullmatch(r"`([^`]+)`", cell)
    assert found, f"{cell!r} is not one code span"
    return found[1]


def _tables(lines: list[str]) -> Iterator[Table]:
    rows: list[tuple[str, ...]] = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            rows.append(tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]))
        elif rows:
            columns, rule, *rest = rows
            assert all(set(cell) <= {"-", ":"} for cell in rule), f"no table: {columns}"
            assert all(len(row) == len(columns) for row in rest), f"a row of {columns} has more or fewer cells"
            yield Table(columns, tuple(rest))
            rows = []


CHART = ROOT / "deploy" / "chart" / "taintwarden" / "README.md"
PAGES = [Page(path) for path in (*sorted(ROOT.glob("*.md")), CHART, *sorted((ROOT / "docs").rglob("*.md")))]
BY_NAME = {page.name: page for page in PAGES}
BLOCKS = [block for page in PAGES for block in page.blocks]


def data_blocks() -> list[tuple[str, Any]]:
    """Every document of every YAML and JSON block, with its page and line."""
    found: list[tuple[str, Any]] = []
    for block in BLOCKS:
        if block.language == "yaml":
            found += [(block.where, document) for document in yaml.safe_load_all(block.text)]
        elif block.language == "json":
            found.append((block.where, json.loads(block.text)))
    return found


def objects() -> list[tuple[str, dict[str, Any]]]:
    """Whole Kubernetes objects in the pages; kustomize's own files are none."""
    return [
        (where, document)
        for where, document in data_blocks()
        if isinstance(document, dict)
        and {"apiVersion", "kind", "metadata"} <= document.keys()
        and not document["apiVersion"].startswith("kustomize.config.k8s.io/")
    ]
