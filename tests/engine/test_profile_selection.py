"""Profiles of tolerations: whom they reach, in which order they count, and what happens when they come and go."""

import math
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from engine.rig import START, Rig, exists, gt, limited
from simulated import policy
from taintwarden.engine import commands, evaluate, events
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import GuardSettings
from taintwarden.engine.limits.refusal import VIEW
from taintwarden.engine.machine import Timings
from taintwarden.engine.model import Profile, SharedTolerations, Taint, Toleration, Tolerations
from taintwarden.engine.operators import Match, match
from taintwarden.engine.profile_selection import Profiles, matching
from taintwarden.engine.selectors import EVERYTHING, LabelSelector, Requirement, SelectorOperator

GRACE = gt("950", violation_grace_seconds=30)


def selecting(**labels: str) -> LabelSelector:
    return LabelSelector(
        tuple(Requirement(key, SelectorOperator.IN, (value,)) for key, value in sorted(labels.items()))
    )


def profile(name: str, *tolerations: Toleration, namespace: str = "shop", **labels: str) -> Profile:
    return Profile(namespace, name, selecting(**labels) if labels else EVERYTHING, tolerations)


class Stage(Rig):
    def give(self, name: str, *tolerations: Toleration, **more: Any) -> None:
        """A profile is seen."""
        self.feed(events.ProfileSeen(profile(name, *tolerations, **more)))
        self.wake()

    def take_away(self, name: str, namespace: str = "shop") -> None:
        self.feed(events.ProfileGone(namespace, name))
        self.wake()


@pytest.fixture
def stage() -> Stage:
    return Stage()


# -- while evictions wait ---------------------------------------------------------------------------------------------


def test_no_pod_is_evicted_by_a_verdict_that_a_profile_has_overturned():
    """The profile comes between the deadline and the moment of acting."""
    stage = Stage(policy(timing={"violationGraceSeconds": 30}))
    stage.node("n1", "sla=940", added=START)
    stage.pod("a")
    stage.wall += 31
    stage.monotonic += 31
    stage.process(events.ProfileSeen(profile("fast", gt("900"))))
    assert stage.evictions() == []


@pytest.mark.parametrize(("value", "leaves"), [("900", ["other"]), ("980", ["web", "other"])])
def test_a_pod_that_is_due_waits_until_its_namespace_is_evaluated_again(value, leaves):
    stage = Stage(
        policy(timing={"violationGraceSeconds": 30}), timings=Timings(max_silence=math.inf, namespace_pause=10.0)
    )
    stage.node("n1", "sla=940", added=START)
    stage.pod("web", labels={"app": "web"})
    stage.pod("other")
    stage.advance(25)
    stage.give("fast", gt("990"), app="web")
    stage.give("fast", gt(value), app="web")
    stage.advance(8)
    assert stage.evictions() == []
    assert [claim.limit for claim in stage.view.all_claims()] == [VIEW, VIEW]
    stage.advance(2)
    assert sorted(stage.evictions()) == sorted(stage.claimed()) == sorted(leaves)


@pytest.mark.parametrize(("namespace", "is_cause"), [("shop", True), ("bank", False)])
def test_a_wave_is_the_doing_of_a_profile_of_its_own_namespace(namespace, is_cause):
    stage = Stage(limited(guard=GuardSettings(max_percent=20, min_pods=2, settle_seconds=2)))
    stage.node("n1", "sla=980")
    for number in range(10):
        stage.pod(f"p{number}", gt("950"))
    stage.node("n1", "sla=940")
    stage.advance(1)
    stage.give("fast", gt("930"), namespace=namespace, app="web")
    stage.advance(5)
    (opened,) = stage.take(commands.GuardTripped)
    assert opened.guard.record.cause.startswith(f"TolerationProfile {namespace}/fast was created") is is_cause


def test_a_wave_long_after_a_profile_changed_is_not_its_doing():
    stage = Stage(limited(guard=GuardSettings(max_percent=20, min_pods=2, settle_seconds=2)))
    stage.give("fast", gt("900"))
    stage.node("n1", "sla=940")
    for number in range(10):
        stage.pod(f"p{number}")
    stage.give("fast", gt("930"))
    stage.advance(60)
    stage.node("n1", "sla=890")
    stage.advance(5)
    (opened,) = stage.take(commands.GuardTripped)
    assert opened.guard.record.cause.startswith("taint sla:NoExecute on 1 node: sla=890:NoExecute on n1")


def test_pods_of_a_namespace_on_many_nodes_are_looked_at_some_at_a_time():
    stage = Stage(slice_size=2)
    for number in range(5):
        stage.node(f"n{number}", "sla=980")
        stage.pod(f"web-{number}", gt("900"), node=f"n{number}")
        stage.pod(f"other-{number}", gt("900"), node=f"n{number}", namespace="bank")
    assert evaluated_in_steps(stage, events.ProfileSeen(profile("p", gt("990")))) == [3, 1, 0]
    assert sorted(set(stage.claimed())) == [f"web-{number}" for number in range(5)]


def test_a_namespace_may_be_evaluated_before_its_nodes_are_for_another_policy():
    stage = Stage(slice_size=1)
    for name in ("n1", "n2"):
        stage.node(name, "sla=980")
    stage.pod("web", gt("950"), node="n2")
    guarded = limited("q", guard=GuardSettings(), spec={"timing": {"violationGraceSeconds": 60}})
    stage.process(events.ProfileSeen(profile("p", gt("990"))), events.PoliciesChanged((guarded,)))
    assert [(one.pod.name, one.policy.name) for one in stage.view.all_claims()] == [("web", "q")]


def evaluated_in_steps(stage: Stage, *fed: Any) -> list[int]:
    """Number of nodes that are left after each step."""
    stage.feed(*fed)
    left = []
    while shares := stage.machine._backlog.shares:
        stage.feed(events.Tick())
        left.append(sum(map(len, shares.values())))
    return left


# -- how little is done -----------------------------------------------------------------------------------------------


def evaluated(stage: Stage, *fed: Any) -> list[str]:
    """The nodes that have to be looked at again."""
    stage.feed(*fed)
    names = [name for nodes in stage.machine._backlog.shares.values() for name in nodes]
    stage.wake()
    return names


def test_only_nodes_with_pods_of_the_namespace_are_looked_at_again(stage):
    for node in ("n1", "n2", "n3", "n4"):
        stage.node(node, *(["sla=940"] if node != "n4" else []))
    stage.pod("a", node="n1", labels={"app": "web"})
    stage.pod("b", node="n2", labels={"app": "db"})
    stage.pod("c", node="n3", labels={"app": "web"}, namespace="bank")
    stage.pod("d", node="n4", labels={"app": "web"})
    assert evaluated(stage, events.ProfileSeen(profile("p", gt("900"), app="web"))) == ["n1", "n2", "n4"]
    assert evaluated(stage, events.ProfileSeen(profile("p", gt("900"), app="web"))) == []
    assert evaluated(stage, events.ProfileSeen(profile("p", gt("900"), app="db"))) == ["n1", "n2", "n4"]
    assert evaluated(stage, events.ProfileGone("shop", "p")) == ["n1", "n2", "n4"]


class Counter:
    """Counts the calls of a function of a class or module."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, of: object, name: str) -> None:
        self.calls = 0
        original = getattr(of, name)

        def counting(*args: Any) -> Any:
            self.calls += 1
            return original(*args)

        monkeypatch.setattr(of, name, counting)


def labelled(profiles: int, pods: int) -> Stage:
    """Each profile selects one app, and each app has one pod."""
    stage = Stage()
    stage.node("n1", "sla=940")
    for number in range(profiles):
        stage.give(f"p{number}", gt("900"), app=f"app-{number}")
    for number in range(pods):
        stage.pod(f"pod-{number}", labels={"app": f"app-{number}"})
    return stage


def test_a_change_costs_the_same_however_many_other_profiles_there_are(monkeypatch):
    costs = []
    for profiles in (100, 400):
        stage = labelled(profiles, 100)
        asked = Counter(monkeypatch, LabelSelector, "selects")
        stage.give("p0", gt("930"), app="app-0")
        costs.append(asked.calls)
    assert costs[0] == costs[1]


def test_a_change_asks_each_class_of_the_namespace_twice_at_most(monkeypatch):
    stage = labelled(60, 500)
    stage.machine.step(events.PoliciesChanged(()), stage.now)
    asked = Counter(monkeypatch, LabelSelector, "selects")
    stage.feed(events.ProfileSeen(profile("p0", gt("930"), app="app-0")))
    assert asked.calls <= 2 * 500


def test_a_change_judges_once_for_pods_that_tolerate_the_same():
    stage = Stage()
    stage.node("n1", "sla=940")
    for number in range(100):
        stage.pod(f"pod-{number}", labels={"app": f"app-{number}"})
    before = stage.machine.view.evaluations
    stage.give("fast", gt("900"))
    assert stage.machine.view.evaluations == before + 1


def test_what_profiles_say_is_found_out_once_for_pods_that_differ(monkeypatch):
    stage = Stage()
    stage.node("n1", "sla=940")
    for number in range(100):
        stage.pod(f"pod-{number}", exists(f"own-{number}"))
    compared = Counter(monkeypatch, evaluate, "match")
    stage.give("all", *(gt(str(990 - number)) for number in range(40)))
    assert compared.calls <= 100 + 40


def test_a_pod_is_asked_of_profiles_that_may_select_it_alone(monkeypatch):
    stage = labelled(60, 0)
    asked = Counter(monkeypatch, LabelSelector, "selects")
    profiles = Profiles()
    for one in stage.machine.view.profiles:
        profiles.put(one.namespace, one.name, one)
    found = profiles.of(Interner().pod_class("shop", {"app": "app-7", "tier": "x"}, Tolerations()))
    assert [one.name for one in found] == ["p7"]
    assert asked.calls == 1


VALUES = st.sampled_from(["a", "b", "c"])
REQUIREMENTS = st.lists(
    st.builds(
        Requirement,
        st.sampled_from(["app", "tier"]),
        st.sampled_from(list(SelectorOperator)),
        st.lists(VALUES, min_size=1, max_size=3).map(tuple),
    ),
    max_size=3,
).map(lambda requirements: LabelSelector(tuple(requirements)))


@given(
    st.lists(st.tuples(st.sampled_from(["x", "y"]), st.none() | REQUIREMENTS), max_size=8),
    st.dictionaries(st.sampled_from(["app", "tier"]), VALUES),
)
def test_the_profiles_that_are_found_are_those_that_select(changes, labels):
    """Whichever come, change and go."""
    indexed, plain = Profiles(), {}
    seen, seldom = (Interner().pod_class("shop", labels, Tolerations()) for _ in range(2))
    for name, selector in changes:
        plain[name] = selector and Profile("shop", name, selector, (gt(),))
        indexed.put("shop", name, plain[name])
        assert indexed.of(seen) == matching(filter(None, plain.values()), seen)
    assert indexed.of(seldom) == matching(filter(None, plain.values()), seldom)


def test_a_change_of_one_profile_asks_no_other_about_the_pods(monkeypatch):
    stage = labelled(60, 0)
    stage.node("n1", "sla=980")
    for number in range(20):
        stage.pod(f"pod-{number}", labels={"app": f"app-{number}", "tier": "x", "n": f"{number}"})
    stage.give("all", gt("900"))
    asked = Counter(monkeypatch, LabelSelector, "selects")
    stage.give("all", gt("910"))
    assert asked.calls <= 20


# -- reports -----------------------------------------------------------------------------------------------------------


def test_the_verdict_tells_the_tolerations_of_profiles(stage):
    stage.give("strict", GRACE)
    stage.node("n1", "sla=940")
    stage.pod("a", exists())
    (scheduled,) = stage.take(commands.Scheduled)
    assert scheduled.verdict.tolerations == Tolerations((exists(),), (), SharedTolerations((GRACE,)))


def test_matched_pods_are_counted(stage):
    stage.node("n1")
    stage.node("n2")
    stage.give("all", gt())
    stage.give("web", gt(), app="web")
    stage.give("elsewhere", gt(), namespace="bank")
    stage.pod("a", labels={"app": "web"}, node="n1")
    stage.pod("b", labels={"app": "web"}, node="n2")
    stage.pod("c", node="n2")
    assert matched(stage) == ({"bank/elsewhere": 0, "shop/all": 3, "shop/web": 2}, 0)
    stage.gone("a")
    assert matched(stage)[0]["shop/web"] == 1
    stage.pod("c", labels={"app": "web"}, node="n2")
    assert matched(stage)[0]["shop/web"] == 2


def test_matched_pods_are_counted_in_slices_between_which_profiles_may_change(stage):
    stage.node("n1")
    for name in ("all", "more"):
        stage.give(name, gt())
    for number in range(9):
        stage.pod(f"pod-{number}", labels={"n": f"{number}"})
    assert matched(stage, 3) == ({"shop/all": 9, "shop/more": 9}, 9)
    counting = stage.view.matched_pods(3)
    next(counting)
    stage.give("more", gt("900"))
    assert list(counting) == [None] * 8


def matched(stage: Stage, at_once: int = 100) -> tuple[dict[str, int], int]:
    """Number of pods that each profile selects, and number of pauses after which that is known."""
    counting, pauses = stage.view.matched_pods(at_once), 0
    while True:
        try:
            next(counting)
        except StopIteration as done:
            return done.value, pauses
        pauses += 1


# -- against a naive model --------------------------------------------------------------------------------------------


class World(NamedTuple):
    """One pod on one node, and profiles that came and went."""

    native: list[Toleration]
    annotated: list[Toleration]
    labels: dict[str, str]
    changes: list[tuple[str, str, dict[str, str], list[Toleration] | None]]


TOLERATIONS = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from(["sla", "sla", "other"]),
        operator=st.sampled_from(["Gt", "Lt", "Exists"]),
        value=st.sampled_from(["900", "950"]),
        toleration_seconds=st.sampled_from([None, 5, 50]),
    )
    | st.builds(Toleration, operator=st.just("Exists"), toleration_seconds=st.sampled_from([None, 7])),
    max_size=2,
)
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]), max_size=2)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["shop", "bank"]), st.sampled_from("abc"), LABELS, st.none() | TOLERATIONS), max_size=6
)


def expected(world: World) -> float | None:
    """When the pod has to leave, by the words of the rule: no shared code but whether one toleration holds."""
    stored: dict[tuple[str, str], tuple[dict[str, str], list[Toleration]]] = {}
    for namespace, name, labels, tolerations in world.changes:
        if tolerations is None:
            stored.pop((namespace, name), None)
        else:
            stored[namespace, name] = (labels, tolerations)
    extended = list(world.annotated)
    for (namespace, _), (labels, tolerations) in sorted(stored.items(), key=lambda one: one[0]):
        if namespace == "shop" and labels.items() <= world.labels.items():
            extended += tolerations
    named = any(one.key == "sla" for one in extended)
    tried = extended if named else world.native + extended
    for one in tried:
        if match(one, Taint("sla", "940")) is Match.HOLDS:
            comparison = one.operator in ("Gt", "Lt")
            return None if comparison or one.toleration_seconds is None else float(one.toleration_seconds)
    graces = [one.toleration_seconds for one in tried if one.key == "sla" and one.operator in ("Gt", "Lt")]
    return float((graces[0] or 0) if graces else 0)


@given(st.builds(World, TOLERATIONS, TOLERATIONS, LABELS, CHANGES), st.integers(0, 6))
def test_deadlines_are_those_of_the_naive_model(world, pod_comes):
    """The pod and its profiles come, change and go in any order."""
    stage = Stage(policy(timing={"violationGraceSeconds": 0}), leading=False)
    stage.node("n1", "sla=940", added=START)
    for index, (namespace, name, labels, tolerations) in enumerate(world.changes):
        if index == pod_comes:
            stage.pod("a", *world.native, extended=world.annotated, labels=world.labels)
        if tolerations is None:
            stage.take_away(name, namespace)
        else:
            stage.give(name, *tolerations, namespace=namespace, **labels)
    if pod_comes >= len(world.changes):
        stage.pod("a", *world.native, extended=world.annotated, labels=world.labels)
    assert stage.deadline("a") == expected(world)


def test_nothing_is_kept_of_a_namespace_that_was_evaluated():
    stage = Stage(timings=Timings(max_silence=math.inf, namespace_pause=10.0))
    stage.node("n1", "sla=940")
    stage.pod("a", gt("900"), namespace="brief")
    stage.give("fast", gt("930"), namespace="brief")
    stage.take_away("fast", namespace="brief")
    stage.gone("a")
    stage.advance(21)
    stage.feed(events.Tick())
    assert stage.machine._backlog._next_at == {}


def test_nothing_is_kept_of_a_namespace_whose_last_profile_is_gone():
    profiles = Profiles()
    for profile_or_none in (profile("a", app="x"), None):
        profiles.put("shop", "a", profile_or_none)
    assert kept(profiles, "shop") == []
