"""Labels and requirements together admit a pod to the nodes whose taints it tolerates, and to no other."""

from hypothesis import assume, event, given
from hypothesis import strategies as st

from placement.node_selector import holds
from taintwarden.engine.model import Effect, Gates, Taint, Toleration, Tolerations
from taintwarden.engine.numeric import parse_integer
from taintwarden.engine.operators import ROWS, SEMVER, Match, Operator, match
from taintwarden.engine.policy import TaintSelector, ValueType
from taintwarden.engine.versions import parse_version
from taintwarden_placement.affinity import REQUIRED_EFFECTS, requirements
from taintwarden_placement.node_labels import NodeLabels, encode_version, neutral_labels, node_labels

EFFECTS = tuple(Effect)
# Few values, so that those which nearly agree meet often.
INTEGERS = st.sampled_from(["0", "0", "00", "1", "2", "950", "0950", str(2**63 - 2), str(2**63 - 1)])
VERSIONS = st.builds(
    "{}1.{}.0{}".format,
    st.sampled_from(["", "v"]),
    st.sampled_from([0, 0, 1, 10_000]),
    st.sampled_from(["", "-0", "-rc.1", "-rc.2"]),
) | st.sampled_from(["v1", "1.0", "1.01", "1", "01"])
_KERNEL = "5.15.0-91-generic"
NATURAL = st.sampled_from(
    [
        "15-SP6",
        "15.6",
        "1.1.1k",
        "1.2-gke.1",
        "1.2-k3s2",
        "6.8.0-1042-gke",
        "6.8",
        _KERNEL,
        f"{_KERNEL}-fips",
        f"{_KERNEL}-hwe",
    ]
)
BEYOND_NATURAL = st.sampled_from(["v1.31.2+k3s1", "containerd://1.7.13", f"{_KERNEL}-fips~1", "none"])
TEXTS = st.sampled_from(["", "high", "gold", "99.5", "1-2"])
BEYOND_INTEGERS = st.sampled_from(["-0", "-1", str(-(2**63)), str(2**63)])
BEYOND_VERSIONS = st.sampled_from(["1.0.0-rc-", "1.0.0+5", "latest"])
"""Values that tolerations may compare with and no taint can have."""


def tolerating(operator, value, effect, values):
    """A toleration that compares with these texts, in the field that its operator reads."""
    is_list = ROWS[operator].family.takes == "values"
    return Toleration("k", operator, "" if is_list else value, effect, values=tuple(values) if is_list else ())


def cases(values, beyond, operators):
    """Taints and tolerations of one family."""
    operator = st.sampled_from(["", "Exists", *operators, *operators])
    effect = st.sampled_from(["", "", "", *EFFECTS])
    taint = st.builds(Taint, st.just("k"), values, st.sampled_from(EFFECTS))
    toleration = st.builds(tolerating, operator, values | values | beyond, effect, st.lists(values, max_size=3))
    return st.tuples(
        st.lists(taint, min_size=1, max_size=3, unique_by=lambda one: one.effect),
        st.lists(toleration, min_size=1, max_size=4),
    )


CASES = st.one_of(
    cases(INTEGERS, BEYOND_INTEGERS, ["Gt", "Lt"]),
    cases(VERSIONS, BEYOND_VERSIONS, ["SemverGt", "SemverLt", "SemverEq"]),
    cases(NATURAL, BEYOND_NATURAL, ["VersionGt", "VersionLt", "VersionEq"]),
    cases(INTEGERS | VERSIONS | NATURAL | TEXTS, BEYOND_INTEGERS | BEYOND_VERSIONS, list(Operator)),
)
SELECTORS = st.builds(
    TaintSelector,
    st.just("k"),
    st.sampled_from([(), EFFECTS[:1], EFFECTS]),
    st.sampled_from([None, *ValueType]),
    st.just(value=True),
)
GATES = st.sampled_from([Gates(), Gates(), Gates(numeric_operators=False), Gates(semver_operators=False)])


ENTERED = st.lists(st.sampled_from(REQUIRED_EFFECTS), unique=True)
"""The effects of taints that native tolerations tolerate."""


def is_tolerated(taints, tolerations, gates, effects=REQUIRED_EFFECTS):
    relevant = Tolerations(annotated=tuple(tolerations)).relevant_to("k")
    chosen = (taint for taint in taints if taint.effect in effects)
    return all(any(match(one, taint, gates) is Match.HOLDS for one in relevant) for taint in chosen)


def is_admitted(node, pod):
    terms = [{"matchExpressions": [requirement.as_json() for requirement in term]} for term in pod.terms]
    return pod.unrestricted or holds(terms, node.labels)


@given(CASES, SELECTORS, GATES, ENTERED)
def test_a_node_that_is_not_tolerated_is_never_admitted(case, selector, gates, entered):
    taints, tolerations = case
    node, pod = node_labels(taints, [selector]), requirements("k", tolerations, gates, entered)
    if is_admitted(node, pod):
        assert is_tolerated(taints, tolerations, gates, entered)
        event("let in")


@given(CASES, SELECTORS, GATES, ENTERED)
def test_a_tolerated_node_is_admitted_unless_a_fault_is_reported(case, selector, gates, entered):
    taints, tolerations = case
    assume(not asks_for_versions_of_what_is_none(taints, tolerations, selector))
    assume(all(taint.effect in (*entered, Effect.PREFER_NO_SCHEDULE) for taint in taints))
    node, pod = node_labels(taints, [selector]), requirements("k", tolerations, gates, entered)
    if is_tolerated(taints, tolerations, gates) and not is_admitted(node, pod):
        assert node.faults or pod.faults
        event("left out and reported")


@given(CASES, ENTERED)
def test_a_node_without_labels_is_admitted_only_without_requirements(case, entered):
    """The taint of such a node may have any value."""
    _, tolerations = case
    found = requirements("k", tolerations, effects=entered)
    assert is_admitted(NodeLabels({}), found) == found.unrestricted


def asks_for_versions_of_what_is_none(taints, tolerations, selector):
    """Return True if a value is no version by the policy, or is a long integer: then there is no fault."""
    if not any(ROWS[one.operator].family is SEMVER for one in tolerations):
        return False
    if selector.value_type is None:
        return any(len(taint.value) > 5 and parse_integer(taint.value) is not None for taint in taints)
    return selector.value_type is not ValueType.VERSION and any(map(has_too_many_digits, taints))


def has_too_many_digits(taint):
    version = parse_version(taint.value)
    return version is not None and encode_version(version) is None


@given(CASES, SELECTORS)
def test_the_same_taints_give_the_same_labels_in_any_order(case, selector):
    taints, _ = case
    assert node_labels(taints, [selector]).labels == node_labels(taints[::-1], [selector]).labels


@given(CASES, SELECTORS)
def test_a_node_without_the_taint_is_admitted(case, selector):
    _, tolerations = case
    assert is_admitted(node_labels([], [selector]), requirements("k", tolerations))


@given(CASES, ENTERED)
def test_after_the_end_of_placement_every_node_is_admitted(case, entered):
    """A running pod would otherwise no longer match its own node."""
    _, tolerations = case
    assert is_admitted(NodeLabels(neutral_labels(["k"])), requirements("k", tolerations, effects=entered))
