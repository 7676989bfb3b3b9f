"""Sets of field paths, as `metadata.managedFields` keeps them (FieldsV1).

A path is a tuple of elements: `f:name`, `k:{"type":"Ready"}`, `v:"x"`. Rules: `sigs.k8s.io/structured-merge-diff`.
Forbidden here: ownership of fields.
"""

from collections.abc import Iterable
from typing import Any

from localcluster.merge.topology import Topology
from localcluster.store.entries import decode_json, encode

Path = tuple[str, ...]
Leaves = dict[Path, Any]  # path -> value; a list item with a key is also a path of its own, with value None

_UNTRACKED = frozenset(
    ("f:metadata", f"f:{name}")
    for name in (
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    )
) | {("f:kind",), ("f:apiVersion",)}


def leaves(value: dict[str, Any], topology: Topology) -> Leaves:
    """Every field of an object that can be owned, with its value."""
    found: Leaves = {}
    _collect(value, topology, (), found)
    return {path: item for path, item in found.items() if path[:2] not in _UNTRACKED and path not in _UNTRACKED}


def _collect(value: Any, topology: Topology, at: Path, found: Leaves) -> None:
    if isinstance(value, dict) and value and not topology.atomic:
        for name, item in value.items():
            _collect(item, topology.field(name), (*at, f"f:{name}"), found)
    elif isinstance(value, list) and value and topology.keys:
        for item in value:
            path = (*at, item_key(item, topology))
            found[path] = None
            _collect(item, topology.item(), path, found)
    elif isinstance(value, list) and value and topology.is_set:
        for item in value:
            found[(*at, "v:" + encode(item).decode())] = item
    elif at and (value not in ({}, []) or topology.keeps_empty):
        found[at] = value


def item_key(item: Any, topology: Topology) -> str:
    """The path element of a list item."""
    keys = {key: item.get(key, "TCP" if key == "protocol" else None) for key in sorted(topology.keys)}
    return "k:" + encode(keys).decode()


def to_fields(paths: Iterable[Path]) -> dict[str, Any]:
    """FieldsV1 of a set of paths."""
    members = set(paths)
    parents = {path[:depth] for path in members for depth in range(1, len(path))}
    root: dict[str, Any] = {}
    for path in sorted(members):
        node = root
        for depth, element in enumerate(path, 1):
            node = node.setdefault(element, {})
            if path[:depth] in members and path[:depth] in parents:
                node.setdefault(".", {})
    return root


def from_fields(fields: dict[str, Any]) -> set[Path]:
    """The set of paths of a FieldsV1."""
    found: set[Path] = set()

    def walk(node: dict[str, Any], at: Path) -> None:
        if at and (not node or "." in node):
            found.add(at)
        for element, below in node.items():
            if element != ".":
                walk(below, (*at, element))

    walk(fields, ())
    return found


def spelt(path: Path) -> str:
    """A path as in conflicts: `.metadata.annotations.example`, `.spec.containers[name="a"].image`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            pairs = decode_json(rest.encode()).items()
            text += "[" + ",".join(f"{name}={encode(value).decode()}" for name, value in pairs) + "]"
        else:
            text += f"[={rest}]"
    return text


def remove_path(value: Any, path: Path, topology: Topology) -> None:
    """Remove the field at `path` from the value, and containers that become empty by it."""
    element, rest = path[0], path[1:]
    kind, _, name = element.partition(":")
    if kind == "f" and isinstance(value, dict) and name in value:
        if not rest:
            del value[name]
            return
        remove_path(value[name], rest, topology.field(name))
        if value[name] in ({}, []):
            del value[name]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            same = item_key(item, topology) == element if kind == "k" else "v:" + encode(item).decode() == element
            if same:
                if rest:
                    remove_path(item, rest, topology.item())
                else:
                    del value[index]
                return
