"""Order of evictions by domain, so that the pods that stay are spread evenly."""

import gc
import itertools
import weakref
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from engine.kept import kept
from engine.spreading import BY_HOST, BY_RACK, BY_ZONE, CHECKOUT, HOST, RACK, ZONE, Rig, over
from taintwarden.engine.model import Owner, Pod, PodClass, SpreadConstraint
from taintwarden.engine.selectors import LabelSelector
from taintwarden.engine.spread import DomainTally, Spread


@pytest.fixture
def rig() -> Rig:
    return Rig()


# -- first evictions

FIRST = {
    "the fullest domain": ("a1 b1 b2 b3 c1 c2", (BY_ZONE,), "b1 b2 c1 a1 b3 c2"),
    "without constraints, by UID": ("a1 b1 b2", (), "a1 b1 b2"),
    "a1 is as full as b2, but zone a is fuller": ("a1 a1 a2 b2 b2", (BY_ZONE, BY_HOST), "a1 b2 a1 a2 b2"),
    "zones have two pods each, rack 1 has three": ("a2 a1 b1 b3 c1 c4", (BY_ZONE, BY_RACK), "a1 b1 c1 a2 b3 c4"),
    "4**3 + 1 is more than 3**3 + 3**3": ("a1 a1 a1 b1 b2 b3 b4", (BY_ZONE, BY_HOST), "b1 a1 b2 a1 b3 a1 b4"),
}
"""Nodes of pods, their constraints, and the nodes in the order in which the pods go."""


@pytest.mark.parametrize(("nodes", "constraints", "order"), FIRST.values(), ids=FIRST)
def test_evictions_keep_the_other_pods_spread_evenly(rig, nodes, constraints, order):
    assert rig.nodes_left_by(rig.group(*reversed(rig.fill(nodes, *constraints)))) == order


def test_a_candidate_that_comes_after_a_choice_has_its_place(rig):
    late, *others = rig.fill("c1 a1 a1 b1")
    group = rig.group(*others)
    assert group.first() is others[0]
    group.add(late)
    assert [rig.evict(group) for _ in range(4)] == [late, *others]


# -- who is counted

OLD, NEW = ({**CHECKOUT, "pod-template-hash": revision} for revision in ("old", "new"))
COUNTED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "pods that stay": ({}, {}, "a1"),
    "no other revision, with pod-template-hash in matchLabelKeys": ({"labels": NEW}, {"labels": OLD, "by": OLD}, "b1"),
    "another revision, if the selector says so": ({"labels": NEW}, {"labels": OLD}, "a1"),
    "pods of other workloads": ({"labels": {**CHECKOUT, "job": "1"}, "owner": Owner("Job", "j", "uid")}, {}, "a1"),
    "no pods that are not selected": ({"labels": {"app": "other"}}, {}, "b1"),
    "no pods of other namespaces": ({"namespace": "other"}, {}, "b1"),
}
"""Others in zone a; candidates, of which most are in zone b; and from where the first goes."""


@pytest.mark.parametrize(("others", "candidates", "first"), COUNTED.values(), ids=COUNTED)
def test_what_counts(rig, others, candidates, first):
    rig.fill("a1 a2 a3", **others)
    by = over(ZONE, **candidates.get("by", CHECKOUT))
    group = rig.group(*rig.fill("a1 b1 b2", by, labels=candidates.get("labels", CHECKOUT)))
    assert rig.evict(group).node == first


def test_a_node_in_another_domain_counts_there_though_none_of_its_pods_counts(rig):
    rig.fill("a1 a2")
    group = rig.group(*rig.fill("b1 c1", BY_ZONE, labels={"app": "other"}))
    assert group.first().node == "b1"
    rig.spread.relabel("c1")  # another label has changed
    assert group.first().node == "b1"
    rig.labels["c1"] = {ZONE: "a"}
    rig.spread.relabel("c1")
    assert group.first().node == "c1"


def test_a_node_that_had_no_domain_when_its_last_pod_left_counts_in_the_one_that_it_gets(rig):
    rig.labels["c1"] = {}
    *_, leaves = rig.fill("a1 a2 c1")
    group = rig.group(*rig.fill("b1 c1", BY_ZONE, labels={"app": "other"}))
    assert group.first().node == "b1"
    rig.spread.leave(leaves)
    assert group.first().node == "b1"
    rig.labels["c1"] = {ZONE: "a"}
    rig.spread.relabel("c1")
    assert group.first().node == "c1"


@pytest.mark.parametrize(("namespace", "first"), [("shop", "a1"), ("other", "b1")])
def test_pods_that_come_after_a_choice_count_in_their_own_namespace(rig, namespace, first):
    group = rig.group(*rig.fill("a1 b1 b2", BY_ZONE))
    assert group.first().node == "b1"
    rig.fill("a2 a3", namespace=namespace)
    assert group.first().node == first


def test_a_pod_that_stays_counts_again_once(rig):
    pods = rig.fill("a1 b1 b2", BY_ZONE)
    rig.spread.leave(pods[0])
    for _ in range(3):
        rig.spread.stay(pods[0])
    assert rig.evict(rig.group(*pods)).node == "b1"


def test_a_pod_that_changes_while_it_leaves_counts_as_what_it_is_if_it_stays(rig):
    group = rig.group(*rig.fill("a1 b1", BY_ZONE))
    other = rig.run("other", "b7", labels={"app": "other"})
    rig.spread.leave(other)
    assert group.first().node == "a1"
    changed = rig.run("other", "b7", labels=CHECKOUT)
    assert group.first().node == "a1"
    rig.spread.stay(changed)
    assert group.first().node == "b1"


def test_pods_of_another_namespace_that_come_later_do_not_count(rig):
    group = rig.group(*rig.fill("a1 b1 b2", BY_ZONE))
    assert group.first().node == "b1"
    rig.fill("a2 a3", namespace="other")
    assert group.first().node == "b1"


# -- what it costs


def test_nodes_are_not_asked_for_before_a_choice(rig):
    group = rig.group(*rig.fill("a1 b1 b2", BY_ZONE))
    assert len(group) == 3
    assert not rig.asked


def test_a_candidate_that_is_refused_and_comes_back_repeatedly_takes_one_place(rig):
    first, *_ = pods = rig.fill("a1 a1 b1", BY_ZONE)
    group = rig.group(*pods)
    assert group.first() is first
    for _ in range(100):
        group.remove(first)
        group.add(first)
        assert group.first() is first
    assert len(group._order) <= 5


def test_domains_are_counted_no_more_when_the_last_group_has_gone(rig):
    group = rig.group(*rig.fill("a1 b1 b2", BY_ZONE))
    group.first()
    del group
    rig.asked.clear()
    rig.fill("a7 b7 c7", BY_ZONE)
    rig.spread.relabel("a1")
    assert not rig.asked


def test_groups_with_the_same_constraint_share_its_counts(rig):
    one, two = (rig.group(*rig.fill("a1 b1 b2", BY_ZONE)) for _ in range(2))
    one.first()
    rig.asked.clear()
    two.first()
    assert not rig.asked


def test_a_selector_is_asked_once_for_a_class(rig, monkeypatch):
    asked: Counter[str] = Counter()
    selects = LabelSelector.selects

    def counting(self: LabelSelector, labels: dict[str, str]) -> bool:
        asked[labels["app"]] += 1
        return selects(self, labels)

    monkeypatch.setattr(LabelSelector, "selects", counting)
    rig.fill("a1 a2 a3 a4", labels={"app": "other"})
    group = rig.group(*rig.fill("a1 b1 b2", BY_ZONE))
    rig.nodes_left_by(group)
    assert asked == {"other": 1, "checkout": 1}


def test_a_class_ends_with_its_last_pod(rig):
    pod = rig.run("uid", "a1", BY_ZONE)
    known: weakref.ref[PodClass] = weakref.ref(pod.shared)
    rig.spread.gone(pod)
    rig.pods.clear()
    del pod
    gc.collect()
    assert known() is None


@pytest.mark.parametrize(
    "constraints",
    [(BY_ZONE,), (BY_HOST,), (BY_ZONE, BY_HOST), (BY_ZONE, BY_RACK, BY_HOST)],
    ids=["zone", "host", "zone and host", "zone, rack and host"],
)
def test_ten_times_the_candidates_are_not_a_hundred_times_the_work(monkeypatch, constraints):
    """Work is counted in questions to the tallies; each pod that goes is replaced, on one of as many nodes."""
    asked = 0
    weight = DomainTally.weight

    def counting(self: DomainTally, node: str) -> int:
        nonlocal asked
        asked += 1
        return weight(self, node)

    monkeypatch.setattr(DomainTally, "weight", counting)

    def work(candidates: int) -> int:
        nonlocal asked
        rig, asked = Rig(), 0
        group = rig.group(*rig.fill(" ".join(f"{'abc'[n % 3]}{n % 25}" for n in range(candidates)), *constraints))
        for number in range(candidates // 2):
            rig.evict(group)
            rig.fill(f"{'abc'[number % 3]}{number % 25}", *constraints)
        return asked

    assert 0 < work(1000) < 25 * work(100)


# -- what a tally counts


def test_a_domain_weighs_the_cube_of_its_pods_and_one_without_pods_nothing():
    labels = {"n1": {HOST: "a"}, "n2": {HOST: "b"}, "n3": {}}
    tally = DomainTally(BY_HOST, labels.__getitem__)
    tally.change("n1", 2)
    assert [tally.weight(node) for node in labels] == [8, 0, 0]
    tally.change("n1", -2)
    labels["n1"] = {HOST: "b"}
    tally.relabel("n1")
    tally.relabel("n4")  # on which nothing was counted, so that no one asks for its labels
    assert [tally.weight(node) for node in labels] == [0, 0, 0]


def test_nothing_is_kept_of_a_pod_that_is_gone_after_its_eviction(rig):
    [pod] = rig.fill("a1", BY_ZONE)
    spread = Spread(lambda _: {})
    for happens in (spread.pod_added, spread.leave, spread.gone):
        happens(pod)
    assert kept(spread, pod.uid, pod.namespace) == []


def test_nothing_is_kept_of_a_node_or_domain_without_pods():
    """A tenant may name any node in its pods, and a kubelet may change the labels of its node at any rate."""
    labels = {"n1": {HOST: "rack-7"}}
    tally = DomainTally(BY_HOST, lambda node: labels.get(node, {}))
    for node in ("n1", "ghost"):
        tally.change(node, 1)
    labels["n1"] = {HOST: "rack-8"}
    tally.relabel("n1")
    for node in ("n1", "ghost"):
        tally.change(node, -1)
    assert tally.weight("n1") == 0
    tally.relabel("n1")
    assert [kept(tally, text) for text in ("n1", "ghost", "rack-7", "rack-8")] == [[], [], [], []]


# -- the rule, against counting everything again each time

NODES = ["a1", "a2", "b1", "b2", "c1"]
LABELS = [{}, {ZONE: "a"}, {ZONE: "b", RACK: "rack-1"}, {ZONE: "c", HOST: "c1"}, {ZONE: "", HOST: "a1", RACK: "rack-2"}]
OTHER = {"app": "other"}


class Naive(RuleBasedStateMachine):
    """Pods come, go and change, nodes too; each group must choose like an implementation that counts again."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.number = 0
        self.standing: dict[str, Pod] = {}
        self.constraints = [(BY_ZONE,), (BY_ZONE, BY_HOST), (BY_HOST, BY_RACK, BY_ZONE, over(ZONE))]
        self.groups = [self.rig.spread.group() for _ in self.constraints]
        self.candidates: list[dict[str, Pod]] = [{} for _ in self.constraints]
        for kind, node in itertools.product(range(3), NODES):
            self.add_pod(node, kind, CHECKOUT)
        for pod in self.standing.values():
            self.add(pod)

    @rule(node=st.sampled_from(NODES), kind=st.integers(0, 2), labels=st.sampled_from([CHECKOUT, OTHER]))
    def add_pod(self, node, kind, labels):
        self.number += 1
        self.store_pod(
            self.rig.pod(f"uid-{self.number * 7 % 101:03}-{self.number}", node, *self.constraints[kind], labels=labels)
        )

    @precondition(lambda self: self.standing)
    @rule(data=st.data(), labels=st.sampled_from([CHECKOUT, OTHER]), node=st.sampled_from([None, *NODES]))
    def change(self, data, labels, node):
        pod = data.draw(st.sampled_from(list(self.standing.values())))
        self.store_pod(self.rig.pod(pod.uid, node or pod.node, *pod.shared.spread, labels=labels))

    def store_pod(self, pod: Pod) -> None:
        before = self.standing.get(pod.uid)
        self.standing[pod.uid] = pod
        if before is None:
            self.rig.spread.pod_added(pod)
        else:
            self.rig.spread.changed(before, pod)
        for group, candidates in zip(self.groups, self.candidates, strict=True):
            if pod.uid in candidates:
                group.remove(candidates[pod.uid])
                candidates[pod.uid] = pod
                group.add(pod)

    @precondition(lambda self: self.standing)
    @rule(data=st.data())
    def remove_pod(self, data):
        pod = data.draw(st.sampled_from(list(self.standing.values())))
        del self.standing[pod.uid]
        self.rig.spread.gone(pod)

    @precondition(lambda self: self.standing)
    @rule(data=st.data())
    def propose(self, data):
        self.add(data.draw(st.sampled_from(list(self.standing.values()))))

    def add(self, pod: Pod) -> None:
        kind = self.constraints.index(pod.shared.spread)
        self.groups[kind].add(pod)
        self.candidates[kind][pod.uid] = pod

    @rule(kind=st.integers(0, 2))
    def evict(self, kind):
        if self.candidates[kind]:
            due = min(self.candidates[kind].values(), key=self.rank)
            pod = self.rig.evict(self.groups[kind])
            assert pod is due
            del self.candidates[kind][pod.uid]
            self.standing.pop(pod.uid, None)

    @rule(node=st.sampled_from(NODES), labels=st.sampled_from(LABELS))
    def relabel(self, node, labels):
        self.ask()  # so that something is counted that has to move
        self.rig.labels[node] = labels
        self.rig.spread.relabel(node)
        self.ask()

    @rule(kind=st.integers(0, 2))
    def give_up(self, kind):
        self.groups[kind] = self.rig.spread.group()
        self.candidates[kind] = {}

    @rule()
    def ask(self):
        for group, candidates in zip(self.groups, self.candidates, strict=True):
            assert len(group) == len(candidates)
            if candidates:
                assert group.first() is min(candidates.values(), key=self.rank)

    def rank(self, pod: Pod) -> tuple[int, str]:
        return -sum(self.counted(constraint, pod.node) ** 3 for constraint in pod.shared.spread), pod.uid

    def counted(self, constraint: SpreadConstraint, node: str) -> int:
        key, selects = constraint.topology_key, constraint.selector.selects
        domain = self.rig.labels_of(node).get(key)
        if domain is None:
            return 0
        there = (pod for pod in self.standing.values() if self.rig.labels_of(pod.node).get(key) == domain)
        return sum(selects(pod.shared.labels) for pod in there)


TestAgainstCountingAgain = Naive.TestCase
TestAgainstCountingAgain.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


# -- how even the spread is that is left


nodes_of_pods = st.lists(
    st.sampled_from(["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "d1"]), min_size=2, max_size=25
)


@given(nodes_of_pods, st.sampled_from([BY_ZONE, BY_HOST]))
def test_with_one_constraint_no_choice_leaves_a_fuller_domain_emptier(nodes, constraint):
    """The fullest domain that has candidates loses one each time, so the greatest count falls as fast as it can."""
    rig = Rig()
    group = rig.group(*rig.fill(" ".join(nodes), constraint))
    counts = Counter(rig.labels_of(node)[constraint.topology_key] for node in nodes)
    while group:
        domain = rig.labels_of(rig.evict(group).node)[constraint.topology_key]
        assert counts[domain] == max(counts.values())
        counts[domain] -= 1
