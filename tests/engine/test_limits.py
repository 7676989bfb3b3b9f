"""Token buckets and the limiter over all policies, with clocks that misbehave."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulated import policy
from taintwarden.engine.limits import Limiter, Refusal, TokenBucket

rates = st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0, 100.0])
bursts = st.sampled_from([1, 2, 5, 20])
delays = st.sampled_from([0.0, 0.01, 0.1, 0.3, 1.0, 2.5, 30.0])


def admitted(bucket: TokenBucket, now: float) -> bool:
    if bucket.available_at(now) > now:
        return False
    bucket.take(now)
    return True


@given(rates, bursts, st.lists(delays, min_size=1, max_size=40))
def test_no_window_holds_more_than_the_burst_and_what_the_rate_adds(rate, burst, pauses):
    bucket, now, taken = TokenBucket(rate, burst), 100.0, []
    for pause in pauses:
        now += pause
        while admitted(bucket, now):
            taken.append(now)
    for first, last in itertools.combinations_with_replacement(range(len(taken)), 2):
        assert last - first + 1 <= burst + rate * (taken[last] - taken[first]) + 1e-6


@given(st.lists(st.tuples(delays, st.none() | st.tuples(rates, bursts)), min_size=1, max_size=60))
def test_changing_the_limit_never_opens_more_than_the_greatest_of_them(steps):
    bucket, now = TokenBucket(1.0, 2), 100.0
    taken, most_rate, most_burst = [], 1.0, 2
    for pause, change in steps:
        now += pause
        if change is not None:
            bucket.resize(*change, now)
            most_rate, most_burst = max(most_rate, change[0]), max(most_burst, change[1])
        while admitted(bucket, now):
            taken.append(now)
    for first, last in itertools.combinations_with_replacement(range(len(taken)), 2):
        assert last - first + 1 <= most_burst + most_rate * (taken[last] - taken[first]) + 1e-6


@given(rates, bursts, st.integers(1, 200))
@settings(max_examples=50)
def test_the_rate_is_reached_in_the_long_run(rate, burst, seconds):
    """A limit must not be slower than it says either."""
    bucket, now, taken = TokenBucket(rate, burst), 0.0, 0
    while now <= seconds:
        if bucket.available_at(now) <= now:
            bucket.take(now)
            taken += 1
        else:
            now = bucket.available_at(now) + 1e-9
    assert taken >= int(rate * seconds) - 1


@given(rates, bursts)
def test_when_it_says_a_token_will_be_there_it_is(rate, burst):
    bucket = TokenBucket(rate, burst)
    for _ in range(burst):
        assert admitted(bucket, 5.0)
    moment = bucket.available_at(5.0)
    assert moment > 5.0
    assert not admitted(bucket, 5.0 + (moment - 5.0) * 0.99)
    assert admitted(bucket, moment + 1e-9)


def test_it_starts_full_whatever_the_clock_shows():
    for now in (0.0, 1e9, -5.0):
        bucket = TokenBucket(1.0, 3)
        assert [admitted(bucket, now) for _ in range(4)] == [True, True, True, False]


def test_a_clock_that_stands_or_goes_back_adds_nothing():
    bucket = TokenBucket(1.0, 1)
    assert admitted(bucket, 100.0)
    for now in (100.0, 50.0, 0.0, 100.0):
        assert not admitted(bucket, now)
    assert admitted(bucket, 101.0)


def test_a_long_rest_saves_no_more_than_the_burst():
    bucket = TokenBucket(10.0, 3)
    assert [admitted(bucket, 1e6) for _ in range(4)] == [True, True, True, False]
    assert [admitted(bucket, 2e6) for _ in range(4)] == [True, True, True, False]


def test_a_change_never_refills():
    bucket = TokenBucket(0.001, 10)
    for _ in range(10):
        bucket.take(0.0)
    for burst in (5, 10, 1, 10):
        bucket.resize(0.001, burst, 0.0)
    assert not admitted(bucket, 0.0)


def test_a_greater_burst_adds_the_difference():
    bucket = TokenBucket(0.001, 2)
    for _ in range(2):
        bucket.take(0.0)
    bucket.resize(0.001, 5, 0.0)
    assert [admitted(bucket, 0.0) for _ in range(4)] == [True, True, True, False]


# -- all limits together ----------------------------------------------------------------------------------------------


def limited(name: str, rate: float, burst: int):
    return policy(name, limits={"evictionsPerSecond": rate, "burst": burst})


def test_without_any_limit_everything_is_admitted():
    limiter = Limiter()
    limiter.configure([policy("a")], 0.0)
    assert all(limiter.admit("a", 0.0) is None for _ in range(1_000))


def test_a_refusal_names_the_limit_and_when_to_come_back():
    limiter = Limiter()
    limiter.configure([limited("a", 2.0, 1)], 0.0)
    assert limiter.admit("a", 0.0) is None
    assert limiter.admit("a", 0.0) == Refusal("policy-rate", 0.5)


def test_the_cap_holds_all_policies():
    limiter = Limiter(overall_rate=2.0)
    limiter.configure([policy("a"), policy("b")], 0.0)
    assert [limiter.admit(name, 0.0) for name in "abab"][:2] == [None, None]
    assert limiter.admit("a", 0.0) == Refusal("overall-rate", 0.5)


def test_a_cap_below_one_a_second_admits_one():
    limiter = Limiter(overall_rate=0.1)
    limiter.configure([policy("a")], 0.0)
    assert limiter.admit("a", 0.0) is None
    assert limiter.admit("a", 0.0) == Refusal("overall-rate", 10.0)


def test_a_token_is_taken_from_all_limits_or_from_none():
    limiter = Limiter(overall_rate=1.0)
    limiter.configure([limited("a", 1.0, 3), limited("b", 1.0, 3)], 0.0)
    assert limiter.admit("a", 0.0) is None
    for _ in range(10):  # the cap refuses, and the policy's own bucket must not be emptied by that
        assert limiter.admit("b", 0.0) is not None
    assert [limiter.admit("b", float(second)) for second in (1, 2, 3)] == [None, None, None]


@given(st.lists(st.tuples(delays, st.sampled_from("abc")), max_size=50))
@settings(max_examples=50)
def test_no_second_holds_more_than_the_cap_over_all_policies(steps):
    limiter, now, taken = Limiter(overall_rate=3.0), 0.0, []
    limiter.configure([limited("a", 1.0, 5), limited("b", 10.0, 20), policy("c")], 0.0)
    for pause, name in steps:
        now += pause
        if limiter.admit(name, now) is None:
            taken.append(now)
    for moment in taken:
        assert sum(moment <= other <= moment + 1 for other in taken) <= 3 + 3 + 1e-6


def test_configuring_the_same_again_refills_nothing():
    limiter = Limiter()
    for _ in range(3):
        limiter.configure([limited("a", 0.001, 1)], 0.0)
        limiter.admit("a", 0.0)
    assert limiter.admit("a", 0.0) is not None


def test_other_policies_that_change_refill_nothing():
    limiter = Limiter()
    limiter.configure([limited("a", 0.001, 1)], 0.0)
    assert limiter.admit("a", 0.0) is None
    limiter.configure([limited("a", 0.001, 1), limited("b", 1.0, 1)], 0.0)
    assert limiter.admit("a", 0.0) is not None
    assert limiter.admit("b", 0.0) is None


@pytest.mark.parametrize("rate", [1e-5, 10_000.0])
def test_the_bounds_of_what_users_may_write(rate):
    limiter = Limiter()
    limiter.configure([limited("a", rate, 1)], 0.0)
    assert limiter.admit("a", 0.0) is None
    refusal = limiter.admit("a", 0.0)
    assert refusal is not None
    assert refusal.until == pytest.approx(1 / rate)
