"""Objects that an object holds on to: for tests that nothing is kept of what is gone, wherever it may be kept."""

import gc
from collections import deque
from collections.abc import Collection
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec

_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType)


def kept(root: object, *names: str, without: object = None) -> list[str]:
    """Where `root` holds on to one of these names, by itself or as a part of a key such as ``shop/NAME``.

    What only `without` holds does not count. Returns the types of the objects on the way, such as ``Machine > World >
    dict > Pod: uid-a``.
    """
    holders: dict[int, object] = {id(root): None}
    waiting, found, sought = deque([root]), [], set(names)
    while waiting:
        one = waiting.popleft()
        if one is without:
            continue
        if isinstance(one, str) and not sought.isdisjoint((one, *one.split("/"))):
            found.append(f"{_way(holders, one)}: {one}")
        for part in _parts(one):
            if id(part) not in holders and not isinstance(part, _CODE):
                holders[id(part)] = one
                waiting.append(part)
    return found


def held(*roots: object, without: object = None) -> int:
    """Number of objects that these hold on to, each counted once; without those held by `without` alone, or weakly."""
    seen = {id(one) for one in (*roots, without)}
    waiting = list(roots)
    while waiting:
        for part in _parts(waiting.pop()):
            if id(part) not in seen and not isinstance(part, (*_CODE, WeakKeyDictionary, WeakValueDictionary)):
                seen.add(id(part))
                waiting.append(part)
    return len(seen)


def _parts(one: Any) -> Collection[object]:
    if isinstance(one, MethodType):
        return [one.__self__]
    if isinstance(one, dict):  # the collector does not return keys that are texts
        return [*one, *one.values()]
    if isinstance(one, msgspec.Struct):  # the collector does not know the parts of all of them
        return [getattr(one, name) for name in one.__struct_fields__]
    return gc.get_referents(one)


def _way(holders: dict[int, object], one: object) -> str:
    way = []
    while (one := holders[id(one)]) is not None:
        way.append(type(one).__name__)
    return " > ".join(reversed(way))
