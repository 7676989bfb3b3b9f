r"""Templates of kubectl's ``-o jsonpath``, as far as the output of commands needs them.

``{.policies[0].name}``, ``{.policies[*].name}``, text around them, ``{"\n"}``, ``{range .policies[*]}...{end}``.
Not known: filters, slices, unions and ``..``. Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

_PARTS = re.compile(r'\{\s*(?P<action>"(?:[^"\\]|\\.)*"|[^{}"]*?)\s*\}|(?P<text>[^{]+)')
_STEPS = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\['([^']*)'\]|\[(\*|-?[0-9]+)\]")
_RANGE = "range "


class BadTemplateError(ValueError):
    """The template has a part that is not known; the message names it."""


def render(template: str, data: object) -> str:
    """The text of a template. What is not there is empty.

    Raises:
        BadTemplateError: a part of it is not known.

    """
    return "".join(_written(_block(_parts(template), is_nested=False), data))


_Node = str | tuple[str, "list[_Node] | None"]
"""Text; or a path, with the nodes for each of its values if it is that of a range."""


def _parts(template: str) -> Iterator[tuple[str | None, str]]:
    """The action in each pair of braces, and the text between them."""
    for part in _in_a_row(_PARTS, template):
        yield part["action"], part["text"] or ""


def _block(parts: Iterator[tuple[str | None, str]], *, is_nested: bool) -> list[_Node]:
    nodes: list[_Node] = []
    for action, text in parts:
        if action is None:
            nodes.append(text)
        elif action == "end" and is_nested:
            return nodes
        elif action.startswith('"'):
            nodes.append(_unquoted(action))
        elif action.startswith(_RANGE):
            nodes.append((_path(action.removeprefix(_RANGE).strip()), _block(parts, is_nested=True)))
        else:
            nodes.append((_path(action), None))
    if is_nested:
        _reject("{range} has no {end}")
    return nodes


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        _reject(f"{text} is no quoted text")


def _path(action: str) -> str:
    path = action.removeprefix("$").removeprefix("@")
    if not action:
        _reject("{} names no field")
    if path not in ("", "."):
        for _ in _in_a_row(_STEPS, path):
            pass
    return path


def _in_a_row(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches that make up all of ``text``."""
    at = 0
    while at < len(text):
        found = pattern.match(text, at)
        if found is None:
            _reject(f"{text[at:]!r} cannot be read")
        yield found
        at = found.end()


def _reject(reason: str) -> NoReturn:
    msg = f"jsonpath: {reason}; an example is {{.policies[*].name}}"
    raise BadTemplateError(msg)


def _written(nodes: list[_Node], data: object) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield node
            continue
        path, body = node
        if body is None:
            yield " ".join(map(_text, _values(path, data)))
        else:
            for value in _values(path, data):
                yield from _written(body, value)


def _values(path: str, data: object) -> list[Any]:
    found = [data]
    for step in _STEPS.finditer(path):
        found = [inner for value in found for inner in _stepped(value, step[1] or step[2], step[3])]
    return found


def _stepped(value: Any, field: str | None, index: str | None) -> Iterator[Any]:
    if index == "*":
        yield from value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    elif index is not None:
        if isinstance(value, list) and -len(value) <= int(index) < len(value):
            yield value[int(index)]
    elif isinstance(value, dict) and value.get(field) is not None:
        yield value[field]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
