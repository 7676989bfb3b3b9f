"""The state of a machine as one number, for whoever explores every small history. Internals change; only this looks.

Two machines with the same number have the same fields, all the way down, so they behave alike. The other way round
does not hold: a heap with dead entries differs from one without, which only costs time.
"""

import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec

PLAIN = frozenset({int, float, str, bytes, bool, type(None)})
SKIPPED = frozenset({"view", "evaluator", "counts", "_last", "_claim_views", "_reports", "_verdicts", "_timings"})
"""Fields that repeat others, are set once, or remember what can be computed again."""
OPAQUE = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    type,
    WeakKeyDictionary,
    WeakValueDictionary,
)
Reader = Callable[[Any, dict[int, Any]], Any]


def fingerprint(machine: Any, constants: Iterable[Any] = ()) -> int:
    """A number for everything that a machine holds. ``constants`` never change, and are known by their place."""
    seen: dict[int, Any] = {id(one): ("constant", place) for place, one in enumerate(constants)}
    return number_of(_canonical(machine, seen))


def number_of(value: Any) -> int:
    """A number for plain values, the same in every process."""
    return int.from_bytes(blake2b(msgspec.msgpack.encode(value), digest_size=8).digest())


def _canonical(value: Any, seen: dict[int, Any]) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return value
    reader = _readers.get(kind)
    if reader is None:
        reader = _readers[kind] = _reader(value)
    return reader(value, seen)


def _reader(value: Any) -> Reader:
    """How values of this type are read."""
    if isinstance(value, Enum):
        return lambda one, _: one.value
    if isinstance(value, OPAQUE) or callable(value):
        return lambda _, __: None
    if isinstance(value, Mapping):
        return _read_mapping
    if isinstance(value, set | frozenset):
        return lambda one, seen: tuple(sorted([repr(_canonical(item, seen)) for item in one]))
    if isinstance(value, msgspec.Struct):
        return _fields_of([*value.__struct_fields__])
    names = [name for one in type(value).__mro__ for name in getattr(one, "__slots__", ()) if name != "__weakref__"]
    names += [*getattr(value, "__dict__", ())]
    if names and not isinstance(value, tuple):
        return _fields_of(names)
    return lambda one, seen: tuple([_canonical(item, seen) for item in one])


def _read_mapping(value: Any, seen: dict[int, Any]) -> Any:
    return tuple([(_canonical(key, seen), _canonical(one, seen)) for key, one in value.items()])


def _fields_of(names: list[str]) -> Reader:
    read = [name for name in names if name not in SKIPPED]

    def reader(value: Any, seen: dict[int, Any]) -> Any:
        known = seen.get(id(value))
        if known is not None:
            return known
        seen[id(value)] = ("again", len(seen))
        return tuple([_canonical(getattr(value, name), seen) for name in read])

    return reader


_readers: dict[type, Reader] = {}
