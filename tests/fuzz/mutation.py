"""JSON changed as JSON: bytes that are flipped mostly end in the parser's first line."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    1e308,
    "",
    "a" * 300,
    "\x1b[31m\u202e",
    "\ud800",
    "0950",
    "1.2.3-",
    "9" * 5000,
    [],
    {},
    [[]],
    {"": {}},
    "2026-01-01T00:00:00+99:99",
]
LONG = 200


def mutate(data: bytes, max_size: int, seed: int, other: Callable[[bytes, int], bytes]) -> bytes:
    """``data`` with one to three parts changed; where it is not JSON, what ``other`` makes of it."""
    chance = random.Random(seed)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return other(data, max_size)
    if chance.random() < 0.3:
        return other(data, max_size)
    for _ in range(chance.randint(1, 3)):
        found = _changed(found, chance)
    made = json.dumps(found).encode()
    return made if len(made) <= max_size else other(data, max_size)


def _changed(value: Any, chance: random.Random) -> Any:
    """The value with a part replaced, doubled, removed, or made long."""
    inner = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not inner or chance.random() < 0.2:
        return copy.deepcopy(chance.choice(ODD))
    name = chance.choice(inner)
    match chance.randint(0, 5):
        case 0:
            del value[name]
        case 1 if isinstance(value, list):
            value.extend([copy.deepcopy(value[name]) for _ in range(chance.choice([1, LONG]))])
        case 2 if isinstance(value, dict):
            value[str(name) + chance.choice(["x", "", "."])] = copy.deepcopy(value[chance.choice(inner)])
        case _:
            value[name] = _changed(value[name], chance)
    return value
