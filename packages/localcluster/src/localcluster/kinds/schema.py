"""Structural schemas of custom and built-in kinds: unknown fields, defaults, validation.

Messages follow `k8s.io/kube-openapi/pkg/validation` and `field.Error`. CEL rules (`x-kubernetes-validations`) are not
evaluated. Forbidden here: anything about a particular kind.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from localcluster.errors import Cause, duplicate, required, unsupported, wrong
from localcluster.store.entries import encode

Schema = Mapping[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "number": (int, float),
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)", re.ASCII)


def unknown_fields(value: Any, schema: Schema, path: str = "") -> list[str]:
    """Return the paths of fields that the schema does not define."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [field for index, item in enumerate(value) for field in unknown_fields(item, items, f"{path}[{index}]")]
    if not isinstance(value, dict) or not schema or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    properties, additional = schema.get("properties", {}), schema.get("additionalProperties")
    found = []
    for key, item in value.items():
        below = f"{path}.{key}" if path else key
        if key in properties or isinstance(additional, dict):
            found += unknown_fields(item, properties.get(key, additional), below)
        else:
            found.append(below)
    return found


def set_defaults(value: Any, schema: Schema) -> None:
    """Apply defaults in place, top down. A null that the schema does not allow is replaced by the default, if any."""
    if isinstance(value, list):
        for item in value:
            set_defaults(item, schema.get("items", {}))
    elif isinstance(value, dict):
        for key, below in schema.get("properties", {}).items():
            if "default" in below and (key not in value or (value[key] is None and not below.get("nullable"))):
                value[key] = _copy(below["default"])
            if key in value:
                set_defaults(value[key], below)
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for item in value.values():
                set_defaults(item, additional)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def check(value: Any, schema: Schema, path: str = "") -> list[Cause]:
    """Return all violations of the schema in a value."""
    if value is None and schema.get("nullable"):
        return []
    problem = _type_problem(value, schema, path)
    if problem:
        return [problem]
    causes = _scalar(value, schema, path)
    if isinstance(value, dict):
        causes += _object(value, schema, path)
    elif isinstance(value, list):
        causes += _array(value, schema, path)
    return causes


def _type_problem(value: Any, schema: Schema, path: str) -> Cause | None:
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        kind = "integer" if not isinstance(value, str) else "string"
    if kind is None or _is(value, kind):
        return None
    have = type_name(value)
    shown = f'Invalid value: "{have}": {path} in body must be of type {kind}: "{have}"'
    return Cause("FieldValueTypeInvalid", shown, path)


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    return isinstance(value, _TYPES[kind]) and (kind != "number" or not isinstance(value, bool))


def type_name(value: Any) -> str:
    """Return the JSON name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", dict: "object", list: "array"}
    return names[type(value)]


def _scalar(value: Any, schema: Schema, path: str) -> list[Cause]:
    causes = []
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        causes.append(unsupported(path, value, allowed))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            causes.append(wrong(path, value, f"{path} in body should be greater than or equal to {schema['minimum']}"))
        if "maximum" in schema and value > schema["maximum"]:
            causes.append(wrong(path, value, f"{path} in body should be less than or equal to {schema['maximum']}"))
    if isinstance(value, str):
        causes += _string(value, schema, path)
    return causes


def _string(value: str, schema: Schema, path: str) -> list[Cause]:
    causes = []
    if len(value) < schema.get("minLength", 0):
        causes.append(wrong(path, value, f"{path} in body should be at least {schema['minLength']} chars long"))
    if len(value) > schema.get("maxLength", len(value)):
        limit = schema["maxLength"]
        causes.append(Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path))
    pattern = schema.get("pattern")
    if pattern is not None and not _compiled(pattern).search(value):
        causes.append(wrong(path, value, f"{path} in body should match '{pattern}'"))
    form = schema.get("format")
    if (form in {"time", "date-time"} and not _TIME.fullmatch(value)) or (
        form == "microtime" and not _MICRO_TIME.fullmatch(value)
    ):
        causes.append(wrong(path, value, f"{path} in body must be of type {form}: {encode(value).decode()}"))
    return causes


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), re.ASCII)  # Go's $ matches only the end of the text


def _object(value: dict[str, Any], schema: Schema, path: str) -> list[Cause]:
    prefix = f"{path}." if path else ""
    causes = [required(prefix + name) for name in schema.get("required", ()) if name not in value]
    properties = schema.get("properties", {})
    additional = schema.get("additionalProperties")
    for key, item in value.items():
        below = properties.get(key, additional if isinstance(additional, dict) else None)
        if below:
            causes += check(item, below, prefix + key)
    if len(value) > schema.get("maxProperties", len(value)):
        limit = schema["maxProperties"]
        causes.append(Cause("FieldValueTooMany", f"Too many: {len(value)}: must have at most {limit} items", path))
    return causes


def _array(value: list[Any], schema: Schema, path: str) -> list[Cause]:
    causes = []
    if len(value) < schema.get("minItems", 0):
        limit = schema["minItems"]
        causes.append(wrong(path, len(value), f"{path} in body should have at least {limit} items"))
    if len(value) > schema.get("maxItems", len(value)):
        limit = schema["maxItems"]
        causes.append(Cause("FieldValueTooMany", f"Too many: {len(value)}: must have at most {limit} items", path))
    for index, item in enumerate(value):
        causes += check(item, schema.get("items", {}), f"{path}[{index}]")
    return causes or _duplicates(value, schema, path)


def _duplicates(value: list[Any], schema: Schema, path: str) -> list[Cause]:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in {"map", "set"}:
        return []
    seen = set()
    causes = []
    for index, item in enumerate(value):
        key = encode({name: item.get(name) for name in schema["x-kubernetes-list-map-keys"]} if kind == "map" else item)
        if key in seen:
            causes.append(duplicate(f"{path}[{index}]", key.decode()))
        seen.add(key)
    return causes
