"""JSON patches (RFC 6902) as the API server applies them, with the operations add and remove."""

import copy
from collections.abc import Sequence
from typing import Any

from taintwarden_placement.admission.response import PatchOperation


def patched(obj: dict[str, Any], steps: Sequence[PatchOperation]) -> dict[str, Any]:
    found = copy.deepcopy(obj)
    for step in steps:
        *parents, last = (name.replace("~1", "/") for name in step.path.removeprefix("/").split("/"))
        place: Any = found
        for name in parents:
            place = place[name]
        if step.op == "remove":
            del place[last]
            continue
        assert step.op == "add"
        if last == "-":
            place.append(step.value)
        else:
            place[last] = step.value
    return found
