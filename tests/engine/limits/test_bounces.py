"""Workloads that come back are counted by rounds, and held with an increasing back-off."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from engine.limits.asking import AT_ONCE, ask
from engine.rig import limited, owner
from taintwarden.engine import limit_settings
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import BounceSettings
from taintwarden.engine.limits import EvictionRequest, bounces
from taintwarden.engine.limits.bounces import Bounces
from taintwarden.engine.limits.refusal import BOUNCE, Refusal, RefusalScope
from taintwarden.engine.model import Instant, Owner, Pod, Taint, Tolerations
from taintwarden.engine.policy import Policy, Reclaim

BAD, WORSE = Taint("sla", "900"), Taint("sla", "0")
INTERNER = Interner()


@pytest.fixture(autouse=True)
def _after_two_evictions(monkeypatch):
    """A row begins to wait earlier than in the product, so that the tests are short."""
    monkeypatch.setattr(limit_settings, "BOUNCING_EVICTIONS", 2)
    monkeypatch.setattr(bounces, "BOUNCING_SECONDS", 100.0)


class Loop:
    """A limit after two evictions in a row, and one node that all pods come back to."""

    def __init__(self, *policies: Policy, **settings: int) -> None:
        given = {"max_backoff_seconds": 200} | settings
        self.bounces = Bounces()
        self.policies = policies or (limited(bounce=BounceSettings(**given)),)
        self.bounces.configure(self.policies, AT_ONCE)
        self.now = 1_000.0

    def add_pod(self, name: str, of: Owner | None = None, node: str = "n1", namespace: str = "shop") -> Pod:
        shared = INTERNER.pod_class(namespace, {}, Tolerations(), owner=of or owner())
        pod = Pod(name, name, node, shared, 0.0, 1)
        self.bounces.pod_added(pod)
        return pod

    def request(self, pod: Pod, policy: str = "p") -> EvictionRequest:
        [of] = [one for one in self.policies if one.name == policy]
        return ask(pod, of, now=Instant(self.now, self.now))

    def call(self, pod: Pod, policy: str = "p") -> int:
        """Its eviction is requested. Returns the number of the round that this starts, if the pod came back."""
        rounds = {key: loop.rounds for key, loop in self.bounces._loops.items()}
        self.bounces.reserve(self.request(pod, policy))
        [*_, (key, loop)] = self.bounces._loops.items()
        return loop.rounds if loop.rounds > 1 and rounds.get(key) != loop.rounds else 0

    def leave(self, pod: Pod, policy: str = "p") -> int:
        counted = self.call(pod, policy)
        self.bounces.gone(pod, AT_ONCE)
        return counted

    def ask(self, pod: Pod, policy: str = "p") -> Refusal | None:
        return self.bounces.admit(self.request(pod, policy))

    def held_for(self, pod: Pod, **by: str) -> float:
        refused = self.ask(pod, **by)
        return 0.0 if refused is None or refused.until is None else refused.until - self.now

    def bounce_by(self, policy: str, times: int) -> None:
        for number in range(times):
            self.leave(self.add_pod(f"pod-{policy}-{number}"), policy=policy)
            self.now += 1

    def bounce(self, times: int, **more: object) -> list[int]:
        """`times` pods come one after the other, each a second after the one before left."""
        counted = []
        for number in range(times):
            counted.append(self.leave(self.add_pod(f"pod-{number}", **more)))
            self.now += 1
        return counted


def test_a_place_is_remembered_for_the_policy_that_stays():
    settings = BounceSettings(max_backoff_seconds=200)
    loop = Loop(limited("p", bounce=settings), limited("q", bounce=settings))
    for policy in "pq":
        loop.bounce_by(policy, 3)
    loop.bounces.configure([limited("q", bounce=settings)], AT_ONCE)
    pod = loop.add_pod("again")
    assert loop.ask(pod, policy="p") is None
    assert loop.held_for(pod, policy="q") > 0
    loop.bounces.configure([], AT_ONCE)
    assert kept(loop.bounces, owner().uid) == []


def test_a_pod_that_comes_back_too_often_is_held():
    loop = Loop()
    loop.bounce(2)
    assert kept(loop.bounces, "pod-0", "pod-1") == []
    refused = loop.ask(loop.add_pod("next"))
    assert refused == Refusal(
        BOUNCE,
        loop.now - 1 + 60,
        RefusalScope.PODS,
        "bounce/p/shop/uid-of-web/n1",
        "ReplicaSet web was evicted from node n1 2 times in a row, and came back",
    )


def test_the_time_doubles_up_to_the_longest():
    loop = Loop()
    loop.bounce(1)
    waits = []
    for number in range(4):
        loop.leave(loop.add_pod(f"again-{number}"))
        waits.append(loop.held_for(loop.add_pod(f"next-{number}")))
        loop.now += waits[-1]
    assert waits == [60, 120, 200, 200]


def test_the_wait_begins_with_the_last_eviction_of_the_round():
    loop = Loop()
    loop.bounce(1)
    crowd = [loop.add_pod(str(number)) for number in range(3)]
    for pod in crowd:
        loop.leave(pod)
        loop.now += 20
    assert loop.held_for(loop.add_pod("next")) == 60 - 20


# -- what is no bounce -------------------------------------------------------------------------------------------------


def test_a_slow_wave_is_one_round():
    loop = Loop()
    crowd = [loop.add_pod(str(number)) for number in range(50)]
    loop.leave(crowd[0])
    back = loop.add_pod("back")
    for pod in crowd[1:]:
        loop.now += 90
        assert loop.leave(pod) == 0
    assert loop.leave(back) == 2


def test_the_first_round_after_the_start_of_the_machine_is_the_first():
    loop = Loop()
    loop.now = 0.0
    assert loop.bounce(2) == [0, 2]


def test_a_pod_that_is_there_when_a_new_round_begins_is_of_that_round():
    loop = Loop()
    there = loop.add_pod("there")
    loop.bounce(1)
    between = loop.add_pod("between")
    loop.now += bounces.BOUNCING_SECONDS + 1
    assert loop.leave(there) == 0
    assert loop.leave(between) == 0
    assert loop.leave(loop.add_pod("back")) == 2


def test_ten_pods_that_take_turns_bounce_too():
    """Each left while another was still there, so "since the last eviction" would never count one."""
    loop = Loop()
    crowd = [loop.add_pod(f"0-{number}") for number in range(10)]
    counted = []
    for turn in range(1, 4):
        for number in range(10):
            counted.append(loop.leave(crowd[number]))
            crowd[number] = loop.add_pod(f"{turn}-{number}")
    assert [one for one in counted if one] == [2, 3]
    assert loop.ask(crowd[0]) is not None


def test_a_call_that_is_made_again_is_no_bounce():
    loop = Loop()
    loop.bounce(1)
    pod = loop.add_pod("again")
    assert [loop.call(pod) for _ in range(5)] == [2, 0, 0, 0, 0]
    assert loop.ask(pod) is None


def bare(loop: Loop, namespace: str) -> Pod:
    """Another pod that nothing controls comes to the node."""
    loop.now += 1
    shared = INTERNER.pod_class(namespace, {"pod-template-hash": "a"}, Tolerations())
    pod = Pod(str(loop.now), "bare", "n1", shared, 0.0, 1)
    loop.bounces.pod_added(pod)
    return pod


def test_pods_of_all_revisions_of_a_deployment_bounce_as_one_workload():
    loop = Loop()
    for revision, rounds in (("a", 0), ("b", 2)):
        labels = {"pod-template-hash": revision}
        shared = INTERNER.pod_class("shop", labels, Tolerations(), owner=owner(f"web-{revision}"))
        pod = Pod(revision, revision, "n1", shared, 0.0, 1)
        loop.bounces.pod_added(pod)
        assert loop.leave(pod) == rounds


def test_pods_without_a_controller_bounce_as_one_workload():
    loop = Loop()
    rounds = [loop.leave(bare(loop, "shop")) for _ in range(3)]
    assert rounds == [0, 2, 3]
    assert loop.ask(bare(loop, "shop")).limit == BOUNCE
    assert "a pod without controller in namespace shop" in loop.ask(bare(loop, "shop")).detail


@pytest.mark.parametrize(
    "other",
    [{"of": owner("db")}, {"node": "n2"}],
    ids=["workload", "node"],
)
def test_others_are_not_held(other):
    loop = Loop()
    loop.bounce(5)
    assert loop.ask(loop.add_pod("other", **other)) is None
    assert loop.bounce(1, **other) == [0]


# -- when it is over ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "counted"), [(100, 2), (101, 0)])
def test_a_pod_that_comes_back_late_has_not_bounced(seconds, counted):
    loop = Loop()
    loop.leave(loop.add_pod("first"))
    loop.now += seconds
    assert loop.leave(loop.add_pod("second")) == counted


@pytest.mark.parametrize(("seconds", "counted"), [(60 + 100, 3), (60 + 101, 0)])
def test_a_row_of_bounces_ends_some_time_after_its_back_off(seconds, counted):
    loop = Loop()
    loop.bounce(2)
    loop.now += seconds - 1
    assert loop.leave(loop.add_pod("third")) == counted


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound_at", "since", "holds"), [(5.0, 10.0, False), (11.0, 10.0, False), (11.5, 10.0, True), (11.5, 20.0, False)]
)
def test_before_a_removal_only_pods_that_came_after_all_taints_are_held(bound_at, since, holds):
    loop = Loop(msgspec.structs.replace(limited(bounce=BounceSettings()), reclaim=Reclaim(120)))
    loop.bounce(5)
    pod = msgspec.structs.replace(loop.add_pod("next"), bound_at=bound_at)
    now = Instant(loop.now, loop.now)
    due = [verdict for at in (10.0, since) for verdict in ask(pod, loop.policies[0], counts_from=at).due]
    request = msgspec.structs.replace(ask(pod, loop.policies[0], now=now), due=tuple(due))
    assert (loop.bounces.admit(request) is not None) == holds


@pytest.mark.parametrize(
    "changed",
    [[], [limited()], [msgspec.structs.replace(limited(bounce=BounceSettings()), uid="another")]],
    ids=["gone", "off", "namesake"],
)
def test_bounces_that_no_policy_limits_are_forgotten(changed):
    loop = Loop()
    loop.bounce(5)
    loop.bounces.configure(changed, AT_ONCE)
    assert kept(loop.bounces, owner().uid) == []
    loop.bounces.configure(loop.policies, AT_ONCE)
    assert loop.ask(loop.add_pod("next")) is None


# -- what is remembered ------------------------------------------------------------------------------------------------


def test_no_more_is_remembered_than_may_be(monkeypatch):
    monkeypatch.setattr(bounces, "MAX_LOOPS", 3)
    loop = Loop()
    for number in range(100):
        loop.bounce(2, node=f"n{number}")
    assert sum(bool(kept(loop.bounces, f"n{number}")) for number in range(100)) == 3
    assert [bool(loop.held_for(loop.add_pod("next", node=f"n{n}"))) for n in (96, 97, 99)] == [False, True, True]


def test_workloads_that_bounce_are_remembered_longer_than_others(monkeypatch):
    monkeypatch.setattr(bounces, "MAX_LOOPS", 3)
    loop = Loop()
    loop.bounce(2)
    counted = []
    for number in range(20):
        loop.bounce(1, node=f"other-{number}")
        counted.append(loop.leave(loop.add_pod(f"again-{number}")))
    assert counted == list(range(3, 23))


def test_what_is_over_is_forgotten_when_another_workload_is_evicted():
    loop = Loop()
    loop.bounce(1, node="before")
    loop.now += bounces.BOUNCING_SECONDS + 1
    loop.bounce(1, node="after")
    assert kept(loop.bounces, "before") == []


def test_workloads_that_bounce_are_counted_per_policy():
    loop = Loop()
    loop.bounce(2)
    loop.bounce(2, node="n2")
    loop.bounce(1, node="n3", of=owner("db"))
    assert loop.bounces.bouncing(loop.now) == {"p": 1}
    loop.bounce(2, node="n3", of=owner("db"))
    assert loop.bounces.bouncing(loop.now) == {"p": 2}
    assert loop.bounces.bouncing(loop.now + 1_000) == {}


def test_workloads_have_returned_before_and_after_their_pods_are_evicted_again():
    loop = Loop()
    loop.bounce(1)
    assert not loop.bounces.has_returned("p", loop.now)
    back = loop.add_pod("back")
    assert loop.bounces.has_returned("p", loop.now)
    loop.leave(back)
    assert [loop.bounces.has_returned(one, loop.now) for one in ("p", "another")] == [True, False]


# -- random histories --------------------------------------------------------------------------------------------------


@given(
    longest=st.integers(1, 300),
    pauses=st.lists(st.floats(0, 500, allow_nan=False), min_size=1, max_size=40),
)
def test_pods_that_follow_the_limit_leave_no_faster_than_it_lets(longest, pauses):
    """A pod that comes back at once and goes as soon as it may: each gap within the row is at least its back-off."""
    loop = Loop(max_backoff_seconds=longest)
    left, counted = [], []
    for number, pause in enumerate(pauses):
        pod = loop.add_pod(str(number))
        loop.now += pause
        loop.now += loop.held_for(pod)
        assert loop.ask(pod) is None
        left.append(loop.now)
        counted.append(loop.leave(pod))
    for (before, now), row in zip(pairwise(left), counted[1:], strict=True):
        if row > 2:
            assert now - before >= min(longest, 60 * 2 ** (row - 3)) - 1e-6


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 50)), max_size=60))
def test_a_pod_that_was_there_before_the_first_eviction_is_never_held(moves):
    loop = Loop()
    there = [loop.add_pod(f"there-{number}") for number in range(6)]
    for number, pause in moves:
        loop.now += pause
        assert loop.ask(there[number]) is None
        loop.leave(there[number])


def test_a_pod_of_another_namespace_that_names_the_owner_delays_no_pod():
    loop = Loop()
    loop.bounce(3, namespace="tenant")
    assert loop.ask(loop.add_pod("web")) is None
