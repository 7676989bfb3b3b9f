"""Descriptions of a field's schema in words: type, choices, bounds, default."""

import json
from typing import Any

from reference.markdown import code

Schema = dict[str, Any]


def is_selector(schema: Schema) -> bool:
    """True for a label selector of Kubernetes, which a page describes only once."""
    return set(schema.get("properties", {})) == {"matchLabels", "matchExpressions"}


def values(schema: Schema) -> str:
    """Return the possible values, such as ``integer, 0 to 3600`` or ``list of `Evict`, `Delete`, 1 to 2 entries``."""
    if is_selector(schema):
        return "[selector](#selectors)"
    if "enum" in schema:
        return ", ".join(code(str(one)) for one in schema["enum"])
    if "items" in schema:
        return _array(schema)
    if "additionalProperties" in schema:
        inner = _nested(schema["additionalProperties"])
        return f"map of text to {inner}{_bounds(schema, 'minProperties', 'maxProperties', 'pairs')}"
    if schema.get("x-kubernetes-int-or-string"):
        bounds = _bounds(schema, "minimum", "maximum").removeprefix(", ")
        return f"integer ({bounds}) or text" if bounds else "integer or text"
    name = {"string": "text", "object": "group"}.get(schema["type"], str(schema["type"]))
    if schema.get("format") == "date-time":
        name = "time"
    found = name + _bounds(schema, "minimum", "maximum") + _bounds(schema, "minLength", "maxLength", "characters")
    return found + (" or null" if schema.get("nullable") else "")


def default(schema: Schema, *, required: bool) -> str:
    """Return ``required``, the default as YAML, or an empty text without a default."""
    if required:
        return "required"
    if "default" not in schema or schema["default"] == {}:
        return ""
    value = schema["default"]
    return code(value if isinstance(value, str) else json.dumps(value).replace('"', ""))


def _array(schema: Schema) -> str:
    items = schema["items"]
    of = "groups" if "properties" in items else _nested(items)
    return f"list of {of}{_bounds(schema, 'minItems', 'maxItems', 'entries')}"


def _nested(schema: Schema) -> str:
    """Return the values of an inner schema, with its bounds in brackets."""
    name, comma, bounds = values(schema).partition(", ")
    return values(schema) if "enum" in schema or not comma else f"{name} ({bounds})"


def _bounds(schema: Schema, low: str, high: str, unit: str = "") -> str:
    least, most = schema.get(low), schema.get(high)
    unit = f" {unit}" if unit else ""
    if most is None:
        return "" if least is None else f", {_number(least)}{unit} or more"
    if least is None or (unit and not least):
        return f", at most {_number(most)}{unit}"
    return f", {_number(least)} to {_number(most)}{unit}"


def _number(value: float) -> str:
    return f"{value:.5f}".rstrip("0") if isinstance(value, float) and not value.is_integer() else str(int(value))
