import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.api.annotations import MAX_CHARACTERS, MAX_FAULTS
from taintwarden.api.node_affinity import parse_node_affinity
from taintwarden.engine.affinity import NOWHERE, NodeAffinity, NodeOperator, NodeRequirement, Preference

PATH = "metadata.annotations[taintwarden.io/node-affinity]"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NEWER = {"key": "kubelet", "operator": "SemverGt", "values": ["1.31.99"]}


def required(*expressions: Any) -> dict[str, Any]:
    return {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}


def faults(obj: Any) -> list[str]:
    affinity, errors = parse_node_affinity(obj if isinstance(obj, str) else json.dumps(obj))
    assert affinity == NOWHERE
    return [str(error).removeprefix(PATH) for error in errors]


def test_every_field_arrives():
    preferred = {"weight": 7, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}
    affinity, errors = parse_node_affinity(json.dumps(required(NEWER) | {PREFERRED: [preferred]}))
    assert errors == ()
    assert affinity == NodeAffinity(
        ((NodeRequirement("kubelet", NodeOperator.SEMVER_GT, ("1.31.99",)),),),
        (Preference(7, (NodeRequirement("ssd", NodeOperator.EXISTS),)),),
    )


@pytest.mark.parametrize("nothing", [{}, {REQUIRED: None}, {PREFERRED: []}])
def test_an_empty_affinity_requires_nothing(nothing):
    assert parse_node_affinity(json.dumps(nothing)) == (NodeAffinity(), ())


@pytest.mark.parametrize(
    ("obj", "fault"),
    [
        ("{", ": Invalid value"),
        ("[" * 5_000, "must be nested less deeply"),
        ('"\ud800"', "must be valid Unicode"),
        ([], "must be a JSON object"),
        ({"required": {}}, ".required: Invalid value: {}: unknown field; known fields: required"),
        (required({"key": "a", "operator": "SemverGe", "values": ["1"]}), "write SemverGt"),
        (required(NEWER | {"values": ["newest"]}), "must be a version"),
        (
            required(NEWER | {"values": ["1.0.0", "2.0.0"]}),
            "must have one item when operator is SemverGt; write a term for each",
        ),
        (required(NEWER | {"values": []}), "must be specified when operator is SemverGt"),
        (required({"key": "a", "operator": "Gt", "values": ["0950"]}), "write 950, not 0950"),
        (required({"key": "a", "operator": "In", "values": ["b c"]}), "must be empty, or no more than 63"),
        (required({"key": "a", "operator": "Exists", "values": ["b"]}), "may not be specified when operator is Exists"),
        (required(), "must have at least 1 item"),
        ({REQUIRED: {"nodeSelectorTerms": []}}, "must have at least 1 item"),
        ({REQUIRED: {"nodeSelectorTerms": [{}]}}, "matchExpressions: Required value"),
        ({REQUIRED: {"nodeSelectorTerms": [1] * 10_000}}, "Too many: 10000: must have at most 16 items"),
        (
            {PREFERRED: [{"weight": 0, "preference": {"matchExpressions": [NEWER]}}]},
            "must be between 1 and 100, inclusive",
        ),
        ("[" + " " * MAX_CHARACTERS, "Too long: may not be more than 65536 characters"),
    ],
)
def test_a_fault_matches_no_node_and_says_what_to_write(obj, fault):
    (told,) = faults(obj)
    assert fault in told


def test_no_more_faults_are_kept_than_are_read():
    found = faults(required(*[NEWER | {"values": ["x"]}] * 16))
    assert len(found) == MAX_FAULTS
    assert found[-1].endswith("has 7 more faults")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [REQUIRED, PREFERRED, "nodeSelectorTerms", "matchExpressions", "key", "operator", "values"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_anything_is_either_an_affinity_or_has_a_fault(obj):
    affinity, errors = parse_node_affinity(json.dumps(obj))
    assert (affinity == NOWHERE) == bool(errors)
