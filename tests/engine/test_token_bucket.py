"""Token buckets, with clocks that misbehave."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from taintwarden.engine.limits.bucket import TokenBucket

rates = st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0, 100.0])
bursts = st.sampled_from([1, 2, 5, 20])
delays = st.sampled_from([0.0, 0.01, 0.1, 0.3, 1.0, 2.5, 30.0])


def full(rate: float, burst: int, now: float = 0.0) -> TokenBucket:
    """A bucket that was not used for long."""
    return TokenBucket(rate, burst, empty_at=now - burst / rate - 1)


def admitted(bucket: TokenBucket, now: float) -> bool:
    if bucket.available_at(now) > now:
        return False
    bucket.take(now)
    return True


@given(rates, bursts, st.lists(delays, min_size=1, max_size=40))
def test_no_window_holds_more_than_the_burst_and_what_the_rate_adds(rate, burst, pauses):
    bucket, now, taken = full(rate, burst), 100.0, []
    for pause in pauses:
        now += pause
        while admitted(bucket, now):
            taken.append(now)
    for first, last in itertools.combinations_with_replacement(range(len(taken)), 2):
        assert last - first + 1 <= burst + rate * (taken[last] - taken[first]) + 1e-6


@given(rates, bursts, st.integers(1, 200))
@settings(max_examples=50)
def test_the_rate_is_reached_in_the_long_run(rate, burst, seconds):
    """A limit must not be slower than it says either."""
    bucket, now, taken = full(rate, burst), 0.0, 0
    while now <= seconds:
        if bucket.available_at(now) <= now:
            bucket.take(now)
            taken += 1
        else:
            now = bucket.available_at(now) + 1e-9
    assert taken >= int(rate * seconds) - 1


@given(rates, bursts, st.floats(0, 1_000))
def test_a_token_is_there_at_the_predicted_time(rate, burst, now):
    bucket = full(rate, burst, now)
    for _ in range(burst):
        assert admitted(bucket, now)
    moment = bucket.available_at(now)
    assert moment > now
    assert not admitted(bucket, now + (moment - now) * 0.99)
    assert bucket.available_at(moment) == moment


def test_a_clock_that_stops_or_goes_back_adds_no_token():
    bucket = full(1.0, 1, 100.0)
    assert admitted(bucket, 100.0)
    for now in (100.0, 50.0, 0.0, 100.0):
        assert not admitted(bucket, now)
    assert admitted(bucket, 101.0)


def test_a_smaller_burst_leaves_no_debt():
    bucket = full(1.0, 10)
    for _ in range(10):
        bucket.take(0.0)
    bucket.resize(1.0, 2, 0.0)
    assert bucket.available_at(0.0) == 1.0


def test_a_smaller_burst_removes_tokens():
    bucket = full(1.0, 10)
    bucket.resize(1.0, 2, 0.0)
    assert [admitted(bucket, 0.0) for _ in range(3)] == [True, True, False]


def test_what_was_filled_until_a_change_was_filled_at_the_old_rate():
    bucket = TokenBucket(1.0, 10, empty_at=0.0)
    bucket.resize(100.0, 10, 2.0)
    assert [admitted(bucket, 2.0) for _ in range(3)] == [True, True, False]


def test_a_bucket_is_full_until_a_token_is_taken():
    bucket = full(1.0, 2)
    assert bucket.is_full(0.0)
    assert [bucket.available_at(now) for now in (0.0, 0.5)] == [0.0, 0.5]
    bucket.take(0.5)
    assert not bucket.is_full(1.0)
    assert bucket.available_at(1.0) == 1.0
    assert bucket.is_full(1.5)
