"""JSON paths of printer columns, the simple kind.

Forbidden here: the rest of the language.
"""

from typing import Any


def value_at(value: Any, path: str) -> Any:
    """A JSON path of the simple kind: `.status.conditions[?(@.type=="Ready")].status`, `.spec.taints[*].key`."""
    values = [value]
    for part in _parts(path):
        values = [found for one in values for found in _step(one, part)]
    shown = [str(one) if not isinstance(one, (int, float, bool, str)) else one for one in values if one is not None]
    if not shown:
        return None
    return shown[0] if len(shown) == 1 else ",".join(str(one) for one in shown)


def _parts(path: str) -> list[str]:
    parts: list[str] = []
    depth, current = 0, ""
    for letter in path:
        if letter == "[":
            depth += 1
        if (letter == "." and depth == 0) or (letter == "[" and depth == 1):
            parts.append(current)
            current = ""
        if letter != "." or depth:
            current += letter
        if letter == "]":
            depth -= 1
    return [part for part in [*parts, current] if part]


def _step(value: Any, part: str) -> list[Any]:
    if not part.startswith("["):
        return [value[part]] if isinstance(value, dict) and part in value else []
    if not isinstance(value, list):
        return []
    inner = part[1:-1]
    if inner.startswith("?(@."):
        name, _, wanted = inner[4:-1].partition("==")
        return [one for one in value if str(one.get(name.strip())) == wanted.strip().strip("\"'")]
    return value if inner == "*" else value[int(inner) : int(inner) + 1]
