"""Schemas of custom kinds: corners that a real server was not asked about."""

from localcluster.kinds.schema import check, set_defaults, unknown_fields


def test_defaults_replace_forbidden_nulls() -> None:
    schema = {"properties": {"a": {"type": "string", "default": "x"}, "b": {"nullable": True, "default": "y"}}}
    value = {"a": None, "b": None}
    set_defaults(value, schema)
    assert value == {"a": "x", "b": None}


def test_defaults_are_not_shared() -> None:
    schema = {"properties": {"a": {"type": "object", "default": {"list": []}}}}
    first: dict = {}
    second: dict = {}
    set_defaults(first, schema)
    set_defaults(second, schema)
    first["a"]["list"].append(1)
    assert second == {"a": {"list": []}}


def test_unknown_fields_are_named_by_path() -> None:
    schema = {
        "properties": {
            "list": {"items": {"type": "object", "properties": {"a": {}}}},
            "map": {"additionalProperties": {"type": "object", "properties": {"b": {}}}},
        }
    }
    value = {"list": [{"a": 1, "x": 2}], "map": {"k": {"b": 1, "y": 2}}, "z": 3}
    assert sorted(unknown_fields(value, schema)) == ["list[0].x", "map.k.y", "z"]


def test_a_pattern_s_dollar_is_the_very_end() -> None:
    schema = {"type": "string", "pattern": "^a$"}
    assert check("a", schema, "x") == []
    assert check("a\n", schema, "x")


def test_bounds() -> None:
    assert check([], {"type": "array", "minItems": 1}, "x")[0].reason == "FieldValueInvalid"
    assert check("", {"type": "string", "minLength": 1}, "x")
    assert check({"a": 1, "b": 2}, {"type": "object", "maxProperties": 1}, "x")[0].reason == "FieldValueTooMany"
    assert check(["a", "a"], {"type": "array", "x-kubernetes-list-type": "set"}, "x")[0].field == "x[1]"
    assert check(True, {"type": "integer"}, "x")
    assert check(5.0, {"type": "integer"}, "x") == []
    assert check(None, {"type": "string", "nullable": True}, "x") == []
