"""JSON merge patch (RFC 7386).

Forbidden here: rules of Kubernetes objects.
"""

from typing import Any


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
