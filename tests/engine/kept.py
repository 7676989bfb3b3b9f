"""What an object holds on to: for tests that nothing is kept of what is gone, wherever it may be kept."""

import gc
from collections import deque
from collections.abc import Collection
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import msgspec

_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType)


def kept(root: object, *names: str) -> list[str]:
    """Where `root` holds on to one of these names, by itself or as a part of a key such as ``shop/NAME``.

    Returns the types of the objects on the way, such as ``Machine > World > dict > Pod: uid-a``.
    """
    holders: dict[int, object] = {id(root): None}
    waiting, found = deque([root]), []
    while waiting:
        one = waiting.popleft()
        if isinstance(one, str) and not set(names).isdisjoint((one, *one.split("/"))):
            found.append(f"{_way(holders, one)}: {one}")
        for part in _parts(one):
            if id(part) not in holders and not isinstance(part, _CODE):
                holders[id(part)] = one
                waiting.append(part)
    return found


def _parts(one: Any) -> Collection[object]:
    if isinstance(one, MethodType):
        return [one.__self__]
    if isinstance(one, dict):  # of keys that are texts the collector knows nothing
        return [*one, *one.values()]
    if isinstance(one, msgspec.Struct):  # the collector does not know the parts of all of them
        return [getattr(one, name) for name in one.__struct_fields__]
    return gc.get_referents(one)


def _way(holders: dict[int, object], one: object) -> str:
    way = []
    while (one := holders[id(one)]) is not None:
        way.append(type(one).__name__)
    return " > ".join(reversed(way))
