"""A JSON patch (RFC 6902) as the API server applies it, as far as ours goes: adding."""

import copy
from collections.abc import Sequence
from typing import Any

from taintwarden.admission.response import PatchOperation


def patched(obj: dict[str, Any], steps: Sequence[PatchOperation]) -> dict[str, Any]:
    found = copy.deepcopy(obj)
    for step in steps:
        assert step.op == "add"
        *parents, last = step.path.removeprefix("/").split("/")
        place: Any = found
        for name in parents:
            place = place[name]
        if last == "-":
            place.append(step.value)
        else:
            place[last] = step.value
    return found
