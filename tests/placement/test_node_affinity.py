"""Node affinity against labels: as Kubernetes compares, and versions as KEP-5721."""

import pytest

from placement.affinity_law import matches, weight
from taintwarden.engine.affinity import NOWHERE, NodeAffinity, NodeOperator, NodeRequirement, Preference
from taintwarden.engine.model import Gates
from taintwarden_placement.affinity.node_matching import MAX_KNOWN, check_of, describe

GT = NodeOperator.SEMVER_GT


def needs(operator: str, *values: str, key: str = "a") -> NodeRequirement:
    return NodeRequirement(key, NodeOperator(operator), values)


@pytest.mark.parametrize(
    ("operator", "values", "label", "expected"),
    [
        ("In", ["b", "c"], "c", ""),
        ("In", ["b"], "c", "does not hold"),
        ("In", ["b"], None, "the node has no such label"),
        ("NotIn", ["b"], "c", ""),
        ("NotIn", ["b"], None, ""),
        ("NotIn", ["b"], "b", "does not hold"),
        ("Exists", [], "", ""),
        ("Exists", [], None, "the node has no such label"),
        ("DoesNotExist", [], None, ""),
        ("DoesNotExist", [], "", "does not hold"),
        ("Gt", ["950"], "951", ""),
        ("Gt", ["950"], "950", "does not hold"),
        ("Gt", ["949"], "0950", ""),  # strconv.ParseInt takes leading zeros
        ("Lt", ["-1"], "-2", ""),
        ("Lt", ["950"], "high", "the label is not an integer"),
        ("Lt", ["950"], str(-(2**63) - 1), "the label is not an integer"),
        ("Gt", ["950"], None, "the node has no such label"),
        ("Gt", ["x"], "1", "has a value that cannot be compared"),
        ("Gt", [], "1", "has a value that cannot be compared"),
        ("SemverGt", ["1.31.99"], "v1.32.0", ""),
        ("SemverGt", ["1.32.0"], "v1.32.0-rc.1", "does not hold"),
        ("SemverGt", ["1.32.0-rc.1"], "1.32.0-rc.2", ""),
        ("SemverLt", ["2"], "1.7.24", ""),
        ("SemverEq", ["v2.0"], "2.0.0", ""),
        ("SemverEq", ["2.0.0"], "2.0.1", "does not hold"),
        ("SemverEq", ["2.0.0"], "containerd-2.0.0", "the label is not a version"),
        ("SemverLt", ["2.0.0"], None, "the node has no such label"),
        ("SemverLt", ["newest"], "1.0.0", "has a value that cannot be compared"),
    ],
)
def test_each_requirement_compares_as_its_operator(operator, values, label, expected):
    """An empty result means that the requirement holds; another one is the reason why not."""
    labels = {"other": "x"} | ({} if label is None else {"a": label})
    assert check_of(needs(operator, *values))(label) is not bool(expected)
    assert not expected or expected in describe(needs(operator, *values), labels)


def test_versions_can_be_switched_off_and_numbers_are_of_kubernetes():
    off = Gates(numeric_operators=False, semver_operators=False)
    assert not check_of(needs("SemverGt", "1.0.0"), off)("2.0.0")
    assert "uses an operator that is switched off" in describe(needs("SemverGt", "1.0.0"), {"a": "2.0.0"}, off)
    assert check_of(needs("Gt", "1"), off)("2")


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


def test_weights_of_matched_preferences_add_up():
    affinity = NodeAffinity(None, (Preference(5, (needs("Exists"),)), Preference(2, (needs("In", "b"),))))
    assert [weight(affinity, labels) for labels in ({}, {"a": "c"}, {"a": "b"})] == [0, 5, 7]


def test_a_reason_names_the_label_and_its_value():
    assert describe(needs("SemverGt", "2.0.0"), {"a": "1.6.1"}) == "a SemverGt '2.0.0' does not hold for '1.6.1'"
    assert describe(needs("SemverGt", "2.0.0"), {"a": "new"}) == (
        "a SemverGt '2.0.0' cannot compare the label's value 'new': the label is not a version"
    )
    assert describe(needs("In", "b", "c"), {}) == "a In ('b', 'c'): the node has no such label"


def test_the_cache_of_a_check_is_bounded():
    check = check_of(NodeRequirement("a", NodeOperator.GT, ("7",)))
    assert [check(str(number)) for number in range(3 * MAX_KNOWN)] == [number > 7 for number in range(3 * MAX_KNOWN)]
    assert check.cache_info().currsize == MAX_KNOWN
