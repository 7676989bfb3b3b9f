"""JSON merge patch (RFC 7386), and strategic merge patch as far as the operator and the quick start use it.

Rules: `k8s.io/apimachinery/pkg/util/strategicpatch`. Refused are directives other than the deletion of an
item, and lists not named below, since the schemas here have no merge strategies. Forbidden here: rules of a kind.
"""

from typing import Any

from localcluster.errors import bad_request, not_served

_REPLACED = frozenset({"taints", "tolerations"})
_KEYED = {"conditions": "type"}


def merge_patch(target: Any, patch: Any, *, strategic: bool = False) -> Any:
    """Return the target merged with the patch, in which null deletes. Raises 400 and 501 for a strategic patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if strategic and name.startswith("$"):
            raise not_served(f"the directive {name} of a strategic merge patch")
        if value is None:
            result.pop(name, None)
        elif strategic and isinstance(value, list) and name not in _REPLACED:
            result[name] = _merge_list(name, result.get(name) or [], value)
        else:
            result[name] = merge_patch(result.get(name), value, strategic=strategic)
    return result


def _merge_list(name: str, live: list[Any], patch: list[Any]) -> list[Any]:
    """Merge a list by key. Patched items get the order of the patch; each other one stays before its next successor."""
    key = _KEYED.get(name)
    if key is None:
        raise not_served(f"a strategic merge patch of the list {name}")
    if not all(isinstance(one, dict) and key in one for one in patch):
        raise bad_request(f"map: {patch} does not contain declared merge key: {key}")
    gone = [one[key] for one in patch if one.get("$patch") == "delete"]
    live, patch = ([one for one in some if one[key] not in gone] for some in (live, patch))
    position = {item[key]: index for index, item in enumerate(live)}
    result = [
        merge_patch(live[position[one[key]]] if one[key] in position else {}, one, strategic=True) for one in patch
    ]
    start = 0
    for index, item in enumerate(live):
        if any(one[key] == item[key] for one in patch):
            continue
        later = (at for at in range(start, len(result)) if position.get(result[at][key], -1) > index)
        start = next(later, len(result))
        result.insert(start, item)
        start += 1
    return result
