"""The CRDs and the structs agree in each field: names, types, defaults, choices, bounds, expressions."""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import hypothesis
import msgspec
import pytest
import yaml
from hypothesis import strategies as st
from msgspec import inspect

from taintwarden.api import window_schedules
from taintwarden.api.profiles import ProfileSpec
from taintwarden.api.status import (
    MAX_CAUSE_LENGTH,
    MAX_PAST,
    MAX_RESERVED,
    PolicyStatus,
    ProfileStatus,
)
from taintwarden.api.types import (
    GROUP,
    POLICY_KIND,
    POLICY_PLURAL,
    PROFILE_KIND,
    VERSION,
    LabelSelectorSpec,
    PolicySpec,
    WindowSpec,
    check_version_label,
)
from taintwarden.engine.natural import explain_natural
from taintwarden.engine.numeric import parse_integer
from taintwarden.engine.reported_status import MAX_BLOCKED_BUDGETS, MAX_ZONES, NEXT_PODS
from taintwarden.engine.versions import explain_version
from taintwarden.fields import names
from taintwarden.fields.spec import no_duplicates

Facts = dict[str, Any]


def definition(plural: str) -> Facts:
    found: Facts = yaml.safe_load((Path(__file__).parents[2] / "crds" / f"{plural}.yaml").read_text())
    return found


def schema_of(crd: Facts) -> Facts:
    properties: Facts = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return properties


CRDS = {POLICY_KIND: definition(POLICY_PLURAL), PROFILE_KIND: definition("tolerationprofiles")}
SCHEMAS = {kind: schema_of(crd) for kind, crd in CRDS.items()}
SCHEMA = SCHEMAS[POLICY_KIND]
BOUNDS = ("minimum", "maximum", "minItems", "maxItems", "maxLength", "maxProperties")
PATTERNS = {
    names.check_key: names.KEY,
    names.check_label_key: names.KEY,
    check_version_label: names.KEY,
    names.check_key_selector: names.KEY_SELECTOR,
    names.check_driver: names.DNS_SUBDOMAIN,
    names.check_label_value: names.LABEL_VALUE,
    names.check_namespace: names.NAMESPACE,
    names.check_percentage: names.PERCENTAGE,
}
# Checked together with the schedule of the window.
DURATIONS = {"spec.windows[].duration": {"pattern": window_schedules.DURATION}}
# Bounds of the CRD that the structs, with which the operator writes the status, do not need.
STATUS_BOUNDS = ("maxLength", "minLength", "maxItems")


def of_schema(schema: Facts, path: str) -> Iterator[tuple[str, Facts]]:
    """Yield each field below with its facts in the CRD."""
    facts = {name: schema[name] for name in (*BOUNDS, "default", "nullable", "type") if name in schema}
    if schema.get("x-kubernetes-int-or-string"):
        facts["type"] = "int-or-string"
    if "enum" in schema:
        facts["enum"] = set(schema["enum"])
    if schema.get("x-kubernetes-list-type") == "set":
        facts["set"] = True
    rules = " ".join(rule["rule"] for rule in schema.get("x-kubernetes-validations", ()))
    found = re.search(r"(\w+)\.matches\(r'\^\((.*)\)\$'\)", rules)
    if found and found[1] == "self":
        facts["pattern"] = found[2]
    yield path, facts
    if found and found[1] == "key":
        yield f"{path}{{key}}", {"pattern": found[2]}
    for name, inner in schema.get("properties", {}).items():
        for below, said in of_schema(inner, f"{path}.{name}"):
            is_field = below == f"{path}.{name}"
            yield below, {**said, "required": True} if is_field and name in schema.get("required", ()) else said
    if "items" in schema:
        yield from of_schema(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from of_schema(schema["additionalProperties"], f"{path}{{}}")


def of_type(wanted: inspect.Type, path: str) -> Iterator[tuple[str, Facts]]:
    """Yield each field below with its facts in the struct."""
    match wanted:
        case inspect.Metadata(type=inner, extra=extra):
            check = (extra or {}).get("check")
            pattern = {"pattern": PATTERNS[check]} if check in PATTERNS else {}
            unique = {"set": True} if check is no_duplicates else {}
            (first, said), *rest = of_type(inner, path)
            yield first, said | pattern | unique
            yield from rest
        case inspect.UnionType(types=types):
            inner, *others = (one for one in types if not isinstance(one, inspect.NoneType))
            (first, said), *rest = of_type(inner, path)
            for other in others:
                ((_, more),) = of_type(other, path)
                said |= more | {"type": "int-or-string"}
            yield first, said
            yield from rest
        case inspect.StructType(fields=fields):
            yield path, {"type": "object"}
            for field in fields:
                (first, said), *rest = of_type(field.type, f"{path}.{field.encode_name}")
                yield first, said | of_field(field)
                yield from rest
        case inspect.VarTupleType(item_type=item, min_length=least, max_length=most):
            yield path, {"type": "array"} | given(minItems=least, maxItems=most)
            yield from of_type(item, f"{path}[]")
        case inspect.DictType(key_type=key, value_type=value, max_length=most):
            yield path, {"type": "object"} | given(maxProperties=most)
            ((_, said),) = of_type(key, "")
            yield f"{path}{{key}}", {"pattern": said["pattern"]}
            yield from of_type(value, f"{path}{{}}")
        case inspect.EnumType(cls=choices):
            yield path, {"type": "string", "enum": {str(one.value) for one in choices}}
        case inspect.StrType(max_length=most):
            yield path, {"type": "string"} | given(maxLength=most)
        case inspect.IntType(ge=low, le=high):
            # The API server reads no number that has more than 64 bits.
            low, high = (None if one in (-(2**63), 2**63 - 1) else one for one in (low, high))
            yield path, {"type": "integer"} | given(minimum=low, maximum=high)
        case inspect.FloatType(ge=low, le=high):
            yield path, {"type": "number"} | given(minimum=low, maximum=high)
        case inspect.BoolType():
            yield path, {"type": "boolean"}


def of_field(field: inspect.Field) -> Facts:
    """Facts of a field besides its type. An empty default is not in the CRD, since absent and empty are equal."""
    if field.required:
        return {"required": True}
    default = field.default
    if default in (None, "", (), LabelSelectorSpec()) or default is msgspec.NODEFAULT:
        return {}
    if isinstance(default, msgspec.Struct) and not any(msgspec.structs.asdict(default).values()):
        return {}
    if isinstance(default, msgspec.Struct):
        return {"default": {}}
    optional = isinstance(field.type, inspect.UnionType)
    return {"default": msgspec.json.decode(msgspec.json.encode(default))} | ({"nullable": True} if optional else {})


def given(**facts: Any) -> Facts:
    return {name: value for name, value in facts.items() if value is not None}


def descriptions(schema: Facts, path: str = "") -> Iterator[tuple[str, str]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}", inner.get("description", "")
        yield from descriptions(inner, f"{path}.{name}")
        yield from descriptions(inner.get("items", {}), f"{path}.{name}[]")


@pytest.mark.parametrize(("kind", "spec"), [(POLICY_KIND, PolicySpec), (PROFILE_KIND, ProfileSpec)])
def test_spec_agrees_with_the_struct(kind, spec):
    in_struct = dict(of_type(inspect.type_info(spec), "spec"))
    for path, facts in DURATIONS.items():
        if path in in_struct:
            in_struct[path] |= facts
    assert dict(of_schema(SCHEMAS[kind]["spec"], "spec")) == in_struct


def server_takes(field: str, text: str) -> bool:
    """Return True if the rule in the CRD for a field of a window accepts a text."""
    (rule,) = SCHEMA["spec"]["properties"]["windows"]["items"]["properties"][field]["x-kubernetes-validations"]
    expression = re.search(r"matches\(r?'(.*)'\)", rule["rule"])
    return bool(expression and re.search(expression[1].removesuffix("$") + r"\Z", text))


def test_the_server_accepts_every_time_zone():
    zones = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    assert "America/Argentina/Buenos_Aires" in zones
    assert [zone for zone in zones if not server_takes("timeZone", zone)] == []


CRON_FIELD = st.from_regex(r"[-*/,0-7LW#A-Za-z?]{1,3}", fullmatch=True) | st.sampled_from(
    ["*", "*/5", "1,15", "22-23,0-6", "L", "LW", "5L", "MON#1", "mon-Fri", "JAN", "feb-MAR/2"]
)


@hypothesis.given(st.lists(CRON_FIELD, min_size=4, max_size=6).map(" ".join))
def test_the_server_accepts_every_schedule_that_the_operator_accepts(schedule):
    errors = list(window_schedules.check_windows([WindowSpec(schedule, "1s")]))
    assert server_takes("schedule", schedule) or any(error.path == "[0].schedule" for error in errors)


STATUS = {
    POLICY_KIND: ((PolicyStatus, "status"),),
    PROFILE_KIND: ((ProfileStatus, "status"),),
}


@pytest.mark.parametrize("kind", CRDS)
def test_status_agrees_with_the_struct(kind):
    in_crd = {
        path: {name: value for name, value in facts.items() if name not in STATUS_BOUNDS}
        for path, facts in of_schema(SCHEMAS[kind]["status"], "status")
    }
    in_struct = {
        path: {name: value for name, value in facts.items() if name != "default"}
        for struct, part in STATUS[kind]
        for path, facts in of_type(inspect.type_info(struct), part)
    }
    assert in_crd == in_struct


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("nextPods", NEXT_PODS),
        ("blockedBudgets", MAX_BLOCKED_BUDGETS),
        ("zones", MAX_ZONES),
        ("guard.evicted", MAX_PAST),
        ("guard.reserved", MAX_RESERVED),
        ("guard.cause", MAX_CAUSE_LENGTH),
    ],
)
def test_lists_and_texts_of_the_status_are_bounded_as_in_the_code(path, most):
    """A status that the server refuses would never be written."""
    schema = SCHEMA["status"]
    for name in path.split("."):
        schema = schema["properties"][name]
    assert schema.get("maxItems", schema.get("maxLength")) == most


@pytest.mark.parametrize("kind", CRDS)
@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_is_described_in_a_sentence(kind, part):
    assert [path for path, text in descriptions(SCHEMAS[kind][part], part) if not text.endswith(".")] == []


@pytest.mark.parametrize(("kind", "plural"), [(POLICY_KIND, POLICY_PLURAL), (PROFILE_KIND, "tolerationprofiles")])
def test_names_equal_those_of_the_package(kind, plural):
    crd = CRDS[kind]
    spec = crd["spec"]
    assert (spec["group"], spec["names"]["kind"], spec["names"]["plural"]) == (GROUP, kind, plural)
    assert [version["name"] for version in spec["versions"]] == [VERSION]
    assert crd["metadata"]["name"] == f"{plural}.{GROUP}"


@pytest.mark.parametrize("kind", CRDS)
def test_columns_lead_to_fields_that_exist(kind):
    paths = [column["jsonPath"] for column in CRDS[kind]["spec"]["versions"][0]["additionalPrinterColumns"]]
    known = {f".{path}" for part in ("spec", "status") for path, _ in descriptions(SCHEMAS[kind][part], part)}
    plain = [re.sub(r"\[[^]]*\]", "[]", path) for path in paths if not path.startswith(".metadata")]
    assert [path for path in plain if path not in known] == []


# -- the rules of a profile for values --------------------------------------------------------------------------------


def value_pattern(word: str) -> str:
    """The expression that values have to match, from the rule of the CRD that names this operator."""
    rules = SCHEMAS[PROFILE_KIND]["spec"]["properties"]["tolerations"]["items"]["x-kubernetes-validations"]
    (rule,) = [one["rule"] for one in rules if word in one["rule"] and "matches" in one["rule"]]
    found = re.search(r"matches\(r'\^(.*?)\$'\)", rule)
    assert found
    return re.sub(r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), found[1])  # RE2 writes characters so


NUMERIC = re.compile(value_pattern("'Gt'"))
VERSION_PATTERN = re.compile(value_pattern("'Semver'"))
SPACES = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2005\u200a\u2028\u2029\u202f\u205f\u3000"
NEAR_VERSION = st.text(alphabet="0019vVar.-+ \x1c\u200b_" + SPACES, max_size=14) | st.from_regex(
    r"[ \u3000]?v?[0-9]{1,3}(\.[0-9]{0,21}){0,3}(-[0-9a-z.-]{0,5})?(\+[0-9a-z.-]{0,5})?[ \u2000]?", fullmatch=True
)
NATURAL_PATTERN = re.compile(value_pattern("'Version'"))
BEYOND_64_BITS = re.compile(r"[0-9]{20}")


@hypothesis.given(NEAR_VERSION)
@hypothesis.example("1.2.-rc")
@hypothesis.example("1.2.+5")
@hypothesis.example("1.2.")
@hypothesis.example("0000000000000000000000000000001.2.3")
@hypothesis.example("1.2.3-01")
@hypothesis.example("1.2.3-0a")
def test_the_server_reads_versions_as_the_operator_does(text):
    taken = bool(VERSION_PATTERN.fullmatch(text))
    assert taken == (explain_version(text) is None) or (taken and BEYOND_64_BITS.search(text))


@hypothesis.given(st.text(alphabet="01aZ-.+~: \t\u0662", max_size=8))
def test_the_server_reads_versions_of_the_natural_order_as_the_operator_does(text):
    assert bool(NATURAL_PATTERN.fullmatch(text)) == (explain_natural(text) is None)


@hypothesis.given(st.text(alphabet="0195-+ .e_", max_size=6) | st.integers().map(str))
def test_the_server_reads_integers_as_the_operator_does(text):
    within = -(2**63) <= int(text) < 2**63 if NUMERIC.fullmatch(text) else False
    assert within == (parse_integer(text) is not None)


def lists_of(schema: Facts, path: str) -> Iterator[tuple[str, Facts]]:
    """Yield each list below."""
    if schema.get("type") == "array":
        yield path, schema
    inner = [(f"{path}.{name}", one) for name, one in schema.get("properties", {}).items()]
    inner += [(f"{path}[]", schema["items"])] if "items" in schema else []
    for below, one in inner:
        yield from lists_of(one, below)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_set_has_scalars_only(kind: str) -> None:
    """The API server accepts a set of objects in a CRD, and then fails each apply to it with status 500."""
    sets = [
        (path, one)
        for path, one in lists_of({"properties": SCHEMAS[kind]}, "")
        if one.get("x-kubernetes-list-type") == "set"
    ]
    assert [path for path, one in sets if one["items"]["type"] == "object"] == []
