"""The buckets of all policies, of each, and of zones and namespaces."""

import pytest

from engine.rig import limited
from taintwarden.engine.limits import rates as module
from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.limits.rates import Rates, one_second


def drain(bucket: TokenBucket | None, now: float) -> int:
    """Take all there is."""
    assert bucket is not None
    taken = 0
    while bucket.available_at(now) <= now:
        bucket.take(now)
        taken += 1
    return taken


def rates(rate: float = 2.0, burst: int = 5, overall: float | None = None) -> Rates:
    made = Rates(overall)
    made.configure([limited(evictions_per_second=rate, burst=burst)], 0.0)
    return made


@pytest.mark.parametrize(("rate", "burst"), [(0.1, 1), (1.0, 1), (1.9, 1), (2.0, 2), (50.0, 50)])
def test_the_burst_of_a_rate_is_one_seconds_worth_and_at_least_one(rate, burst):
    assert one_second(rate) == burst


def test_without_a_cap_there_is_no_overall_bucket():
    assert Rates().overall is None


def test_the_overall_bucket_begins_empty():
    assert drain(Rates(2.0).overall, 0.0) == 0


def test_the_overall_bucket_holds_one_seconds_worth():
    assert drain(Rates(5.0).overall, 100.0) == 5


def test_a_policys_bucket_begins_empty():
    assert drain(rates().of_policy("p"), 0.0) == 0


def test_a_policy_without_a_rate_has_no_bucket():
    made = Rates()
    made.configure([limited()], 0.0)
    assert made.of_policy("p") is None


def test_a_policy_that_did_not_change_keeps_what_it_spent():
    made = rates()
    assert drain(made.of_policy("p"), 100.0) == 5
    made.configure([limited(evictions_per_second=2.0, burst=5)], 100.0)
    assert drain(made.of_policy("p"), 100.0) == 0


def test_a_changed_rate_holds_at_once_and_refills_nothing():
    made = rates()
    drain(made.of_policy("p"), 100.0)
    made.configure([limited(evictions_per_second=4.0, burst=5)], 100.0)
    assert drain(made.of_policy("p"), 100.0) == 0
    assert drain(made.of_policy("p"), 101.0) == 4


def test_a_rate_switched_off_and_on_again_begins_empty():
    made = rates()
    made.configure([limited()], 100.0)
    made.configure([limited(evictions_per_second=2.0, burst=5)], 100.0)
    assert drain(made.of_policy("p"), 100.0) == 0


def test_a_policy_that_is_gone_has_no_bucket():
    made = rates()
    made.configure([], 100.0)
    assert made.of_policy("p") is None


def test_who_begins_to_act_does_not_know_what_was_spent():
    made = rates(overall=2.0)
    made.keyed("zone", 3.0, 100.0)
    made.restart(100.0)
    assert drain(made.of_policy("p"), 100.0) == 0
    assert drain(made.overall, 100.0) == 0
    assert drain(made.keyed("zone", 3.0, 100.0), 100.0) == 0


def test_a_key_that_is_asked_for_first_later_has_filled_since_the_beginning():
    made = rates()
    assert drain(made.keyed("zone", 3.0, 100.0), 100.0) == 3


def test_keys_do_not_share():
    made = rates()
    drain(made.keyed("one", 3.0, 100.0), 100.0)
    assert drain(made.keyed("two", 3.0, 100.0), 100.0) == 3


def test_a_key_keeps_what_it_spent():
    made = rates()
    drain(made.keyed("zone", 3.0, 100.0), 100.0)
    assert drain(made.keyed("zone", 3.0, 100.0), 100.0) == 0


def test_a_keys_changed_rate_holds_at_once():
    made = rates()
    drain(made.keyed("zone", 3.0, 100.0), 100.0)
    assert drain(made.keyed("zone", 8.0, 100.0), 100.0) == 5, "three of eight are used"


def test_full_buckets_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_IDLE_BUCKETS", 3)
    made = rates()
    for number in range(50):
        made.keyed(f"idle-{number}", 1.0, 100.0)
    assert len(made._keyed) <= 3


def test_a_bucket_in_use_is_not_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MAX_IDLE_BUCKETS", 3)
    made = rates()
    drain(made.keyed("busy", 1.0, 100.0), 100.0)
    for number in range(50):
        made.keyed(f"idle-{number}", 1.0, 100.0)
    assert drain(made.keyed("busy", 1.0, 100.0), 100.0) == 0
