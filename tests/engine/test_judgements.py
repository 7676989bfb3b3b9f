"""One value against tolerations: value types, the cache, and what is counted."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.kept import kept
from engine.rig import Rig, exists, gt
from simulated import policy
from taintwarden.engine import evaluate
from taintwarden.engine.evaluate import Concern, Evaluator, Grounds, TaintVerdict, VerdictKind, judge
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.interning import Interner
from taintwarden.engine.model import SharedTolerations, Taint, Toleration, Tolerations
from taintwarden.engine.policy import Reclaim, TolerationSecondsMode, ValueType
from taintwarden.engine.reported_status import InvalidTaint

AFTER, KUBERNETES = TolerationSecondsMode.AFTER_VIOLATION, TolerationSecondsMode.KUBERNETES


@pytest.mark.parametrize(
    ("value_type", "value", "invalid"),
    [
        (None, "high", True),
        (None, "940", False),
        (ValueType.INTEGER, "high", True),
        (ValueType.INTEGER, "940", False),
        (ValueType.INTEGER, "1.2.3", True),
        (ValueType.VERSION, "1.2.3", False),
        (ValueType.VERSION, "high", True),
        (ValueType.STRING, "high", False),
    ],
)
def test_whether_a_value_is_invalid_is_the_tolerations_or_the_policys_to_say(value_type, value, invalid):
    assert judge([gt()], Taint("sla", value), AFTER, value_type).invalid is invalid


def test_a_type_makes_a_value_invalid_even_without_a_comparison():
    assert judge([], Taint("sla", "high"), AFTER, ValueType.INTEGER).invalid
    assert not judge([], Taint("sla", "high"), AFTER).invalid


FOUR_PARTS = "10.0.20348.2700"


@pytest.mark.parametrize(
    ("value_type", "operators", "invalid"),
    [
        (ValueType.VERSION, [], False),
        (ValueType.VERSION, ["VersionGt"], False),
        (ValueType.VERSION, ["SemverGt"], True),
        (ValueType.VERSION, ["Gt"], False),
        (ValueType.VERSION, ["VersionGt", "SemverGt"], True),
        (None, ["VersionGt"], False),
        (None, ["SemverGt"], True),
    ],
)
def test_a_version_that_is_no_semantic_one_is_invalid_to_those_who_ask_for_one(value_type, operators, invalid):
    tolerations = [Toleration("sla", operator, "11") for operator in operators]
    assert judge(tolerations, Taint("sla", FOUR_PARTS), AFTER, value_type).invalid is invalid


def test_a_value_that_is_tolerated_anyway_is_not_invalid():
    assert not judge([gt(), exists()], Taint("sla", "high"), AFTER).invalid


@pytest.mark.parametrize(
    ("tolerations", "mode", "grace"),
    [
        ([gt(toleration_seconds=30)], AFTER, 30),
        ([gt(toleration_seconds=30)], KUBERNETES, None),
        ([gt(toleration_seconds=30, violation_grace_seconds=7)], AFTER, 7),
        ([gt(toleration_seconds=30, violation_grace_seconds=7)], KUBERNETES, 7),
        ([gt(violation_grace_seconds=0)], AFTER, 0),
        ([gt(), gt("990", violation_grace_seconds=7)], AFTER, None),
        ([Toleration(key="other", operator="Gt", value="1", violation_grace_seconds=7)], AFTER, None),
        ([gt(effect="NoSchedule", violation_grace_seconds=7), gt(violation_grace_seconds=3)], AFTER, 3),
        ([Toleration(key="sla", value="1", toleration_seconds=9)], AFTER, None),
        ([Toleration(key="sla", value="1"), gt(violation_grace_seconds=7)], AFTER, 7),
        ([Toleration("sla", "Like", "1"), gt(violation_grace_seconds=7)], AFTER, 7),
    ],
)
def test_the_grace_is_the_first_comparisons(tolerations, mode, grace):
    assert judge(tolerations, Taint("sla", "940"), mode).seconds == grace


@pytest.mark.parametrize(("value", "retained"), [("940", None), ("high", "980")])
def test_an_earlier_value_decides_only_if_the_current_one_cannot_be_compared(value, retained):
    history = TaintHistory.begin("980", 0.0).with_value(value, 10.0)
    [verdict] = Evaluator().verdicts(
        Interner().pod_class("shop", {}, Tolerations()),
        Tolerations((gt(),)),
        [Concern(Taint("sla", value), history)],
        (policy(),),
    )
    assert verdict.judged_value == retained


def test_the_first_toleration_that_holds_is_used():
    first, second = exists(toleration_seconds=5), exists(toleration_seconds=50)
    assert judge([gt(), first, second], Taint("sla", "940"), AFTER).toleration is first


ENTRIES = (gt(), gt("990", violation_grace_seconds=7), exists(toleration_seconds=5), Toleration("sla", value="940"))
SOME = st.lists(st.sampled_from(ENTRIES), max_size=2).map(tuple)


@example((), (), ENTRIES[-1:], "980", AFTER)
@example(ENTRIES[-1:], (), (), "980", AFTER)
@given(SOME, SOME, SOME, st.sampled_from(["940", "980", "high"]), st.sampled_from(TolerationSecondsMode))
def test_the_parts_of_tolerations_judge_as_all_of_them_would(native, annotated, shared, value, mode):
    of, taint = Tolerations(native, annotated, SharedTolerations(shared)), Taint("sla", value)
    assert Evaluator()._judgement(of, taint, value, mode, None) == judge(of.relevant_to("sla"), taint, mode)


@pytest.mark.parametrize(
    ("more", "due"),
    [
        ({}, 130.0),
        ({"protected_seconds": 40.0}, 140.0),
        ({"settle_seconds": 50.0}, 150.0),
        ({"hard_at": 200.0, "latest_at": 120.0}, 120.0),
        ({"hard_at": 200.0, "latest_at": 90.0}, 100.0),
    ],
)
def test_a_pod_leaves_after_all_that_spares_it_but_in_time_for_the_end_of_its_node(more, due):
    verdict = TaintVerdict(Taint("sla"), policy(), VerdictKind.VIOLATED, counts_from=50.0, seconds=30, **more)
    assert verdict.due_at(100.0) == due


def test_of_the_taints_that_evict_a_pod_the_first_that_is_due_counts():
    late, early = (TaintVerdict(Taint("sla"), policy(), VerdictKind.VIOLATED, seconds=at) for at in (60, 30))
    grounds = Grounds(policy(), (late, early))
    assert grounds.first(100.0) == (130.0, early)
    assert [[*grounds.due(100.0, at)] for at in (129.0, 130.0, 160.0)] == [[], [early], [late, early]]
    assert [grounds.next_due_at(100.0, at) for at in (129.0, 130.0, 160.0)] == [130.0, 160.0, None]


def test_of_the_ends_of_a_node_the_earliest_counts():
    acting = msgspec.structs.replace(policy(), reclaim=Reclaim(120))
    ends = [TaintVerdict(Taint("sla"), acting, VerdictKind.VIOLATED, hard_at=at) for at in (None, 200.0, 100.0)]
    assert Grounds(acting, tuple(ends)).hard_at == 100.0


@pytest.mark.parametrize(("given", "seconds"), [(-5, 0), (0, 0), (7, 7)])
def test_a_toleration_of_negative_seconds_holds_for_none(given, seconds):
    [verdict] = verdicts(Evaluator(), "940", exists(toleration_seconds=given))
    assert (verdict.kind, verdict.seconds) == (VerdictKind.TOLERATED_FOR, seconds)


# -- the cache ---------------------------------------------------------------------------------------------------------


def verdicts(evaluator: Evaluator, value: str, *tolerations: Toleration):
    pod_class = Interner().pod_class("shop", {}, Tolerations(tolerations))
    taints = [Concern(Taint("sla", value), TaintHistory.begin(value, 0.0))]
    return evaluator.verdicts(pod_class, pod_class.tolerations, taints, (policy(),))


def test_judgements_are_forgotten_with_the_last_pod_that_has_these_tolerations():
    evaluator = Evaluator()
    known = verdicts(evaluator, "940", gt())
    for number in range(100):
        verdicts(evaluator, "940", gt(str(number)))
    assert len(evaluator._judgements) == len(known)


def test_judgements_that_are_shared_are_computed_once():
    evaluator = Evaluator()
    known = [verdicts(evaluator, value, gt()) for value in ("940", "980", "940")]
    assert (len(known), evaluator.computed) == (3, 2)


def test_a_judgement_is_remembered_for_its_effect():
    evaluator, of = Evaluator(), Tolerations((exists(effect="NoSchedule"),))
    taints = [Taint("sla", "940", effect) for effect in ("NoSchedule", "NoExecute")]
    judged = [evaluator._judgement(of, taint, "940", AFTER, None) for taint in taints]
    assert [one.toleration is None for one in judged] == [False, True]


def test_what_is_remembered_is_bounded_and_forgetting_changes_nothing(monkeypatch):
    monkeypatch.setattr(evaluate, "MAX_JUDGEMENTS", 5)
    evaluator, known = Evaluator(), []
    for number in range(100):
        [verdict] = verdicts(evaluator, str(900 + number), gt())
        assert (verdict.due_at(0.0) is None) == (900 + number > 950)
        known.append(verdict)
        assert sum(map(len, evaluator._judgements.values())) <= 5
    verdicts(evaluator, "998", gt())
    assert evaluator.computed == 100, "not all are forgotten with each new one"


def test_which_policy_acts_is_remembered_by_key_and_effect_and_bounded(monkeypatch):
    monkeypatch.setattr(evaluate, "MAX_ACTING", 5)
    evaluator = Evaluator()
    for number in range(100):
        verdicts(evaluator, str(number), gt())
    assert len(evaluator._acting) == 1
    for number in range(100):
        acting = policy(name=f"p{number}")
        history = TaintHistory.begin("940", 0.0)
        [verdict] = evaluator.verdicts(
            Interner().pod_class("shop", {}, Tolerations()),
            Tolerations(),
            [Concern(Taint("sla", "940"), history)],
            (acting,),
        )
        assert verdict.policy is acting
        del verdict, acting
    assert sum(bool(kept(evaluator, f"p{number}")) for number in range(100)) <= 5


def test_whether_a_policy_acts_depends_on_the_effect():
    evaluator, pod_class = Evaluator(), Interner().pod_class("shop", {}, Tolerations())
    for effect, expected in (("NoExecute", 1), ("NoSchedule", 0), ("NoExecute", 1)):
        taints = [Concern(Taint("sla", "940", effect), TaintHistory.begin("940", 0.0))]
        assert len(evaluator.verdicts(pod_class, Tolerations(), taints, (policy(),))) == expected


# -- the report, further -----------------------------------------------------------------------------------------------


def test_a_report_counts_held_pods_by_taint_and_policy():
    rig = Rig(policy("a", taints=[{"key": "sla"}]), policy("b", taints=[{"key": "other"}], paused=True))
    rig.node("n1", "sla=high", "other=high")
    for name in "ab":
        rig.pod(name, gt(), Toleration(key="other", operator="Gt", value="1"))
    rig.pod("c", exists(), exists("other"))
    rig.node("n1", "sla=high", "other=high")
    rig.pod("on-nothing", node="n9")
    assert {one.policy.name: one.status.retained for one in rig.report()} == {"a": 2, "b": 2}
    assert {one.policy.name: one.status.invalid_taints for one in rig.report()} == {
        "a": (InvalidTaint("n1", "sla=high:NoExecute", 2),),
        "b": (InvalidTaint("n1", "other=high:NoExecute", 2),),
    }


def test_the_invalid_taint_that_affects_most_pods_comes_first():
    rig = Rig(policy("a", taints=[{"key": "sla"}]))
    for node, pods in (("n1", 1), ("n2", 3), ("n3", 1)):
        rig.node(node, "sla=high")
        for number in range(pods):
            rig.pod(f"{node}-{number}", gt(), node=node)
        rig.node(node, "sla=high")
    [report] = rig.report()
    assert [(one.node, one.pods) for one in report.status.invalid_taints] == [("n2", 3), ("n1", 1), ("n3", 1)]


@pytest.mark.parametrize(("effect", "retained"), [("Hold", 1), ("Evict", 0)])
def test_an_invalid_taint_counts_whatever_it_means_for_pods(effect, retained):
    rig = Rig(policy("a", timing={"onInvalidValue": effect}))
    rig.node("n1", "sla=high")
    rig.pod("web", gt())
    rig.node("n1", "sla=high")
    [entry] = rig.report()
    assert (entry.invalid_taints, entry.status.retained) == (1, retained)
