"""YAML documents with the line and the text of each field. Duplicate keys and endless expansion are errors."""

import re
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import yaml

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

MAX_NODES = 20_000_000
"""Maximum number of YAML nodes. Aliases can expand a short text to a very large object."""
MAX_DEPTH = 200
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_SEGMENT = re.compile(r"\[([^\[\]]*)\]|([^.\[\]]+)")


class Position(NamedTuple):
    """The position of a field. ``text`` is a scalar that is not a string, as it is written; else empty."""

    line: int
    text: str = ""


def documents(text: str) -> Iterator[tuple[int, int, Any, yaml.Node]]:
    """The documents that are not empty: number, line, content and node.

    Raises YAMLError if the text is not YAML, and RecursionError if it is nested too deeply.
    """
    _check_depth(text)
    loader = _Loader(text)
    try:
        number = 0
        while loader.check_node():
            node = loader.get_node()
            number += 1
            if node is None:
                continue
            if _expanded_size(node, {}) > MAX_NODES:
                raise yaml.constructor.ConstructorError(None, None, "its aliases expand to too much", node.start_mark)
            _check_keys(node, set())
            content = loader.construct_document(node)
            if content is not None:
                yield number, node.start_mark.line + 1, content, node
    finally:
        loader.dispose()


def position(node: yaml.Node, path: str) -> Position:
    """The position of a field such as ``spec.taints[0].key``, or of what contains it."""
    line = node.start_mark.line
    for index, name in _SEGMENT.findall(path):
        below = _child(node, name or index)
        if below is None:
            return Position(line + 1)
        line, node = below
    is_text = not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:str"
    return Position(line + 1, "" if is_text else node.value)


def items_of(node: yaml.Node) -> list[yaml.Node] | None:
    """The nodes of the items of a List."""
    below = _child(node, "items")
    return below[1].value if below is not None and isinstance(below[1], yaml.SequenceNode) else None


def _child(node: yaml.Node, name: str) -> tuple[int, yaml.Node] | None:
    """The line and the value of a field or an item."""
    if isinstance(node, yaml.MappingNode):
        pairs = ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode) and key.value == name)
        return next(((key.start_mark.line, value) for key, value in pairs), None)
    if isinstance(node, yaml.SequenceNode) and name.isdecimal() and int(name) < len(node.value):
        found = node.value[int(name)]
        return found.start_mark.line, found
    return None


class _Loader(_Base):
    """PyYAML's safe loader. Times stay text, and keys become text, as in JSON."""

    bool_values: ClassVar = {**_Base.bool_values, "y": True, "n": False}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make the keys text."""
        return {_key(key): value for key, value in super().construct_mapping(node, deep=deep).items()}


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
# PyYAML reads these as text, kubectl as numbers and booleans.
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("[yYnN]$"), list("yYnN"))


def _key(key: object) -> object:
    return str(key).lower() if isinstance(key, bool) else str(key) if isinstance(key, int | float) else key


def _check_depth(text: str) -> None:
    """Check the depth of nesting first: libyaml's composer recurses on the C stack without a bound."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise RecursionError


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
                problem = f"the key {key.value!r} occurs twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            known.add(key.value)
        children = [value for _, value in node.value]
    for child in children:
        _check_keys(child, seen)


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """The number of nodes when all aliases are expanded."""
    size = known.get(id(node))
    if size is None:
        known[id(node)] = MAX_NODES  # an alias to a node that contains it expands without end
        parts = node.value if isinstance(node, yaml.SequenceNode | yaml.MappingNode) else []
        children = [child for part in parts for child in (part if isinstance(part, tuple) else (part,))]
        size = known[id(node)] = 1 + sum(_expanded_size(child, known) for child in children)
    return size
