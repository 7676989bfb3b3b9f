"""Strategic merge patch, for built-in kinds only.

Rules: `k8s.io/apimachinery/pkg/util/strategicpatch`. Forbidden here: custom kinds (the API server answers 415).
"""

from typing import Any

from localcluster.errors import bad_request
from localcluster.merge.topology import BuiltIn, Topology

_PATCH = "$patch"
_ORDER = "$setElementOrder/"
_FROM_PRIMITIVES = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"


def strategic_merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The object with the patch merged into it. Raises a 400 for a list item without its merge key."""
    return _merge_map(target, patch, BuiltIn(strategic=True))


def _merge_map(target: dict[str, Any], patch: dict[str, Any], topology: Topology) -> dict[str, Any]:
    directive = patch.get(_PATCH)
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    result = dict(target)
    if _RETAIN in patch:
        result = {key: value for key, value in result.items() if key in patch[_RETAIN]}
    for key, value in patch.items():
        if key.startswith(_FROM_PRIMITIVES):
            name = key.removeprefix(_FROM_PRIMITIVES)
            result[name] = [one for one in result.get(name, []) if one not in value]
        elif not key.startswith("$"):
            _merge_field(result, key, value, topology.field(key))
    for key, value in patch.items():
        name = key.removeprefix(_ORDER)
        order = patch.get(_ORDER + name, value)
        if isinstance(result.get(name), list) and isinstance(target.get(name), list) and isinstance(order, list):
            result[name] = _arranged(result[name], order, target[name], topology.field(name))
    return result


def _merge_field(result: dict[str, Any], key: str, value: Any, topology: Topology) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        have = result.get(key)
        result[key] = _merge_map(have if isinstance(have, dict) else {}, value, topology)
    elif isinstance(value, list):
        have = result.get(key)
        result[key] = _merge_list(have if isinstance(have, list) else [], value, topology)
    else:
        result[key] = value


def _merge_list(have: list[Any], patch: list[Any], topology: Topology) -> list[Any]:
    if topology.is_set:
        return have + [one for one in patch if one not in have]
    if not topology.keys or not all(isinstance(one, dict) for one in patch):
        return patch
    if any(one.get(_PATCH) == "replace" for one in patch):
        return [one for one in patch if _PATCH not in one]
    key = topology.keys[0]
    result = list(have)
    for one in patch:
        if key not in one:
            raise bad_request(f"map: {one} does not contain declared merge key: {key}")
        at = next((index for index, item in enumerate(result) if item.get(key) == one[key]), None)
        if one.get(_PATCH) == "delete":
            result = [item for item in result if item.get(key) != one[key]]
        elif at is None:
            result.append(_merge_map({}, one, topology.item()))
        else:
            result[at] = _merge_map(result[at], one, topology.item())
    return result


def _arranged(items: list[Any], order: list[Any], live: list[Any], topology: Topology) -> list[Any]:
    """Items in the patch in its order; each other item before the first of these that followed it."""

    def key(item: Any) -> Any:
        return item.get(topology.keys[0]) if topology.keys else item

    mergeable = all(isinstance(one, dict) for one in order) if topology.keys else topology.is_set
    if not mergeable:
        return items
    named = {key(one): position for position, one in enumerate(order)}
    lived = {key(one): position for position, one in enumerate(live)}
    result = sorted((item for item in items if key(item) in named), key=lambda item: named[key(item)])
    start = 0
    for item in items:
        if key(item) in named:
            continue
        behind = (i for i in range(start, len(result)) if lived.get(key(result[i]), -1) > lived.get(key(item), -1))
        start = next(behind, len(result))
        result.insert(start, item)
        start += 1
    return result
