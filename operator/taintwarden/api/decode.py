"""Decoding of plain JSON values into structs, which finds all errors of fields, not only the first.

``msgspec.convert`` stops at the first fault, so its type information is walked instead. A rule about several fields is
checked only if all of these are valid. As in the API server, a null counts as absent for a field that is not nullable.
"""

import math
from collections.abc import Iterable, Mapping, Sized
from difflib import get_close_matches
from typing import Any, TypeVar

from msgspec import UNSET, inspect

from taintwarden.fields.field_errors import MAX_FOUND, QUOTE, ErrorType, FieldError, join, too_long, too_many

T = TypeVar("T")

MIN_INT64 = -(2**63)
MAX_INT64 = 2**63 - 1
MAX_UNKNOWN_FIELDS = 3
"""Maximum number of unknown fields of one object that are named. More are another mistake, or made to cost time."""
LONGEST_TYPO = 64
"""Maximum length of a text that is compared with valid names, which takes time in proportion to its square."""


class _Invalid:
    """Placeholder for a value that could not be decoded; its errors are recorded."""


_INVALID = _Invalid()


def decode(value: object, wanted: type[T], path: str = "") -> tuple[T | None, tuple[FieldError, ...]]:
    """Decode ``value`` as the struct type ``wanted``. Return it and no errors, or None and the first errors."""
    walk = _Walk()
    decoded = walk.visit(value, _type_info(wanted), path)
    return (None if walk.errors else decoded), tuple(walk.errors)


_TYPES: dict[object, inspect.Type] = {}


def _type_info(wanted: object) -> inspect.Type:
    """Return the type information. It is cached, because looking it up takes longer than decoding a toleration."""
    if wanted not in _TYPES:
        _TYPES[wanted] = inspect.type_info(wanted)
    return _TYPES[wanted]


class _Walk:
    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def visit(self, value: object, wanted: inspect.Type, path: str) -> Any:  # noqa: C901 - a table of types
        match wanted:
            case inspect.Metadata():
                return self._checked(value, wanted, path)
            case inspect.UnionType():
                return self._union(value, wanted, path)
            case inspect.StructType():
                return self._struct(value, wanted, path)
            case inspect.VarTupleType():
                return self._list(value, wanted, path)
            case inspect.DictType():
                return self._map(value, wanted, path)
            case inspect.EnumType():
                choices = {str(member.value): member for member in wanted.cls}
                return self._choice(value, choices, path)
            case inspect.LiteralType():
                return self._choice(value, {str(one): one for one in wanted.values}, path)
            case inspect.StrType():
                return self._string(value, wanted, path)
            case inspect.IntType():
                return self._integer(value, wanted, path)
            case inspect.FloatType():
                return self._number(value, wanted, path)
            case inspect.BoolType():
                return value if isinstance(value, bool) else self._fail(path, value, "must be true or false")
            case inspect.AnyType():
                return value
        raise TypeError(f"{wanted} is not used in the API")

    def _fail(self, path: str, value: object, reason: str, remedy: str = "") -> _Invalid:
        self.errors.append(FieldError(path, value, reason, remedy))
        return _INVALID

    def _checked(self, value: object, wanted: inspect.Metadata, path: str) -> Any:
        decoded = self.visit(value, wanted.type, path)
        check = (wanted.extra or {}).get("check")
        if decoded is _INVALID or check is None:
            return decoded
        found: Iterable[FieldError] = [error.below(path) for error in check(decoded)]
        self.errors.extend(found)
        return _INVALID if found else decoded

    def _union(self, value: object, wanted: inspect.UnionType, path: str) -> Any:
        """Decode ``T | None``, or Kubernetes' IntOrString: a number, or a percentage."""
        if value is None:
            return None
        inner, *others = (kind for kind in wanted.types if not isinstance(kind, inspect.NoneType))
        if not others:
            return self.visit(value, inner, path)
        assert isinstance(inner, inspect.IntType), "only T | None and int | str are used in the API"  # noqa: S101
        if isinstance(value, str):
            return self.visit(value, others[0], path)
        remedy = 'write for example 2 or "25%"'
        if isinstance(value, float):  # here the API server rejects even 2.0
            return self._fail(path, value, "must be a whole number", remedy)
        return self._integer(value, inner, path, remedy)

    def _struct(self, value: object, wanted: inspect.StructType, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._fail(path, value, "must be an object")
        fields = {field.encode_name: field for field in wanted.fields}
        decoded: dict[str, Any] = {}
        for name, field in fields.items():
            given = value.get(name)
            if given is not None or (name in value and _is_nullable(field.type)):
                decoded[field.name] = self.visit(given, field.type, join(path, name))
            elif field.required:
                decoded[field.name] = self._fail(join(path, name), UNSET, "must be specified")
        unknown = [name for name in value if name not in fields] if wanted.forbid_unknown_fields else []
        if len(unknown) > MAX_UNKNOWN_FIELDS:
            self._fail(path, unknown[0], f"has {len(unknown)} unknown fields", f"known fields: {', '.join(fields)}")
        else:
            for name in unknown:
                self._fail(join(path, str(name)), value[name], "unknown field", _suggest(str(name), fields))
        if unknown or any(one is _INVALID for one in decoded.values()):
            return _INVALID
        return wanted.cls(**decoded)

    def _list(self, value: object, wanted: inspect.VarTupleType, path: str) -> Any:
        if not isinstance(value, list | tuple):
            return self._fail(path, value, "must be a list")
        if not self._fits(value, wanted, path):
            return _INVALID
        decoded = []
        for index, one in enumerate(value):
            if len(self.errors) >= MAX_FOUND:
                return _INVALID
            decoded.append(self.visit(one, wanted.item_type, f"{path}[{index}]"))
        return _INVALID if any(one is _INVALID for one in decoded) else tuple(decoded)

    def _map(self, value: object, wanted: inspect.DictType, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._fail(path, value, "must be an object")
        if not self._fits(value, wanted, path):
            return _INVALID
        decoded = {
            self.visit(key, wanted.key_type, path): self.visit(one, wanted.value_type, f"{path}[{key}]")
            for key, one in value.items()
        }
        return _INVALID if _INVALID in decoded or any(one is _INVALID for one in decoded.values()) else decoded

    def _choice(self, value: object, choices: Mapping[str, Any], path: str) -> Any:
        if isinstance(value, str) and value in choices:
            return choices[value]
        reason = "supported values: " + ", ".join(f'"{one}"' for one in choices)
        near = nearest(value, choices) if isinstance(value, str) and len(choices) > 1 else None
        remedy = f"write {near}" if near else ""
        self.errors.append(FieldError(path, value, reason, remedy, ErrorType.NOT_SUPPORTED))
        return _INVALID

    def _string(self, value: object, wanted: inspect.StrType, path: str) -> Any:
        if not isinstance(value, str):
            # The remedy does not repeat the value: in YAML 1.30 and 010 are other texts than the numbers 1.3 and 8.
            return self._fail(path, value, "must be a string", QUOTE if isinstance(value, int | float) else "")
        return value if self._fits(value, wanted, path) else _INVALID

    def _integer(self, value: object, wanted: inspect.IntType, path: str, remedy: str = "") -> Any:
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        if isinstance(number, bool) or not isinstance(number, int):
            return self._fail(path, value, "must be a whole number", remedy or _without_quotes(value))
        low = MIN_INT64 if wanted.ge is None else wanted.ge
        high = MAX_INT64 if wanted.le is None else wanted.le
        return number if low <= number <= high else self._fail(path, value, _between(str(low), str(high)), remedy)

    def _number(self, value: object, wanted: inspect.FloatType, path: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._fail(path, value, "must be a number", _without_quotes(value))
        low = -math.inf if wanted.ge is None else wanted.ge
        high = math.inf if wanted.le is None else wanted.le
        # Written so that NaN fails; and an int is compared before float() could overflow.
        if low <= value <= high:
            return float(value)
        return self._fail(path, value, _between(_decimal(low), _decimal(high)))

    def _fits(self, value: Sized, wanted: inspect.StrType | inspect.VarTupleType | inspect.DictType, path: str) -> bool:
        least, most = wanted.min_length, wanted.max_length
        if most is not None and len(value) > most:
            fault = too_long(path, value, most) if isinstance(value, str) else too_many(path, len(value), most)
            self.errors.append(fault)
            return False
        if least is not None and len(value) < least:
            unit = "character" if isinstance(value, str) else "item"
            self._fail(path, value, f"must have at least {least} {unit}{'s' if least > 1 else ''}")
            return False
        return True


def _is_nullable(wanted: inspect.Type) -> bool:
    while isinstance(wanted, inspect.Metadata):
        wanted = wanted.type
    return isinstance(wanted, inspect.UnionType) and any(isinstance(kind, inspect.NoneType) for kind in wanted.types)


def _between(low: str, high: str) -> str:
    """Return the rule of a range, in the words of apimachinery's ``InclusiveRangeError``."""
    return f"must be between {low} and {high}, inclusive"


def _decimal(number: float) -> str:
    """Return ``number`` without an exponent, such as 0.00001 or 10000."""
    return f"{number:f}".rstrip("0").rstrip(".")


def _without_quotes(value: object) -> str:
    is_number = isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii()
    return f"write {value}, without quotes" if is_number else ""


def nearest(text: str, known: Iterable[str]) -> str | None:
    """Return the one of ``known`` that was probably meant, ignoring case; None if there is none."""
    if len(text) > LONGEST_TYPO:
        return None
    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(text.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None


def _suggest(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"did you mean {near}?" if near else f"known fields: {', '.join(known)}"
