"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902).

Forbidden here: knowing that the documents are Kubernetes objects.
"""

from copy import deepcopy
from typing import Any

from taintwarden.localcluster.errors import ApiError


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch merged into it; null deletes."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """The target after all operations, in order. Raises a 422 for one that does not fit."""
    if not isinstance(operations, list):
        raise _unfit("a JSON patch is a list of operations")
    box = {"": deepcopy(target)}
    for operation in operations:
        try:
            _operate(box, operation)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise _unfit(f"the server rejected our request due to an error in our request ({error})") from error
    return box[""]


def _unfit(message: str) -> ApiError:
    return ApiError(422, "Invalid", message)


def _operate(box: dict[str, Any], operation: dict[str, Any]) -> None:
    name = operation["op"]
    path = _pointer(operation["path"])
    if name == "test":
        if _get(box, path) != operation.get("value"):
            raise ValueError(f"testing path {operation['path']} failed")
    elif name == "remove":
        _remove(box, path)
    elif name == "add":
        _add(box, path, operation.get("value"))
    elif name == "replace":
        _get(box, path)
        _remove(box, path)
        _add(box, path, operation.get("value"))
    elif name in {"move", "copy"}:
        source = _pointer(operation["from"])
        value = deepcopy(_get(box, source))
        if name == "move":
            _remove(box, source)
        _add(box, path, value)
    else:
        raise ValueError(f"unexpected operation {name!r}")


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(f"bad path {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")]


def _get(container: Any, path: list[str]) -> Any:
    for part in path:
        container = container[int(part)] if isinstance(container, list) else container[part]
    return container


def _add(box: Any, path: list[str], value: Any) -> None:
    parent = _get(box, path[:-1])
    if isinstance(parent, list):
        position = len(parent) if path[-1] == "-" else int(path[-1])
        if position > len(parent):
            raise IndexError(f"index {position} out of bounds")
        parent.insert(position, value)
    else:
        parent[path[-1]] = value


def _remove(box: Any, path: list[str]) -> None:
    parent = _get(box, path[:-1])
    if isinstance(parent, list):
        del parent[int(path[-1])]
    else:
        del parent[path[-1]]
