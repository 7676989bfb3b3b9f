"""Reads YAML and JSON files: several documents a file, lists expanded, each object with its position.

They are decoded as by the API server: times stay text, a duplicate key is an error. Nothing here depends on a kind.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from taintwarden.api.text import printable

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

MAX_BYTES = 256 * 2**20
MAX_NODES = 20_000_000
"""YAML aliases can expand a short text to a very large object. Without aliases, ``MAX_BYTES`` cannot hold as many."""
MAX_DEPTH = 200
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class BadInput(Exception):  # noqa: N818 - reads as what it says
    """The input of the user is invalid; the message is one line."""


class Document(msgspec.Struct, frozen=True):
    """One object of a file. ``number`` counts the file's documents from 1, ``item`` the items of a list in it."""

    file: str
    number: int
    line: int
    content: Any
    item: int | None = None

    @property
    def place(self) -> str:
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

    def _text(self, field: str) -> str:
        value = self.content.get(field) if isinstance(self.content, Mapping) else None
        return value if isinstance(value, str) else ""


def read_documents(name: str) -> list[Document]:
    """Every object of the file ``name``, or of standard input if it is ``-``. Empty documents do not count.

    Raises:
        BadInput: it cannot be read, or is neither YAML nor JSON.

    """
    shown = "stdin" if name == "-" else printable(name)
    text = _read_text(name, shown)
    try:
        documents = list(_json(shown, text) or _yaml(shown, text))
    except BadInput as error:
        msg = f"{shown}: {error}"
        raise BadInput(msg) from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        msg = f"{shown}{line}: is not YAML: {error.problem or error.context}"
        raise BadInput(msg) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a number of more digits than Python reads
        msg = f"{shown}: is not YAML: {str(error).splitlines()[0]}"
        raise BadInput(msg) from error
    except RecursionError as error:
        msg = f"{shown}: is nested too deeply"
        raise BadInput(msg) from error
    return [one for document in documents for one in _unfold(document)]


def _read_text(name: str, shown: str) -> str:
    try:
        if name == "-" and sys.stdin is None:
            msg = "stdin: is closed"
            raise BadInput(msg)
        if name == "-":
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            msg = f"{shown}: has more than {MAX_BYTES // 2**20} MiB"
            raise BadInput(msg)
        return content.decode("utf-8-sig")
    except OSError as error:
        msg = f"{shown}: cannot be read: {error.strerror or error}"
        raise BadInput(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{shown}: is not UTF-8 text"
        raise BadInput(msg) from error


def _json(file: str, text: str) -> list[Document]:
    """The one document of a JSON file. A YAML parser takes a hundred times as long."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        return [Document(file, 1, 1, json.loads(text, object_pairs_hook=_once))]
    except json.JSONDecodeError:
        return []  # flow-style YAML, or several documents


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        msg = f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice"
        raise BadInput(msg)
    return found


def _yaml(file: str, text: str) -> Iterator[Document]:
    _check_depth(text)
    loader = _Loader(text)
    try:
        number = 0
        while loader.check_node():
            node = loader.get_node()
            number += 1
            if node is None:
                continue
            if _size(node, {}) > MAX_NODES:
                raise yaml.constructor.ConstructorError(None, None, "its aliases stand for too much", node.start_mark)
            _check_keys(node, set())
            content = loader.construct_document(node)
            if content is not None:
                yield Document(file, number, node.start_mark.line + 1, content)
    finally:
        loader.dispose()


def _check_depth(text: str) -> None:
    """Check the depth before anything recurses: libyaml's composer does, on the C stack, without a bound."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise RecursionError


class _Loader(_Base):
    """PyYAML's safe loader without times."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }


def _check_keys(node: yaml.Node, seen: set[int]) -> None:
    """Reject duplicate keys, before merge keys (``<<``) are resolved, which adds their keys to the mapping."""
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        children = node.value
    else:
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        known: set[str] = set()
        for key in keys:
            if key.value in known:
                problem = f"the key {key.value!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            known.add(key.value)
        children = [value for _, value in node.value]
    for child in children:
        _check_keys(child, seen)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many nodes this has when its aliases are expanded."""
    size = known.get(id(node))
    if size is None:
        known[id(node)] = MAX_NODES  # an alias to a node that contains it expands without end
        parts = node.value if isinstance(node, yaml.SequenceNode | yaml.MappingNode) else []
        children = [child for part in parts for child in (part if isinstance(part, tuple) else (part,))]
        size = known[id(node)] = 1 + sum(_size(child, known) for child in children)
    return size


def _unfold(document: Document) -> Iterator[Document]:
    """The items of a List, as ``kubectl get -o yaml`` writes it; typed lists omit the kind of their items."""
    content = document.content
    if not document.kind.endswith("List") or not isinstance(content.get("items"), list):
        yield document
        return
    inherited = {}
    if document.kind != "List":
        inherited = {"apiVersion": content.get("apiVersion"), "kind": document.kind.removesuffix("List")}
    for index, item in enumerate(content["items"]):
        whole = {**inherited, **item} if isinstance(item, Mapping) else item
        yield msgspec.structs.replace(document, content=whole, item=index)
