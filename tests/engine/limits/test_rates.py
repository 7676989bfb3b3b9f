"""Rates: a bucket of tokens for all policies, one for each policy, and one for each of its namespaces and zones."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from engine.limits.asking import ask
from engine.rig import limited, rate
from simulated import policy
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import RateLimit, ZoneHealth
from taintwarden.engine.limits import EvictionRequest, FreedKeys, Refusal, refusal
from taintwarden.engine.limits.rates import MIN_SWEPT_BUCKETS, Rates
from taintwarden.engine.limits.refusal import RefusalScope
from taintwarden.engine.limits.zones import Zones
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Tolerations, WallTime
from taintwarden.engine.policy import Policy
from work import steps

START = 1_000.0
"""Buckets that were empty at 0 are full by then."""
INTERNER = Interner()


class Bench:
    """Rates that apply since 0, at a time when all buckets are full."""

    def __init__(self, *policies: Policy, overall: float | None = None) -> None:
        self.seconds = 0.0
        self.zones = Zones(FreedKeys())
        self.rates = Rates(overall, self.zones)
        self.configure(*policies or (limited(),))
        self.seconds = START
        self._number = 0

    @property
    def now(self) -> Instant:
        return Instant(WallTime(self.seconds), MonotonicTime(self.seconds))

    def configure(self, *policies: Policy) -> None:
        self.policy = policies[0]
        self.zones.configure(policies, self.now)
        self.rates.configure(policies, self.now)

    def restart(self) -> None:
        self.rates.restart(self.now.monotonic)

    def request(self, namespace: str = "shop", policy: Policy | None = None, **more: Any) -> EvictionRequest:
        self._number += 1
        pod = Pod(str(self._number), "a", "n1", INTERNER.pod_class(namespace, {}, Tolerations()), 0.0, 1)
        return ask(pod, policy or self.policy, now=self.now, **more)

    def ask(self, *args: Any, **more: Any) -> str:
        """The rate that refuses; empty if none does, and then the pod is evicted."""
        request = self.request(*args, **more)
        refused = self.rates.admit(request)
        if refused is None:
            self.rates.reserve(request)
        return "" if refused is None else refused.limit

    def count_admitted(self, most: int = 100, *args: Any, **more: Any) -> int:
        """Number of pods that are admitted at once, at most `most`."""
        return next((number for number in range(most) if self.ask(*args, **more)), most)

    def refuse(self, *args: Any, **more: Any) -> Refusal | None:
        return self.rates.admit(self.request(*args, **more))


KEYED = {
    "namespace": (limited(per_namespace=RateLimit(2.0)), {"namespace": "bank"}),
    "zone": (limited(per_zone=RateLimit(2.0)), {"zone": "z2"}),
}
"""A policy with a rate of two a second for each namespace, or zone; and what pods of another one ask with."""
keyed = pytest.mark.parametrize(("given", "other"), KEYED.values(), ids=KEYED)


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_a_rate_of_10000_is_off():
    bench = Bench(policy(limits={"evictionsPerSecond": 10_000, "burst": 1}))
    assert bench.count_admitted(500) == 500


def test_a_policy_whose_rate_is_off_leaves_others_theirs():
    limits = limited("q", evictions_per_second=2.0, burst=2)
    assert Bench(limited(), limits).count_admitted(policy=limits) == 2


@pytest.mark.parametrize(("rate", "burst"), [(0.5, 1), (1.0, 1), (2.5, 2), (7.0, 7)])
def test_the_overall_rate_has_a_burst_of_one_second(rate, burst):
    assert Bench(overall=rate).count_admitted() == burst


@keyed
def test_each_namespace_and_each_zone_has_a_bucket(given, other):
    bench = Bench(given)
    assert [bench.count_admitted(), bench.count_admitted(**other)] == [2, 2]
    bench.seconds += 0.5
    assert [bench.count_admitted(), bench.count_admitted(**other)] == [1, 1]


def test_a_refused_pod_takes_no_token():
    bench = Bench(limited(evictions_per_second=1.0, burst=5, per_namespace=RateLimit(1.0)))
    assert bench.count_admitted() == 1
    for _ in range(10):
        assert bench.ask() == refusal.NAMESPACE_RATE
    assert [bench.ask(namespace) for namespace in "abcde"] == ["", "", "", "", refusal.POLICY_RATE]


def test_tokens_are_those_of_the_pod_that_is_evicted_whatever_was_asked_before():
    bench = Bench(limited(per_namespace=RateLimit(1.0)))
    bench.rates.admit(bench.request("bank"))
    bench.rates.reserve(bench.request("shop"))
    assert [bench.count_admitted(namespace="shop"), bench.count_admitted(namespace="bank")] == [0, 1]


# -- whom a rate refuses, and until when -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        (limited(evictions_per_second=0.5, burst=1), Refusal(refusal.POLICY_RATE, START + 2)),
        (
            limited(per_namespace=RateLimit(0.5)),
            Refusal(refusal.NAMESPACE_RATE, START + 2, RefusalScope.LANE, "lane/p/shop"),
        ),
        (
            limited(per_zone=RateLimit(0.5)),
            Refusal(refusal.ZONE_RATE, START + 2, RefusalScope.PODS, "zone-rate/p/z1", "zone z1"),
        ),
    ],
    ids=["policy", "namespace", "zone"],
)
def test_a_rate_refuses_until_its_next_token(given, refused):
    bench = Bench(given)
    assert bench.count_admitted() == 1
    assert bench.refuse() == refused
    bench.seconds += 1.75
    assert bench.refuse() == refused
    bench.seconds += 0.25
    assert bench.count_admitted() == 1


# -- after a start -----------------------------------------------------------------------------------------------------


EACH = (
    (limited(evictions_per_second=2.0, burst=2), None),
    (limited(per_namespace=RateLimit(2.0)), None),
    (limited(per_zone=RateLimit(2.0)), None),
    (limited(), 2.0),
)
each = pytest.mark.parametrize(("given", "overall"), EACH, ids=["policy", "namespace", "zone", "overall"])
"""Two a second, and two at once."""


@each
def test_buckets_are_empty_after_a_start(given, overall):
    """Also those that this process used when it led before, and that are full again."""
    bench = Bench(given, overall=overall)
    bench.count_admitted()
    bench.seconds += 60
    bench.restart()
    assert bench.count_admitted() == 0
    bench.seconds += 0.5
    assert bench.count_admitted() == 1
    bench.seconds += 60
    assert bench.count_admitted() == 2


@each
def test_a_bucket_that_is_used_for_the_first_time_has_filled_since_the_start(given, overall):
    bench = Bench(given, overall=overall)
    bench.restart()
    bench.seconds += 0.5
    assert bench.count_admitted() == 1


# -- edits -------------------------------------------------------------------------------------------------------------

NAMES = ["evictions_per_second", "per_namespace", "per_zone"]


@pytest.mark.parametrize("name", NAMES)
def test_a_greater_rate_adds_no_tokens(name):
    bench = Bench(limited(**rate(name, 2.0), burst=2))
    assert bench.count_admitted() == 2
    bench.configure(limited(**rate(name, 4.0), burst=4))
    assert bench.count_admitted() == 0
    bench.seconds += 0.5
    assert bench.count_admitted() == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_smaller_rate_applies_at_once(name):
    bench = Bench(limited(**rate(name, 4.0), burst=4))
    assert bench.count_admitted(1) == 1
    bench.configure(limited(**rate(name, 1.0), burst=1))
    assert bench.count_admitted() == 1, "of three that it had"
    bench.seconds += 0.5
    assert bench.count_admitted() == 0


def test_a_smaller_burst_applies_at_once():
    bench = Bench(limited(evictions_per_second=2.0, burst=4))
    bench.configure(limited(evictions_per_second=2.0, burst=1))
    assert bench.count_admitted() == 1


@each
def test_other_edits_of_a_policy_add_no_tokens(given, overall):
    bench = Bench(given, overall=overall)
    assert bench.count_admitted() == 2
    bench.configure(msgspec.structs.replace(given, generation=2))
    assert bench.count_admitted() == 0


@pytest.mark.parametrize("meanwhile", [[limited()], [limited("q")]], ids=["switched off", "deleted"])
def test_a_rate_that_was_switched_off_begins_with_an_empty_bucket(meanwhile):
    given = limited(evictions_per_second=2.0, burst=2)
    bench = Bench(given)
    bench.configure(*meanwhile)
    assert bench.count_admitted() == 100
    bench.configure(given)
    assert bench.count_admitted() == 0


# -- how many buckets there are ----------------------------------------------------------------------------------------

MANY = [f"ns-{number}" for number in range(5 * MIN_SWEPT_BUCKETS)]


def test_full_buckets_are_forgotten():
    bench = Bench(limited(per_namespace=RateLimit(1.0)))
    for namespace in MANY:
        assert bench.ask(namespace) == ""
        bench.seconds += 1
    assert 1 < len(kept(bench.rates, *MANY)) <= MIN_SWEPT_BUCKETS + 1


def test_many_buckets_that_are_not_full_are_not_looked_through_for_each_other_one():
    def work(number: int) -> int:
        bench = Bench(limited(per_namespace=RateLimit(1.0)))
        return steps(lambda: [bench.ask(f"ns-{one}") for one in range(number)])

    assert work(2_000) < 3 * work(1_000)


# -- random histories --------------------------------------------------------------------------------------------------

RATE, BURST, OVERALL, ZONES, NAMESPACES = 2.5, 6, 8.0, 1.5, 0.5


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0, 20.0]), st.integers(0, 5), st.integers(0, 2)),
        min_size=1,
        max_size=80,
    )
)
def test_in_any_time_at_most_the_burst_and_what_the_rate_adds_go(pods):
    """Also those of each policy, each zone and each namespace, even where full buckets are forgotten."""
    limits = {"per_zone": RateLimit(ZONES), "per_namespace": RateLimit(NAMESPACES)}
    policies = [limited(name, evictions_per_second=RATE, burst=BURST, **limits) for name in "pq"]
    bench, gone = Bench(*policies, overall=OVERALL), {}
    for number, (pause, namespace, zone) in enumerate(pods):
        bench.seconds += pause
        given = policies[number % 2]
        for _ in range(MIN_SWEPT_BUCKETS // 10):  # of namespaces that do not come again
            bench.refuse(f"other-{bench._number}", given)
        for _ in range(3):
            if not bench.ask(f"ns-{namespace}", given, zone=f"z{zone}"):
                for whose in ((), given.name, (given.name, "zone", zone), (given.name, "namespace", namespace)):
                    gone.setdefault(whose, []).append(bench.seconds)
    bounds = {"": (8, OVERALL), "policy": (BURST, RATE), "zone": (1, ZONES), "namespace": (1, NAMESPACES)}
    for whose, times in gone.items():
        burst, rate = bounds["policy" if isinstance(whose, str) else whose[1] if whose else ""]
        for first, last in itertools.combinations_with_replacement(range(len(times)), 2):
            assert last - first + 1 <= burst + rate * (times[last] - times[first]) + 1e-6


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.3, 1.0, 5.0]), st.sampled_from([None, 1.0, 4.0, 9.0])), max_size=60))
def test_edits_let_no_more_go_than_the_greatest_rate(edits):
    bench, gone = Bench(limited(per_namespace=RateLimit(1.0))), []
    for pause, changed in edits:
        bench.seconds += pause
        if changed is not None:
            bench.configure(limited(per_namespace=RateLimit(changed)))
        gone += [bench.seconds] * bench.count_admitted()
    for first, last in itertools.combinations_with_replacement(range(len(gone)), 2):
        assert last - first + 1 <= 9 + 9 * (gone[last] - gone[first]) + 1e-6


def test_rates_concern_a_policy_with_some_or_all_of_them():
    all_of_them = {"per_zone": RateLimit(1.0), "per_namespace": RateLimit(1.0), "zone_health": ZoneHealth(())}
    for limits in ({}, all_of_them, {"per_zone": RateLimit(1.0)}):
        bench = Bench(limited(**limits))
        assert bench.rates.concerns(bench.policy) is bool(limits)
