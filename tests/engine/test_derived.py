"""Taints that policies derive from what a node carries: their keys, pods and times."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rig import NO_LIMITS, START, Rig, exists, gt
from taintwarden.engine import commands, events
from taintwarden.engine.derived import concerns, derivations, source_conflicts, with_derived
from taintwarden.engine.machine import Timings
from taintwarden.engine.machine.judging import Judging
from taintwarden.engine.model import (
    Effect,
    Node,
    NodeInfo,
    SourceKind,
    SourceValue,
    Taint,
    Toleration,
    Tolerations,
    ValueSource,
)
from taintwarden.engine.policy import Mode, Policy, TaintSelector, Timing
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator

KUBELET = ValueSource(SourceKind.NODE_INFO, NodeInfo.KUBELET_VERSION)
KERNEL = ValueSource(SourceKind.NODE_INFO, NodeInfo.KERNEL_VERSION)
HEALTHY = ValueSource(SourceKind.CONDITION, "GPUHealthy")
NO_EXECUTE = (Effect.NO_EXECUTE,)


def reading(key="kubelet", source=KUBELET, *, name="p", effects=NO_EXECUTE, created_at=0.0, **more):
    return acting(TaintSelector(key, effects, source=source, **more), name=name, created_at=created_at)


def acting(*selectors, name="p", **more):
    return Policy(name=name, taints=selectors or (TaintSelector("*"),), limits=NO_LIMITS, **more)


def newer(value="v1.31.0", key="kubelet", **more):
    return Toleration(key, "SemverGt", value, **more)


NOBODY = Requirement("app", SelectorOperator.EXISTS)


class Nodes(Rig):
    """Nodes whose values are given instead of taints."""

    def version_of_kubelet(self, value):
        found = {KUBELET: SourceValue(value)}
        return Node("n1", "uid-n1", {}, (), self.version(), values=found, sources=frozenset(found))

    def reports(self, *taints, name="n1", listed=False, since=None, history="", sources=(KUBELET, HEALTHY), **values):
        found = {KUBELET: values.get("kubelet"), HEALTHY: values.get("healthy")}
        given = {source: SourceValue(found[source], since) for source in sources if found[source] is not None}
        pairs = self.make_taints(*taints)
        node = Node(name, f"uid-{name}", {}, pairs, self.version(), history, values=given, sources=frozenset(sources))
        self.feed(events.NodeSeen(node, listed))
        self.wake()

    @property
    def derived(self):
        return [str(taint) for taint, _ in self.machine.view.node("n1").taints if taint.source]


# -- which taints there are -------------------------------------------------------------------------------------------


def test_a_taint_of_the_spec_counts_instead():
    rig = Nodes(reading(effects=(Effect.NO_EXECUTE, Effect.NO_SCHEDULE)))
    rig.reports("kubelet=v1.99.0", kubelet="v1.30.1")
    assert rig.derived == ["kubelet=v1.30.1:NoSchedule"]
    assert rig.machine.view.node("n1").taints[0][0] == Taint("kubelet", "v1.99.0")


def test_a_source_without_a_value_hides_no_other():
    rig = Nodes(acting(TaintSelector("kernel", source=KERNEL), TaintSelector("kubelet", source=KUBELET)))
    rig.reports(kubelet="v1.30.1")
    assert rig.derived == ["kubelet=v1.30.1:NoExecute"]


def test_the_source_of_the_oldest_policy_counts():
    found = derivations([reading(created_at=2.0), reading(source=KERNEL, name="z", created_at=1.0)])
    assert found["kubelet"].source == KERNEL


def test_a_policy_that_comes_later_reads_the_values_of_nodes_that_are_known():
    rig = Nodes()
    rig.reports(kubelet="v1.30.1")
    rig.pod("a", newer())
    rig.change(reading())
    assert (rig.derived, rig.evictions()) == (["kubelet=v1.30.1:NoExecute"], ["a"])


# -- policies that contradict each other ------------------------------------------------------------------------------


def test_a_younger_policy_with_another_source_is_a_rival():
    found = source_conflicts([reading(name="a", created_at=2.0), reading(source=KERNEL, name="z", created_at=1.0)])
    assert list(found) == ["a"]
    assert "policy z, which is older, reads the taint kubelet from nodeInfo kernelVersion" in found["a"]


def test_a_rival_takes_no_key_itself():
    """A policy that is not followed must not stop a third one."""
    both = (TaintSelector("kubelet", source=KERNEL), TaintSelector("kernel", source=KUBELET))
    rival = acting(*both, name="b", created_at=2.0)
    third = reading("kernel", KERNEL, name="c", created_at=3.0)
    assert list(source_conflicts([reading(name="a", created_at=1.0), rival, third])) == ["b"]


# -- whom it concerns -------------------------------------------------------------------------------------------------


def test_a_pod_without_a_toleration_for_the_key_is_not_concerned():
    rig = Nodes(reading())
    rig.reports(kubelet="v1.30.1")
    rig.pod("unaware")
    rig.pod("other", gt("950"))
    assert rig.evictions() == []


def test_a_quarantine_does_not_act_on_it():
    rig = Nodes(
        acting(TaintSelector("kubelet", source=KUBELET), pod_selector=LabelSelector((NOBODY,))),
        acting(name="q", quarantine=True),
    )
    rig.reports(kubelet="v1.31.1")
    rig.pod("new", newer("1.30.0"))
    assert rig.evictions() == []


def test_a_quarantine_of_the_same_key_leaves_it_to_the_policy_that_reads_it():
    rig = Nodes(
        acting(TaintSelector("kubelet"), name="q", quarantine=True, created_at=1.0),
        reading(name="r", created_at=2.0),
    )
    rig.reports(kubelet="v1.29.1")
    rig.pod("new", newer("1.30.0"))
    assert [one.verdict.policy.name for one in rig.take(commands.Evict)] == ["r"]


@pytest.mark.parametrize("first", ["derived", "written"])
def test_which_policy_acts_on_a_derived_taint_says_nothing_of_one_that_is_written(first):
    """Where the policy that reads it selects no pod, a policy for all taints acts on the written one only."""
    rig = Nodes(
        acting(TaintSelector("kubelet", source=KUBELET), pod_selector=LabelSelector((NOBODY,))), acting(name="all")
    )
    for name in ("derived", "written") if first == "derived" else ("written", "derived"):
        rig.pod(name, newer("1.30.0"), node=name)
        rig.reports(*(["kubelet=v1.29.1"] if name == "written" else []), name=name, kubelet="v1.29.1")
    assert rig.evictions() == ["written"]


def test_the_annotation_is_a_toleration_as_well():
    rig = Nodes(reading())
    rig.reports(kubelet="v1.30.1")
    rig.pod("old", exists("kubelet"), extended=[newer("1.31.0")])
    assert rig.evictions() == ["old"]


@pytest.mark.parametrize("sources", [{"native": (exists("k"),)}, {"annotated": (exists("k"),)}])
def test_each_kind_of_toleration_names_the_key(sources):
    derived = Taint("k", "1", source="label k")
    assert concerns(derived, Tolerations(**sources))
    assert not concerns(derived, Tolerations((exists("other"), exists(""))))
    assert concerns(Taint("k", "1"), Tolerations())


# -- clocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [True, False])
def test_a_taint_that_a_person_writes_in_its_place_begins_then(restarts):
    """To pods that do not name its key, the derived one did not exist."""
    given = acting(TaintSelector("kubelet", source=KUBELET), timing=Timing(violation_grace_seconds=120))
    rig = Nodes(given)
    rig.reports(kubelet="v1.30.1")
    stored = rig.world.cluster.nodes["n1"].history_text()
    if restarts:
        rig = Nodes(given)
    rig.pod("unaware")
    rig.wall += 600
    rig.reports("kubelet=v1.99.0", kubelet="v1.30.1", history=stored)
    assert rig.deadline("unaware") == 720
    rig.reports("kubelet=v1.99.1", kubelet="v1.30.1", history=stored)
    assert rig.deadline("unaware") == 720


def test_a_restart_moves_no_deadline():
    before = Nodes(reading("gpu", HEALTHY))
    before.reports(healthy="True")
    before.answer(commands.SaveHistory)
    before.advance(50)
    before.reports(healthy="False")
    stored = [one.text for one in before.ordered if isinstance(one, commands.SaveHistory)][-1]
    after = Nodes(reading("gpu", HEALTHY))
    after.wall += 60
    after.reports(healthy="False", history=stored, listed=True)
    after.pod("p", Toleration("gpu", "NotIn", values=("False",), violation_grace_seconds=30), bound_at=START)
    after.advance(19)
    assert after.evictions() == []
    after.advance(2)
    assert after.evictions() == ["p"]


def test_a_transition_in_a_gap_starts_the_clock_again():
    """The condition was True in between: the time of its transition is later than the one that is known."""
    rig = Nodes(reading("gpu", HEALTHY))
    rig.reports(healthy="False", since=START - 100)
    rig.feed(events.ViewChanged("nodes", live=False))
    rig.advance(10)
    rig.reports(healthy="False", since=START + 5, listed=True)
    assert rig.machine.view.node("n1").taints[0][1].added_at == START + 5


def test_an_old_transition_removes_no_grace_where_the_condition_was_seen_before():
    rig = Nodes(reading("gpu", HEALTHY))
    rig.reports()
    rig.advance(5)
    rig.reports(healthy="False", since=START - 600)
    assert rig.machine.view.node("n1").taints[0][1].added_at == START + 5


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_condition_that_no_policy_named_before_counts_from_its_transition(is_listed):
    rig = Nodes(reading())
    rig.reports(healthy="False", since=START - 600, sources=[KUBELET])
    rig.advance(5)
    rig.change(reading(), reading("gpu", HEALTHY, name="q"))
    rig.reports(healthy="False", since=START - 600, listed=is_listed)
    assert rig.machine.view.node("n1").taints[0][1].added_at == START - 600


def test_a_policy_that_the_leader_knew_first_counts_from_what_it_stored():
    """A value without a time. The leader has read it, and written its history, before this replica lists the nodes."""
    leader = Nodes(reading())
    leader.reports(kubelet="v1.30.1")
    [order] = leader.take(commands.SaveHistory)
    rig = Nodes(acting(), leading=False)
    rig.reports(sources=())
    rig.advance(30)
    rig.change(reading())
    rig.reports(kubelet="v1.30.1", history=order.text, listed=True)
    assert rig.machine.view.node("n1").taints[0][1].added_at == START


# -- a writer that renews the time with each report, although the status stays -----------------------------------------


def renewing(times):
    """A node whose agent reports the same status every 10 s, each time as if it had just changed; what was stored."""
    rig, stored = Nodes(reading("gpu", HEALTHY)), [""]
    rig.reports(healthy="False", since=START)
    for _ in range(times):
        while any(isinstance(one, commands.SaveHistory) for one in rig.ordered):
            stored.append(rig.answer(commands.SaveHistory).text)
        rig.advance(10)
        rig.reports(healthy="False", since=rig.wall, history=stored[-1])
    return rig, stored


def test_a_time_that_is_renewed_starts_no_clock_again():
    rig, _ = renewing(times=2)
    rig.pod("p", Toleration("gpu", "NotIn", values=("False",), violation_grace_seconds=30), bound_at=START - 100)
    rig.advance(9.75)
    assert rig.evictions() == []
    rig.advance(0.25)
    assert rig.evictions() == ["p"]


def test_a_time_that_is_renewed_is_not_stored_with_each_report():
    _, stored = renewing(times=10)
    assert len(stored[1:]) == 1


def test_a_time_that_is_renewed_makes_no_report_more_than_a_heartbeat():
    rig, stored = renewing(times=3)
    rig.pod("p", Toleration("gpu", "NotIn", values=("False",), violation_grace_seconds=99))
    rig.out.clear()
    before = rig.machine.view.evaluations
    rig.reports(healthy="False", since=rig.wall + 10, history=stored[-1])
    assert (rig.out, rig.machine.view.evaluations) == ([], before)
    rig.reports(healthy="True", since=rig.wall + 10, history=stored[-1])
    assert rig.machine.view.evaluations != before


def test_the_time_of_a_taint_of_the_spec_still_counts_after_a_gap():
    rig = Nodes(acting())
    for since in (START, START + 10):
        rig.advance(10)
        rig.node("n1", "sla=940", added=since)
    rig.feed(events.ViewChanged("nodes", live=False))
    rig.advance(10)
    node = Node("n1", "uid-n1", {}, rig.make_taints("sla=940", added=START + 25), rig.version())
    rig.feed(events.NodeSeen(node, listed=True))
    assert rig.machine.view.node("n1").taints[0][1].added_at == START + 25


# -- reports ----------------------------------------------------------------------------------------------------------


def test_a_report_counts_the_selected_nodes_with_a_value():
    rig = Nodes(acting(TaintSelector("kubelet", source=KUBELET), TaintSelector("gpu", source=HEALTHY)))
    rig.reports(kubelet="v1.36.0")
    rig.reports(name="n2", kubelet="v1.36.0")
    rig.reports(name="n3")
    [report] = rig.report()
    assert [(one.key, one.source, one.nodes) for one in report.sources] == [
        ("kubelet", "nodeInfo kubeletVersion", 2),
        ("gpu", "condition GPUHealthy", 0),
    ]


# -- laws -------------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c"])
SOURCES = st.sampled_from([KUBELET, KERNEL, HEALTHY])
EFFECTS = st.lists(st.sampled_from(list(Effect)), min_size=1, max_size=3, unique=True).map(tuple)
SELECTORS = st.builds(TaintSelector, KEYS, EFFECTS, source=SOURCES | st.none())
POLICIES = st.lists(
    st.builds(
        lambda name, taints, at: acting(*taints, name=name, created_at=at),
        st.sampled_from(["p", "q", "r", "s"]),
        st.lists(SELECTORS, min_size=1, max_size=3),
        st.sampled_from([0.0, 1.0]),
    ),
    max_size=4,
    unique_by=lambda one: one.name,
)
NODES = st.builds(
    lambda taints, values: Node("n", "u", {}, tuple((Taint(*one), None) for one in taints), 1, values=values),
    st.lists(
        st.tuples(KEYS, st.just("x"), st.sampled_from(list(Effect))), max_size=3, unique_by=lambda one: (one[0], one[2])
    ),
    st.dictionaries(SOURCES, st.builds(SourceValue, st.sampled_from(["1", "2"]))),
)


@given(NODES, POLICIES, POLICIES)
def test_only_the_policies_in_force_decide(node, earlier, later):
    derived = derivations(later)
    assert with_derived(with_derived(node, derivations(earlier)), derived) == with_derived(node, derived)
    assert with_derived(with_derived(node, derived), {}) == node


@given(NODES, POLICIES)
def test_a_node_has_each_key_and_effect_once(node, policies):
    found = [(taint.key, taint.effect) for taint, _ in with_derived(node, derivations(policies)).taints]
    assert len(found) == len(set(found))
    assert set(node.taints) <= set(with_derived(node, derivations(policies)).taints)


@given(POLICIES, st.randoms(use_true_random=False))
def test_the_order_of_the_policies_does_not_matter(policies, chance):
    shuffled = list(policies)
    chance.shuffle(shuffled)
    assert (derivations(shuffled), source_conflicts(shuffled)) == (derivations(policies), source_conflicts(policies))


@given(POLICIES)
def test_without_rivals_no_key_has_two_sources(policies):
    policies = [msgspec.structs.replace(one, taints=tuple({t.key: t for t in one.taints}.values())) for one in policies]
    refused = source_conflicts(policies)
    accepted = [one for one in policies if one.name not in refused]
    named = {(t.key, t.source) for one in accepted for t in one.taints if t.source is not None}
    assert len(named) == len({key for key, _ in named})
    assert {key: one.source for key, one in derivations(accepted).items()} == dict(named)


# -- a policy for all taints ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["*", "example.com/*"])
def test_a_pattern_does_not_select_what_another_policy_derives(key):
    taint = Taint("example.com/gpu", "False", Effect.NO_EXECUTE, source="condition GPUHealthy")
    assert TaintSelector(key).specificity(taint) == 0
    assert TaintSelector(key).specificity(msgspec.structs.replace(taint, source="")) > 0
    assert TaintSelector(taint.key).specificity(taint) == 1_000


@pytest.mark.parametrize("mode", [Mode.DRY_RUN, Mode.PAUSED])
def test_a_policy_that_only_rehearses_has_no_pod_evicted_by_a_policy_for_all_taints(mode):
    everything = acting(name="everything")
    rig = Nodes(everything)
    rig.reports(healthy="Unknown")
    rig.pod("p", Toleration("gpu", "In", values=("True",)), bound_at=START - 1000)
    elsewhere = LabelSelector((NOBODY,))
    rig.change(
        everything, msgspec.structs.replace(reading("gpu", HEALTHY, name="b"), mode=mode, node_selector=elsewhere)
    )
    rig.advance(1)
    assert rig.evictions() == []


# -- nodes that change all the time


def restless(*last, monkeypatch):
    """A node whose kubelet reports other versions twenty times at once, and then these."""
    rig, evaluated = Nodes(reading(), timings=Timings(max_silence=math.inf)), []
    rig.reports(kubelet="v1.32.0")
    for name in "ab":
        rig.pod(name, newer())
    update = Judging.update_claims
    monkeypatch.setattr(Judging, "update_claims", lambda *args: (evaluated.append(args), update(*args)))
    for value in (*["v1.30.0", "v1.32.0"] * 10, *last):
        rig.feed(events.NodeSeen(rig.version_of_kubelet(value)))
    return rig, len(evaluated)


def test_pods_of_a_node_that_changes_all_the_time_are_evaluated_later(monkeypatch):
    """Each change would concern a hundred pods, and a kubelet may write to its node at any rate."""
    rig, evaluated = restless("v1.30.0", monkeypatch=monkeypatch)
    assert evaluated < 2 * 15
    rig.advance(2)
    assert sorted(rig.evictions()) == ["a", "b"]


def test_no_pod_leaves_such_a_node_by_a_value_that_is_over(monkeypatch):
    rig, _ = restless("v1.30.0", "v1.32.0", monkeypatch=monkeypatch)
    rig.advance(2)
    assert rig.evictions() == []
