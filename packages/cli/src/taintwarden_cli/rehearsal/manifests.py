"""Reads YAML and JSON files: several documents a file, lists expanded, each object with its position.

Objects are decoded as by the API server: times stay text, a duplicate key is an error. Nothing here depends on a kind.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from taintwarden.fields.text import printable
from taintwarden_cli.rehearsal.yaml_documents import Position, documents, items_of, position

MAX_BYTES = 256 * 2**20
_SHELL_PIPES = ("/dev/fd/", "/proc/")
"""Pipes that a shell has opened already, such as <(helm template). To open another would wait for a writer."""
_TEMPLATE = "{{"
"""The beginning of an action in a Helm template."""


class BadInput(Exception):  # noqa: N818 - reads as what it says
    """The input of the user is invalid; the message is one line."""


class Document(msgspec.Struct, frozen=True):
    """One object of a file. ``number`` counts the file's documents from 1, ``item`` the items of a list from 0."""

    file: str
    number: int
    line: int
    content: Any
    item: int | None = None
    node: yaml.Node | None = None
    """Its YAML node; None for JSON."""

    @property
    def location(self) -> str:
        """Its position, in the form that editors recognize."""
        item = "" if self.item is None else f" item {self.item}"
        return f"{self.file}:{self.line}: document {self.number}{item}"

    @property
    def kind(self) -> str:
        """Its ``kind``; empty if it has none."""
        return self._text("kind")

    @property
    def group(self) -> str:
        """The API group of its ``apiVersion``; empty for the core group."""
        return self._text("apiVersion").rpartition("/")[0]

    @property
    def name(self) -> str:
        """Its name, or its ``generateName``."""
        meta = self.content.get("metadata") if isinstance(self.content, Mapping) else None
        names = [meta.get("name"), meta.get("generateName")] if isinstance(meta, Mapping) else []
        return next((name for name in names if isinstance(name, str) and name), "(no name)")

    def position(self, path: str) -> Position:
        """The position of a field, or of what contains it."""
        return Position(self.line) if self.node is None else position(self.node, path)

    def _text(self, field: str) -> str:
        value = self.content.get(field) if isinstance(self.content, Mapping) else None
        return value if isinstance(value, str) else ""


def read_documents(name: str) -> list[Document]:
    """Read every object of the file ``name``, or of standard input if it is ``-``. Empty documents do not count.
    Raises BadInput if it cannot be read, or is neither YAML nor JSON.
    """
    shown = "stdin" if name == "-" else printable(name)
    text = _read_text(name, shown)
    try:
        found = _parse_json(shown, text) or [Document(shown, *one[:3], node=one[3]) for one in documents(text)]
    except BadInput as error:
        raise BadInput(f"{shown}: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        msg = f"{shown}{line}: is not YAML: {error.problem or error.context}"
        if _TEMPLATE in text:
            msg = f"{shown}{line}: is a template, not YAML: render it first, for example with helm template"
        raise BadInput(msg) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a number of more digits than Python reads
        raise BadInput(f"{shown}: is not YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise BadInput(f"{shown}: is nested too deeply") from error
    return [one for document in found for one in _expand_list(document)]


def _read_text(name: str, shown: str) -> str:
    try:
        if name == "-" and sys.stdin is None:
            raise BadInput("stdin: is closed")
        if name == "-":
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            if Path(name).is_fifo() and not name.startswith(_SHELL_PIPES):
                raise BadInput(f"{shown}: is a named pipe: write - for standard input")
            with Path(name).open("rb") as stream:
                content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise BadInput(f"{shown}: has more than {MAX_BYTES // 2**20} MiB")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"{shown}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{shown}: is not UTF-8 text") from error


def _parse_json(file: str, text: str) -> list[Document]:
    """The document of a JSON file, which a YAML parser reads a hundred times slower. Empty for another file."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        return [Document(file, 1, 1, json.loads(text, object_pairs_hook=_reject_duplicates))]
    except json.JSONDecodeError:
        return []  # flow-style YAML, or several documents


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise BadInput(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return found


def _expand_list(document: Document) -> Iterator[Document]:
    """The items of a List, as ``kubectl get -o yaml`` writes it; typed lists omit the kind of their items."""
    content = document.content
    if not document.kind.endswith("List") or not isinstance(content.get("items"), list):
        yield document
        return
    inherited = {}
    if document.kind != "List":
        inherited = {"apiVersion": content.get("apiVersion"), "kind": document.kind.removesuffix("List")}
    nodes = None if document.node is None else items_of(document.node)
    for index, item in enumerate(content["items"]):
        whole = {**inherited, **item} if isinstance(item, Mapping) else item
        node = None if nodes is None else nodes[index]
        yield msgspec.structs.replace(document, content=whole, item=index, node=node)
