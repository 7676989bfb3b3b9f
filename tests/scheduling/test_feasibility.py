"""A pod may be scheduled on a node if its tolerations match all taints, and its affinities the labels."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.kept import kept
from taintwarden.engine.affinity import NOWHERE, NodeAffinity, NodeOperator, NodeRequirement, Preference
from taintwarden.engine.evaluate import judge
from taintwarden.engine.model import Gates, SharedTolerations, Taint, Toleration, Tolerations
from taintwarden.engine.operators import Match, Operator, match
from taintwarden.engine.policy import TolerationSecondsMode
from taintwarden_placement.scheduling.feasibility import (
    MAX_REASONS,
    AnyOf,
    Demand,
    NodeFilter,
    Preferences,
    RefusalCause,
    SourcedAffinity,
)
from work import steps

EXISTS = Toleration("sla", "Exists")
ABOVE = Toleration("sla", "Gt", "950", "NoSchedule")
NEWER = NodeAffinity(((NodeRequirement("kubelet", NodeOperator.SEMVER_GT, ("1.31.99",)),),))


def sla(value: str, effect: str = "NoSchedule") -> Taint:
    return Taint("sla", value, effect)


def reason_of(asked: Demand, taints: list[Taint], labels: dict[str, str]) -> str:
    found = NodeFilter(asked).refusal(taints, labels)
    return found.reason if found else ""


def demand(*extended: Toleration, native: tuple[Toleration, ...] = (EXISTS,)) -> Demand:
    return Demand(Tolerations(native, extended))


def test_a_value_that_cannot_be_compared_is_named():
    assert "cannot compare the taint's value" in reason_of(demand(ABOVE), [sla("high")], {})


def test_tolerations_for_another_key_are_not_named():
    other = Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute")
    assert reason_of(demand(native=(other,)), [sla("1", "NoExecute")], {}).endswith("(no toleration for it)")


def test_seconds_of_a_toleration_are_not_named():
    brief = Toleration("sla", "Gt", "950", "NoExecute", 30)
    assert "for 30s" not in reason_of(demand(brief), [sla("1", "NoExecute")], {})


def test_affinity_is_named_with_its_source():
    asked = Demand(affinities=(SourcedAffinity("profile gold", NEWER),))
    assert reason_of(asked, [], {"kubelet": "v1.32.0"}) == ""
    assert reason_of(asked, [], {"kubelet": "v1.31.0"}) == (
        "the node affinity of profile gold does not match (kubelet SemverGt '1.31.99' does not hold for 'v1.31.0')"
    )


def test_an_affinity_that_cannot_be_read_matches_no_node_and_has_a_reason():
    asked = Demand(affinities=(SourcedAffinity("the annotation", NOWHERE, "is not JSON"),))
    assert reason_of(asked, [], {}) == "the node affinity of the annotation is invalid, so no node matches: is not JSON"


def test_a_reason_is_short_with_any_number_of_tolerations():
    many = demand(*(Toleration("sla", "Gt", str(number)) for number in range(1_000, 1_100)))
    assert reason_of(many, [sla("1")], {}).endswith("; and 97 more)")
    assert reason_of(demand(native=()), [Taint(f"k{number}") for number in range(9)], {}).endswith("; and 6 more")


def test_preferences_count_taints_and_weigh_labels():
    affinity = NodeAffinity(preferred=(Preference(7, NEWER.required[0]),))
    asked = Demand(
        Tolerations((EXISTS,), (Toleration("sla", "Gt", "950"),)), (SourcedAffinity("the annotation", affinity),)
    )
    prefer = "PreferNoSchedule"
    assert NodeFilter(asked).preferences([sla("940", prefer), sla("1")], {}) == Preferences(1, 0)
    assert NodeFilter(asked).preferences([sla("960", prefer)], {"kubelet": "1.32.0"}) == Preferences(0, 7)


@pytest.mark.parametrize(
    ("asked", "native"),
    [(demand(), True), (demand(ABOVE), False), (Demand(affinities=(SourcedAffinity("a", NEWER),)), False)],
)
def test_a_demand_without_extended_parts_is_native(asked, native):
    assert asked.is_native is native


KEYS = st.sampled_from(["sla", "cni", ""])
VALUES = st.sampled_from(["", "950", "0950", "1.2.3", "v1.2.3-rc.1", "high", "-5"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
OPERATORS = st.sampled_from(["", "Odd", *Operator])
NAMED = st.lists(VALUES, max_size=2).map(tuple)
TOLERATIONS = st.lists(
    st.builds(Toleration, KEYS, OPERATORS, VALUES, st.just("") | EFFECTS, values=NAMED), max_size=4, unique=True
).map(tuple)
TAINTS = st.lists(st.builds(Taint, st.sampled_from(["sla", "cni"]), VALUES, EFFECTS), max_size=3)


@example((Toleration("sla", "NotIn", values=("1",)), Toleration("sla", "NotIn", values=("2",))), "sla", "1")
@given(TOLERATIONS, KEYS, VALUES)
def test_many_tolerations_hold_if_one_of_them_does(given_tolerations, key, value):
    taint = Taint(key, value, "NoSchedule")
    relevant = [one for one in given_tolerations if one.effect in ("", "NoSchedule")]
    for gates in (Gates(), Gates(numeric_operators=False), Gates(semver_operators=False)):
        expected = any(match(one, taint, gates) is Match.HOLDS for one in relevant)
        assert AnyOf(relevant, key, gates).holds(value) is expected


def thresholds(number: int) -> list[Toleration]:
    return [Toleration("sla", "Gt", str(9000 + one)) for one in range(number)]


def names(number: int) -> list[Toleration]:
    return [Toleration("sla", "In", values=(f"a{one}",)) for one in range(number)]


def others(number: int) -> list[Toleration]:
    return [Toleration("sla", "NotIn", values=(f"a{one}", *map(str, range(1000)))) for one in range(number)]


def versions(number: int) -> list[Toleration]:
    return [Toleration("sla", "SemverLt", f"0.{one}.0-0") for one in range(number)]


@pytest.mark.parametrize("some", [thresholds, names, others, versions])
def test_a_value_costs_as_much_with_a_thousand_tolerations_as_with_some(some):
    """A namespace may have 1,000 tolerations for one key, and each of thousands of nodes another value."""

    def cost(number: int) -> int:
        judging = NodeFilter(Demand(Tolerations((), tuple(some(number)))))
        first, *more = [[sla(str(value))] for value in range(100)]
        judging.refusal(first, {})
        return steps(lambda: [judging.refusal(one, {}) for one in more])

    assert cost(1000) < 1.5 * cost(MAX_REASONS + 2)


STEPS_FOR_EACH = 20
"""Maximum number of steps per requirement and node. Comparing the versions each time takes 150."""


def test_a_node_costs_little_with_all_requirements_that_an_affinity_may_have():
    """Each of thousands of nodes may have another set of values, because of one label of its own."""

    needed = [NodeRequirement(f"l{one}", NodeOperator.SEMVER_GT, ("1.0.0",)) for one in range(15)]
    term = (*needed, NodeRequirement("host", NodeOperator.IN, ("none",)))
    judging = NodeFilter(Demand(Tolerations((EXISTS,)), (SourcedAffinity("x", NodeAffinity((term,) * 16)),)))
    first, *nodes = [{"host": f"n{one}", **{f"l{key}": "1.2.3" for key in range(15)}} for one in range(100)]
    judging.refusal([], first)
    assert steps(lambda: [judging.refusal([], one) for one in nodes]) < STEPS_FOR_EACH * len(nodes) * 16 * 16


@given(TOLERATIONS, TOLERATIONS, TOLERATIONS, TAINTS)
def test_the_filter_agrees_with_the_engine(native, annotated, shared, taints):
    tolerations = Tolerations(native, annotated, SharedTolerations(shared))
    expected = [
        taint
        for taint in taints
        if not judge(tolerations.relevant_to(taint.key), taint, TolerationSecondsMode.AFTER_VIOLATION).tolerated
    ]
    judging = NodeFilter(Demand(tolerations))
    assert [taint for taint in taints if judging.untolerated(taint)] == expected


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        (demand(native=()), RefusalCause.TAINT),
        (Demand(Tolerations((EXISTS,)), (SourcedAffinity("profile gold", NEWER),)), RefusalCause.AFFINITY),
        (
            Demand(Tolerations((EXISTS,)), (SourcedAffinity("the annotation", NOWHERE, "is not JSON"),)),
            RefusalCause.INVALID,
        ),
    ],
)
def test_the_first_cause_is_named(asked, cause):
    assert NodeFilter(asked).refusal([sla("1")], {}).cause is cause


def test_the_cache_of_refusals_is_bounded():
    judge = NodeFilter(Demand(Tolerations((EXISTS,)), (SourcedAffinity("a", NEWER),)), max_remembered=3)
    for number in range(10):
        judge.refusal([Taint(f"key-{number}", str(number))], {"kubelet": f"1.32.{number}"})
        assert len(judge) <= 3 + 3, "taints, and sets of values of one affinity"
    assert sum(bool(kept(judge, f"key-{number}")) for number in range(10)) <= 3
