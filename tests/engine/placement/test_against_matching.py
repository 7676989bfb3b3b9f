"""Labels and requirements together let a pod onto the nodes whose taints it tolerates, and onto no other."""

from hypothesis import assume, event, given
from hypothesis import strategies as st

from engine.placement.node_selector import holds
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import (
    SEMVER_OPERATORS,
    Effect,
    Gates,
    Operator,
    Taint,
    TaintSelector,
    Toleration,
    Tolerations,
    ValueType,
)
from taintwarden.engine.placement import node_labels, requirements

INTEGERS = st.one_of(
    st.integers(0, 5), st.sampled_from([940, 950, 980, 2**63 - 2, 2**63 - 1]), st.integers(0, 99_999)
).map(str)
VERSIONS = st.builds(
    "{}{}.{}.{}{}".format,
    st.sampled_from(["", "v"]),
    st.integers(0, 1),
    st.sampled_from([0, 1, 9_999, 10_000]),
    st.integers(0, 2),
    st.sampled_from(["", "", "-0", "-rc.1", "-rc.2", "-rc-"]),
)
SHORT_VERSIONS = st.sampled_from(["v1", "1.0", "01", "1.01", "v2"])
MISREAD = st.sampled_from(["0950", "00", "01"])
TEXTS = st.sampled_from(["", "high", "gold", "99.5", "1-2"])
TAINT_VALUES = st.one_of(INTEGERS, VERSIONS.filter(lambda text: text[-1] != "-"), SHORT_VERSIONS, MISREAD, TEXTS)
BOUNDS = TAINT_VALUES | VERSIONS | st.integers(-(2**63), -1).map(str) | st.sampled_from(["-0", "-1", str(2**63)])
EFFECTS = (Effect.NO_EXECUTE, Effect.NO_SCHEDULE)

TAINTS = st.lists(
    st.builds(Taint, st.just("k"), TAINT_VALUES, st.sampled_from(EFFECTS)), max_size=2, unique_by=lambda one: one.effect
)
TOLERATIONS = st.lists(
    st.builds(
        Toleration,
        st.just("k"),
        st.sampled_from(["", *Operator, Operator.GT, Operator.LT]),
        BOUNDS,
        st.sampled_from(["", "", *EFFECTS]),
    ),
    min_size=1,
    max_size=3,
)
SELECTORS = st.builds(
    TaintSelector,
    st.just("k"),
    st.sampled_from([EFFECTS[:1], EFFECTS]),
    st.sampled_from([None, *ValueType]),
    st.just(value=True),
)
GATES = st.builds(Gates, st.booleans(), st.booleans())


def is_tolerated(taints, tolerations, selector, gates):
    relevant = Tolerations(extended=tuple(tolerations)).relevant_to("k")
    chosen = (taint for taint in taints if selector.specificity(taint))
    return all(any(match(one, taint, gates) is Match.HOLDS for one in relevant) for taint in chosen)


def is_admitted(node, pod):
    terms = [{"matchExpressions": [requirement.as_json() for requirement in term]} for term in pod.terms]
    return pod.unrestricted or holds(terms, node.labels)


@given(TAINTS, TOLERATIONS, SELECTORS, GATES)
def test_a_node_that_would_evict_the_pod_is_never_let_in(taints, tolerations, selector, gates):
    node, pod = node_labels(taints, [selector]), requirements("k", tolerations, selector.effects, gates)
    if is_admitted(node, pod):
        assert is_tolerated(taints, tolerations, selector, gates)
        event("let in")


@given(TAINTS, TOLERATIONS, SELECTORS, GATES)
def test_a_node_that_suits_is_let_in_unless_it_is_told_why_not(taints, tolerations, selector, gates):
    reads_versions = selector.value_type in (None, ValueType.VERSION)
    assume(reads_versions or not any(one.operator in SEMVER_OPERATORS for one in tolerations))
    node, pod = node_labels(taints, [selector]), requirements("k", tolerations, selector.effects, gates)
    if is_tolerated(taints, tolerations, selector, gates) and not is_admitted(node, pod):
        assert node.faults or pod.faults
        event("left out and told")


@given(TAINTS, SELECTORS)
def test_the_same_taints_give_the_same_labels_in_any_order(taints, selector):
    assert node_labels(taints, [selector]).labels == node_labels(taints[::-1], [selector]).labels


@given(TOLERATIONS, SELECTORS)
def test_a_node_without_the_taint_stays_usable(tolerations, selector):
    assert is_admitted(node_labels([], [selector]), requirements("k", tolerations, selector.effects))


@given(TOLERATIONS, SELECTORS)
def test_what_is_required_is_small(tolerations, selector):
    assert len(requirements("k", tolerations, selector.effects).terms) <= 1 + 7**2
