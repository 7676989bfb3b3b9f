"""Node affinity with versions, over the labels that repeat them: it matches what the engine does, or says why not."""

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
def test_one_requirement(requirement, native):
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
def test_what_labels_cannot_express_is_told(requirement, fault):
    [told] = required((requirement,)).faults
    assert fault in told


def test_versions_that_are_switched_off_match_no_node():
    assert required((asks("SemverGt", "1.0.0"),), gates=Gates(semver_operators=False)).required == ()


def test_integers_of_labels_cannot_be_switched_off():
    assert required((asks("Gt", "5"),), gates=Gates(numeric_operators=False)).required == ((asks("Gt", "5"),),)


def test_nothing_required_and_nowhere_stay_what_they_are():
    assert native_affinity(NodeAffinity(), ()).required is None
    assert native_affinity(NOWHERE, ()).required == ()


def test_combinations_are_counted_before_they_are_built():
    found = required(tuple(asks("Gt", "-1", key=f"k{number}") for number in range(40)))
    assert found.required == ()
    assert found.faults == (f"no node matches: it takes {2**40} terms, at most {MAX_TERMS} are possible",)


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
def test_it_matches_the_nodes_that_the_engine_matches_or_says_why_not(terms, labels):
    affinity = NodeAffinity(terms)
    repeated, native = version_labels(labels, (KEY,)), native_affinity(affinity, (KEY,))
    told, wanted = holds(as_terms(native.required), labels | repeated.labels), matches(affinity, labels)
    assert wanted or not told
    if wanted and not told:
        assert repeated.faults or native.faults
        event("left out and told")
    elif wanted:
        event("let in")


@given(TERMS, LABELS)
def test_it_prefers_as_the_engine_does_or_says_why_not(term, labels):
    affinity = NodeAffinity(None, (Preference(7, term),))
    repeated, native = version_labels(labels, (KEY,)), native_affinity(affinity, (KEY,))
    told = sum(one.weight for one in native.preferred if holds(as_terms([one.term]), labels | repeated.labels))
    wanted = weight(affinity, labels)
    assert told == wanted or (told < wanted and (repeated.faults or native.faults))
