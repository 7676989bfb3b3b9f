"""Node affinity against labels: as Kubernetes compares, and versions as KEP-5721."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.affinity_law import matches, weight
from taintwarden.engine.affinity import NOWHERE, NodeAffinity, NodeOperator, NodeRequirement, Preference
from taintwarden.engine.model import Gates
from taintwarden_placement.affinity.node_matching import MAX_KNOWN, LabelMatch, check_of, describe, match_label

GT, LT, EQ = NodeOperator.SEMVER_GT, NodeOperator.SEMVER_LT, NodeOperator.SEMVER_EQ


def needs(operator: str, *values: str, key: str = "a") -> NodeRequirement:
    return NodeRequirement(key, NodeOperator(operator), values)


@pytest.mark.parametrize(
    ("operator", "values", "label", "expected"),
    [
        ("In", ["b", "c"], "c", LabelMatch.HOLDS),
        ("In", ["b"], "c", LabelMatch.DIFFERS),
        ("In", ["b"], None, LabelMatch.ABSENT),
        ("NotIn", ["b"], "c", LabelMatch.HOLDS),
        ("NotIn", ["b"], None, LabelMatch.HOLDS),
        ("NotIn", ["b"], "b", LabelMatch.DIFFERS),
        ("Exists", [], "", LabelMatch.HOLDS),
        ("Exists", [], None, LabelMatch.ABSENT),
        ("DoesNotExist", [], None, LabelMatch.HOLDS),
        ("DoesNotExist", [], "", LabelMatch.DIFFERS),
        ("Gt", ["950"], "951", LabelMatch.HOLDS),
        ("Gt", ["950"], "950", LabelMatch.DIFFERS),
        ("Gt", ["949"], "0950", LabelMatch.HOLDS),  # strconv.ParseInt takes leading zeros
        ("Lt", ["-1"], "-2", LabelMatch.HOLDS),
        ("Lt", ["950"], "high", LabelMatch.NO_INTEGER),
        ("Lt", ["950"], str(-(2**63) - 1), LabelMatch.NO_INTEGER),
        ("Gt", ["950"], None, LabelMatch.ABSENT),
        ("Gt", ["x"], "1", LabelMatch.INVALID_VALUE),
        ("Gt", [], "1", LabelMatch.INVALID_VALUE),
        ("SemverGt", ["1.31.99"], "v1.32.0", LabelMatch.HOLDS),
        ("SemverGt", ["1.32.0"], "v1.32.0-rc.1", LabelMatch.DIFFERS),
        ("SemverGt", ["1.32.0-rc.1"], "1.32.0-rc.2", LabelMatch.HOLDS),
        ("SemverLt", ["2"], "1.7.24", LabelMatch.HOLDS),
        ("SemverEq", ["v2.0"], "2.0.0", LabelMatch.HOLDS),
        ("SemverEq", ["2.0.0"], "2.0.1", LabelMatch.DIFFERS),
        ("SemverEq", ["2.0.0"], "containerd-2.0.0", LabelMatch.NO_VERSION),
        ("SemverLt", ["2.0.0"], None, LabelMatch.ABSENT),
        ("SemverLt", ["newest"], "1.0.0", LabelMatch.INVALID_VALUE),
    ],
)
def test_one_requirement(operator, values, label, expected):
    labels = {"other": "x"} | ({} if label is None else {"a": label})
    assert match_label(needs(operator, *values), labels) is expected


def test_versions_can_be_switched_off_and_numbers_are_of_kubernetes():
    off = Gates(numeric_operators=False, semver_operators=False)
    assert match_label(needs("SemverGt", "1.0.0"), {"a": "2.0.0"}, off) is LabelMatch.GATE_OFF
    assert match_label(needs("Gt", "1"), {"a": "2"}, off) is LabelMatch.HOLDS


def test_terms_are_alternatives_and_requirements_are_not():
    both = (needs("Exists"), needs("Exists", key="b"))
    affinity = NodeAffinity((both, (needs("In", "x", key="c"),)))
    assert matches(affinity, {"c": "x"})
    assert matches(affinity, {"a": "", "b": ""})
    assert not matches(affinity, {"a": ""})


def test_nothing_required_matches_every_node_and_no_term_none():
    assert matches(NodeAffinity(), {})
    assert not matches(NOWHERE, {"a": "b"})
    assert not matches(NodeAffinity(((),)), {})


def test_weights_of_what_is_met_add_up():
    affinity = NodeAffinity(None, (Preference(5, (needs("Exists"),)), Preference(2, (needs("In", "b"),))))
    assert [weight(affinity, labels) for labels in ({}, {"a": "c"}, {"a": "b"})] == [0, 5, 7]


def test_a_reason_names_the_label_and_its_value():
    assert describe(needs("SemverGt", "2.0.0"), {"a": "1.6.1"}) == "a SemverGt '2.0.0' does not hold for '1.6.1'"
    assert describe(needs("SemverGt", "2.0.0"), {"a": "new"}) == (
        "a SemverGt '2.0.0' cannot compare the label's value 'new': the label is no version"
    )
    assert describe(needs("In", "b", "c"), {}) == "a In ('b', 'c'): the node has no such label"


OPERATORS = st.sampled_from(NodeOperator)
TEXTS = st.sampled_from(["", "7", "-7", "007", "7.1.2", "v7.1.3-rc.1", "x"])
REQUIREMENTS = st.builds(NodeRequirement, st.just("a"), OPERATORS, st.lists(TEXTS, max_size=2).map(tuple))


@given(REQUIREMENTS, st.lists(st.none() | TEXTS, min_size=1, max_size=4))
def test_a_check_for_many_nodes_says_what_the_comparison_says(requirement, values):
    for gates in (Gates(), Gates(semver_operators=False)):
        check = check_of(requirement, gates)
        for value in values:
            labels = {} if value is None else {"a": value}
            assert check(value) is (match_label(requirement, labels, gates) is LabelMatch.HOLDS)


def test_what_a_check_stores_is_bounded():
    check = check_of(NodeRequirement("a", NodeOperator.GT, ("7",)))
    assert [check(str(number)) for number in range(3 * MAX_KNOWN)] == [number > 7 for number in range(3 * MAX_KNOWN)]
    assert all(
        len(cell.cell_contents) <= MAX_KNOWN for cell in check.__closure__ if isinstance(cell.cell_contents, dict)
    )
