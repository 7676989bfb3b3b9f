"""Node affinity with versions, over the labels that repeat them, matches as the engine does, or has a fault."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from placement.affinity_law import matches, weight
from placement.node_selector import holds
from placement.test_against_matching import VERSIONS
from taintwarden.engine.affinity import NOWHERE, NodeAffinity, NodeOperator, NodeRequirement, Preference
from taintwarden.engine.model import Gates
from taintwarden_placement.affinity import MAX_TERMS, native_affinity
from taintwarden_placement.node_labels import version_labels

KEY, OTHER = "example.com/driver", "zone"
REPEATED = "example.com.label-version.taintwarden.io/driver"


def asks(operator, *values, key=KEY):
    return NodeRequirement(key, NodeOperator(operator), values)


def required(*terms, published=(KEY,), **more):
    return native_affinity(NodeAffinity(terms), published, **more)


@pytest.mark.parametrize(
    ("requirement", "native"),
    [
        (asks("SemverGt", "v3.27"), asks("Gt", "30027000000001", key=REPEATED)),
        (asks("SemverLt", "3.27.0-0"), asks("Lt", "30027000000000", key=REPEATED)),
        (asks("SemverEq", "3.27"), asks("In", "30027000000001", key=REPEATED)),
        (asks("Gt", "950"), asks("Gt", "950")),
        (asks("NotIn", "a", "b"), asks("NotIn", "a", "b")),
        (asks("Exists"), asks("Exists")),
    ],
)
def test_each_requirement_has_its_native_terms(requirement, native):
    found = required((requirement,))
    assert (found.required, found.faults) == (((native,),), ())


def test_a_bound_below_zero_takes_two_terms():
    assert required((asks("Gt", "-5"), asks("Exists", key=OTHER))).required == (
        (asks("Gt", "0"), asks("Exists", key=OTHER)),
        (asks("Lt", "1"), asks("Exists", key=OTHER)),
    )


@pytest.mark.parametrize(
    ("requirement", "fault"),
    [
        (asks("SemverGt", "1.28.0", key=OTHER), "no policy lists the label zone under versionLabels"),
        (asks("SemverGt", "1.10000.0"), "too many digits"),
        (asks("SemverGt", "1.28.0-rc.1"), "pre-releases of 1.28.0 above 1.28.0-rc.1 are left out"),
        (asks("SemverEq", "1.28.0-rc.1"), "only nodes that spell the version 1.28.0-rc.1 or v1.28.0-rc.1 match"),
    ],
)
def test_a_requirement_that_labels_cannot_express_is_reported(requirement, fault):
    [reported] = required((requirement,)).faults
    assert fault in reported


def test_versions_that_are_switched_off_match_no_node():
    assert required((asks("SemverGt", "1.0.0"),), gates=Gates(semver_operators=False)).required == ()


def test_integers_of_labels_cannot_be_switched_off():
    assert required((asks("Gt", "5"),), gates=Gates(numeric_operators=False)).required == ((asks("Gt", "5"),),)


def test_no_requirement_and_nowhere_are_not_changed():
    assert native_affinity(NodeAffinity(), ()).required is None
    assert native_affinity(NOWHERE, ()).required == ()


def test_combinations_are_counted_before_they_are_built():
    found = required(tuple(asks("Gt", "-1", key=f"k{number}") for number in range(40)))
    assert found.required == ()
    assert found.faults == (f"its terms are left out: they take {2**40} native ones, at most {MAX_TERMS} are possible",)


def test_preferences_are_bounded():
    one = Preference(1, (asks("Exists"),))
    found = native_affinity(NodeAffinity(None, (one,) * (MAX_TERMS + 1)), ())
    assert found.preferred == ()
    assert found.faults == (f"no preference is used: they take more than {MAX_TERMS} terms",)


INTEGERS = st.sampled_from(["0", "1", "950", "-1", str(2**63 - 1)])
LABELS = st.fixed_dictionaries(
    {},
    optional={
        KEY: VERSIONS | st.sampled_from(["", "latest", "99.5"]),
        OTHER: st.sampled_from(["0", "00", "1", "950", "0950", "a"]),
    },
)
REQUIREMENTS = st.one_of(
    st.builds(asks, st.sampled_from(["SemverGt", "SemverLt", "SemverEq"]), VERSIONS),
    st.builds(lambda one, two: asks(one, two, key=OTHER), st.sampled_from(["Gt", "Lt"]), INTEGERS),
    st.builds(
        lambda one, two: asks(one, two, key=OTHER), st.sampled_from(["In", "NotIn"]), st.sampled_from(["a", "1"])
    ),
    st.builds(
        lambda one, two: asks(one, key=two), st.sampled_from(["Exists", "DoesNotExist"]), st.sampled_from([KEY, OTHER])
    ),
)
TERMS = st.lists(REQUIREMENTS, max_size=3).map(tuple)


def as_terms(terms):
    return [{"matchExpressions": [one.as_json() for one in term]} for term in terms]


@given(st.lists(TERMS, min_size=1, max_size=3).map(tuple), LABELS)
def test_native_affinity_matches_as_the_engine_or_has_a_fault(terms, labels):
    affinity = NodeAffinity(terms)
    repeated, native = version_labels(labels, (KEY,)), native_affinity(affinity, (KEY,))
    reported, wanted = holds(as_terms(native.required), labels | repeated.labels), matches(affinity, labels)
    assert wanted or not reported
    if wanted and not reported:
        assert repeated.faults or native.faults
        event("left out and reported")
    elif wanted:
        event("let in")


@given(TERMS, LABELS)
def test_native_preferences_weigh_as_the_engine_or_have_a_fault(term, labels):
    affinity = NodeAffinity(None, (Preference(7, term),))
    repeated, native = version_labels(labels, (KEY,)), native_affinity(affinity, (KEY,))
    reported = sum(one.weight for one in native.preferred if holds(as_terms([one.term]), labels | repeated.labels))
    wanted = weight(affinity, labels)
    assert reported == wanted or (reported < wanted and (repeated.faults or native.faults))
