"""A copy of a machine as bytes, from which it can be continued as often as wanted. Faster than to play it again."""

import io
import pickle
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

CODE = (type, FunctionType, BuiltinFunctionType)


class Snapshots:
    """Take and continue copies. ``constants`` and all code are shared by the copies, not copied."""

    def __init__(self, constants: Iterable[Any] = ()) -> None:
        self.shared = [*constants]
        self.place = {id(one): place for place, one in enumerate(self.shared)}

    def take(self, value: Any) -> bytes:
        """All that ``value`` refers to."""
        buffer = io.BytesIO()
        _Writer(self, buffer).dump(value)
        return buffer.getvalue()

    def continued(self, snapshot: bytes) -> Any:
        """Another copy of what was taken."""
        return _Reader(self, snapshot).load()

    def place_of(self, one: Any) -> int | None:
        """Where a shared value is, or None for what has to be copied."""
        place = self.place.get(id(one))
        if place is None and isinstance(one, CODE):
            place = self.place[id(one)] = len(self.shared)
            self.shared.append(one)
        return place


class _Writer(pickle.Pickler):
    def __init__(self, snapshots: Snapshots, buffer: io.BytesIO) -> None:
        super().__init__(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        self.persistent_id = snapshots.place_of  # type: ignore[method-assign,assignment]

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, WeakValueDictionary):
            return (WeakValueDictionary, (dict(value),))
        if isinstance(value, WeakKeyDictionary):  # what can be computed again, so a copy has an empty one
            return (WeakKeyDictionary, ())
        return NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(self, snapshots: Snapshots, snapshot: bytes) -> None:
        super().__init__(io.BytesIO(snapshot))
        self.persistent_load = snapshots.shared.__getitem__  # type: ignore[method-assign,assignment]
