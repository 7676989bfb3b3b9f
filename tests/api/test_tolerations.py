import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.api.annotations import MAX_CHARACTERS, MAX_FAULTS
from taintwarden.api.tolerations import (
    MAX_TOLERATIONS,
    _faults,
    _given,
    _valid,
    parse_tolerations,
)
from taintwarden.engine.model import Toleration
from taintwarden.engine.operators import Operator
from work import steps

PATH = "metadata.annotations[taintwarden.io/tolerations]"
GT = {"key": "sla", "operator": "Gt", "value": "950"}
EXISTS = {"key": "a", "operator": "Exists"}


def parse(*entries: Any) -> tuple[tuple[Toleration, ...], list[str]]:
    tolerations, errors = parse_tolerations(json.dumps(entries))
    return tolerations, [str(error) for error in errors]


def faults(*entries: Any) -> list[str]:
    return [fault.removeprefix(PATH) for fault in parse(*entries)[1]]


def test_every_field_arrives():
    entry = GT | {"effect": "NoExecute", "tolerationSeconds": 30, "violationGraceSeconds": 60}
    assert parse(entry) == ((Toleration("sla", "Gt", "950", "NoExecute", 30, 60),), [])


@pytest.mark.parametrize(
    "entry",
    [
        {"operator": "Exists"},
        {"key": "", "operator": "Exists", "value": "", "effect": ""},
        {"key": "sla", "value": "high"},
        {"key": "sla", "operator": "", "value": ""},
        GT | {"tolerationSeconds": None},
    ],
)
def test_valid_entry_is_kept(entry):
    tolerations, errors = parse(entry)
    assert (len(tolerations), errors) == (1, [])


def test_empty_operator_is_equal():
    ((toleration,), _) = parse({"key": "sla", "operator": "", "value": "a"})
    assert toleration.operator is Operator.EQUAL


FAULTS: list[tuple[Any, str, str, str]] = [
    (GT | {"value": "0950"}, ".value", '"0950"', "leading zeros are not allowed: write 950, not 0950"),
    (GT | {"value": "-0"}, ".value", '"-0"', "zero may not have a minus sign: write 0"),
    (GT | {"value": 950}, ".value", "950", "must be a string; put it in quotes"),
    (GT | {"value": ""}, ".value", '""', "an integer is required, for example 950"),
    (
        EXISTS | {"value": "x"},
        ".value",
        '"x"',
        "must be empty when operator is Exists; remove it, or use another operator",
    ),
    (
        GT | {"violationGraceSeconds": -1},
        ".violationGraceSeconds",
        "-1",
        f"must be between 0 and {2**63 - 1}, inclusive",
    ),
    (GT | {"tolerationseconds": 5}, ".tolerationseconds", "5", "unknown field; did you mean tolerationSeconds?"),
    (
        GT | {"tolerationSeconds": "30"},
        ".tolerationSeconds",
        '"30"',
        "must be a whole number; write 30, without quotes",
    ),
    ("sla", "", '"sla"', "must be an object"),
    (None, "", "null", "must be an object"),
]


@pytest.mark.parametrize(("entry", "field", "value", "why"), FAULTS)
def test_fault_is_reported_with_its_remedy(entry, field, value, why):
    assert faults(entry) == [f"[0]{field}: Invalid value: {value}: {why}"]


@pytest.mark.parametrize(("entry", "operator"), [({"operator": "Gt", "value": "1"}, "Gt"), ({"value": "1"}, "Equal")])
def test_a_missing_key_is_required(entry, operator):
    needed = f"must be specified when operator is {operator}; only Exists may omit it"
    assert faults(entry) == [f"[0].key: Required value: {needed}"]


def test_an_unknown_operator_names_the_supported_ones():
    listed = ", ".join(f'"{one}"' for one in Operator)
    (message,) = faults(GT | {"operator": "GreaterThan"})
    assert message == f'[0].operator: Unsupported value: "GreaterThan": supported values: {listed}'


def test_a_violation_grace_without_a_comparison_is_forbidden():
    (message,) = faults(EXISTS | {"violationGraceSeconds": 5})
    reason = "may not be specified when operator is Exists; use it with a comparison"
    assert message == f"[0].violationGraceSeconds: Forbidden: {reason}"


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        (GT | {"key": 1}, "[0].key"),
        (GT | {"tolerationSeconds": 2**63}, "[0].tolerationSeconds"),
        (GT | {"tolerationSeconds": 1e30}, "[0].tolerationSeconds"),
    ],
)
def test_fault_is_reported_at_its_field(entry, path):
    assert [fault.split(": ")[0] for fault in faults(entry)] == [path]


def test_bad_entry_does_not_affect_others():
    tolerations, errors = parse(GT, GT | {"value": "x"}, {"operator": "Exists"})
    assert [str(toleration) for toleration in tolerations] == ["sla Gt '950'", "* Exists"]
    assert [error.split(": ")[0] for error in errors] == [f"{PATH}[1].value"]


def test_all_faults_of_an_entry_are_reported():
    found = faults({"operator": "Gt", "value": "x", "violationGraceSeconds": 1, "efect": ""})
    assert [fault.split(": ")[0] for fault in found] == ["[0].efect"]
    found = faults({"operator": "Gt", "value": "x"})
    assert [fault.split(": ")[0] for fault in found] == ["[0].key", "[0].value"]


@pytest.mark.parametrize("text", ["", "sla", "[", "{}", "null", '"a"', "[" * 60_000, "[NaN]", "\ud800"])
def test_an_annotation_that_is_no_list_is_one_fault(text):
    tolerations, errors = parse_tolerations(text)
    assert tolerations == ()
    assert [error.path for error in errors] == [PATH]


def test_entries_beyond_the_limit_count_as_absent():
    tolerations, errors = parse(*[GT] * (MAX_TOLERATIONS + 1))
    assert len(tolerations) == MAX_TOLERATIONS
    assert errors == [f"{PATH}: Too many: 101: must have at most 100 items; those after the limit count as absent"]


def test_entries_beyond_the_limit_are_reported_besides_many_faults():
    _, errors = parse(*[GT | {"value": "x"}] * (MAX_FAULTS + 5), *[GT] * MAX_TOLERATIONS)
    assert len(errors) == MAX_FAULTS
    assert errors[-1].endswith("must have at most 100 items; those after the limit count as absent")


def test_text_beyond_the_limit_is_not_read():
    tolerations, (error,) = parse_tolerations(json.dumps([GT]) + " " * MAX_CHARACTERS)
    assert tolerations == ()
    assert len(str(error)) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=3,
)
FIELDS = ("key", "operator", "value", "effect", "tolerationSeconds", "violationGraceSeconds")
ENTRY = st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from([*Operator, "sla", "950", "NoExecute"]))


@given(st.lists(ENTRY | JSON, max_size=3))
def test_each_entry_is_kept_or_reported(entries):
    text = json.dumps(entries)
    tolerations, errors = parse_tolerations(text)
    if PATH not in [error.path for error in errors]:
        reported = {error.path.removeprefix(PATH).split("]")[0] for error in errors}
        assert len(tolerations) + len(reported) == len(entries)


@given(st.text())
def test_any_text_is_answered(text):
    tolerations, errors = parse_tolerations(text)
    assert tolerations or errors or json.loads(text) == []


HOSTILE = {
    "many entries": ["{}"] * 20_000,
    "unknown fields in every entry": [json.dumps({f"tolerationSecond{n}": 1 for n in range(25)})] * 100,
    "unknown fields in one entry": [json.dumps({f"field{n}": 1 for n in range(4_000)})],
    "a long operator": [json.dumps({"operator": "Semver" * 10_000})],
    "operators that look alike": [json.dumps({"operator": "SemverG" * 80})] * 100,
    "a long key": [json.dumps({"key": "k" * 60_000})],
    "a long name of a field": [json.dumps({"k" * 60_000: 1})],
    "long versions": [
        json.dumps({"key": "a", "operator": "SemverGt", "value": f"{n}.x" + "v" * 250}) for n in range(100)
    ],
    "a long number": ['{"key": "a", "tolerationSeconds": ' + "9" * 60_000 + "}"],
    "valid entries": [json.dumps({"key": f"k{n}", "operator": "Gt", "value": str(n)}) for n in range(100)],
    "keys of full length": [
        json.dumps({"key": f"{n}." + "a" * 240 + "/" + "b" * 63, "value": "!"}) for n in range(100)
    ],
    "deep nesting": ["[" * 30_000 + "]" * 30_000],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_annotation_costs_three_times_a_full_valid_one_at_most(entries):
    full = json.dumps([json.loads(entry) for entry in HOSTILE["valid entries"]])
    text = f"[{','.join(entries)}]"
    assert steps(lambda: parse_tolerations(text)) <= 3 * steps(lambda: parse_tolerations(full))


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=list(HOSTILE))
def test_faults_are_few_and_short(entries):
    _, errors = parse_tolerations(f"[{','.join(entries)}]")
    assert len(errors) <= MAX_FAULTS
    assert all(len(str(error)) < 2_000 for error in errors)
    assert sum(len(msgspec.json.encode(error, enc_hook=str)) for error in errors) < 20_000  # and nothing else is kept


def test_the_last_fault_counts_those_that_are_left_out():
    found = faults(*[{"key": f"k{n}", "operator": "Gt", "value": "x"} for n in range(30)])
    assert len(found) == MAX_FAULTS
    assert found[-1] == ": Invalid value: 30: has 21 more faults"


def test_many_unknown_fields_are_counted():
    (fault,) = faults({f"field{n}": n for n in range(4)})
    assert fault.startswith('[0]: Invalid value: "field0": has 4 unknown fields; known fields: key, operator')


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"key": "\x1b]0;pwned\x07"}, "\\u001b]0;pwned\\u0007"),
        ({"\x1b[2J": 1}, "[0].\\x1b[2J"),
        ({"key": "a", "operator": "Gt", "value": "\u0661\u202e1"}, "\\u202e"),
        ({"key": "a", "operator": "SemverGt", "value": "v \x9b1"}, "\\x9b"),
    ],
)
def test_no_fault_carries_control_characters(entry, shown):
    told = " ".join(faults(entry))
    assert told.isprintable()
    assert shown in told


@given(ENTRY | JSON)
def test_the_fast_path_agrees_with_the_full_check(entry):
    given = _given(json.loads(json.dumps(entry)))
    assert (_valid(given) is None) == bool(_faults(given, PATH))
