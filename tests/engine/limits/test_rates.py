"""The buckets of all policies, of each, and of zones and namespaces."""

from typing import Any

import msgspec
import pytest

from engine.kept import kept
from engine.limits.asking import AT_ONCE, ask
from engine.rig import limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import EvictionRequest, Freed, Settlement
from taintwarden.engine.limits.protocol import EVERY_POLICY
from taintwarden.engine.limits.rates import MAX_IDLE_BUCKETS, PartedRates, Rates, SharedRates, one_second
from taintwarden.engine.limits.refusal import OVERALL_RATE, PER_NAMESPACE, PER_ZONE, POLICY_RATE, RETRY_RATE, SHARE
from taintwarden.engine.limits.zones import Zones
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Policy, Reclaim, Tolerations

FAST = limited(evictions_per_second=2.0, burst=5)
PARTED = limited(zone_evictions_per_second=3.0)


class Bench:
    """Rates that a process has had since it began to act, under one policy at a time."""

    def __init__(
        self, policy: Policy = FAST, overall: float | None = None, max_idle_buckets: int = MAX_IDLE_BUCKETS
    ) -> None:
        self.freed = Freed()
        self.others_wait = False
        self.rates = Rates(
            overall,
            Zones(self.freed),
            lambda _: self.others_wait,
            self.freed,
            max_idle_buckets=max_idle_buckets,
        )
        self.limits = (SharedRates(self.rates), PartedRates(self.rates))
        self.interner = Interner()
        self.seconds = 0.0
        self.configure(policy)

    def configure(self, *policies: Policy) -> None:
        self.policy = policies[0] if policies else limited()
        self.rates.configure(policies, self.seconds)

    def request(self, zone: str = "z1", namespace: str = "shop", **more: Any) -> EvictionRequest:
        shared = self.interner.pod_class(namespace, {}, Tolerations())
        pod = Pod("a", "a", "n1", shared, 0.0, 1)
        return ask(pod, self.policy, zone=zone, now=Instant(self.seconds, self.seconds), **more)

    def refuses(self, **where: Any) -> str:
        """The limit that has no token, empty if none."""
        return next((refused.limit for one in self.limits if (refused := one.admit(self.request(**where)))), "")

    def reserve(self, **where: Any) -> None:
        for one in self.limits:
            one.reserve(self.request(**where))

    def settle(self, settlement: Settlement) -> None:
        for one in self.limits:
            one.settle("a", settlement, AT_ONCE)

    def call(self, settlement: Settlement, **where: Any) -> None:
        """One that ends at once."""
        self.reserve(**where)
        self.settle(settlement)

    def drain(self, **where: Any) -> int:
        """Take all there is."""
        taken = 0
        while not self.refuses(**where):
            self.reserve(**where)
            taken += 1
        return taken


@pytest.mark.parametrize(("rate", "burst"), [(0.1, 1), (1.0, 1), (1.9, 1), (2.0, 2), (50.0, 50)])
def test_the_burst_of_a_rate_is_one_seconds_worth_and_at_least_one(rate, burst):
    assert one_second(rate) == burst


# -- all policies, and each --------------------------------------------------------------------------------------------


def test_without_rates_there_are_no_buckets():
    bench = Bench(limited())
    assert (bench.rates.shared(bench.request()), bench.rates.parted(bench.request())) == ([], [])


def test_the_overall_bucket_begins_empty():
    assert Bench(limited(), overall=2.0).refuses() == OVERALL_RATE


def test_the_overall_bucket_holds_one_seconds_worth():
    bench = Bench(limited(), overall=5.0)
    bench.seconds = 100.0
    assert bench.drain() == 5


def test_a_policys_bucket_begins_empty():
    assert Bench().refuses() == POLICY_RATE


def test_a_policys_bucket_holds_its_burst():
    bench = Bench()
    bench.seconds = 100.0
    assert bench.drain() == 5


def test_a_policy_that_did_not_change_keeps_what_it_spent():
    bench = Bench()
    bench.seconds = 100.0
    bench.drain()
    bench.configure(limited(evictions_per_second=2.0, burst=5))
    assert bench.drain() == 0


def test_a_changed_rate_holds_at_once_and_fills_nothing():
    bench = Bench()
    bench.seconds = 100.0
    bench.drain()
    bench.configure(limited(evictions_per_second=4.0, burst=5))
    assert bench.drain() == 0
    bench.seconds = 101.0
    assert bench.drain() == 4


def test_a_rate_switched_off_and_on_again_begins_empty():
    bench = Bench()
    bench.seconds = 100.0
    bench.configure(limited())
    bench.configure(FAST)
    assert bench.drain() == 0


def test_a_policy_that_is_gone_has_no_bucket():
    bench = Bench()
    bench.configure()
    assert kept(bench.rates, "p") == []


def test_a_process_that_begins_to_act_does_not_know_what_was_spent():
    bench = Bench(limited(evictions_per_second=2.0, burst=5, zone_evictions_per_second=3.0), overall=2.0)
    bench.seconds = 100.0
    bench.rates.parted(bench.request())
    bench.rates.restart(100.0)
    shared, parted = bench.rates.shared(bench.request()), bench.rates.parted(bench.request())
    assert [bucket.available_at(100.0) > 100.0 for _, _, bucket in shared + parted] == [True] * 3


# -- zones and namespaces ----------------------------------------------------------------------------------------------


def test_a_zone_that_is_met_first_later_has_filled_since_the_beginning():
    bench = Bench(PARTED)
    bench.seconds = 100.0
    assert bench.drain() == 3


def test_zones_share_no_bucket():
    bench = Bench(PARTED)
    bench.seconds = 100.0
    bench.drain(zone="z1")
    assert bench.refuses(zone="z1") == PER_ZONE
    assert bench.drain(zone="z2") == 3


def test_namespaces_share_no_bucket():
    bench = Bench(limited(namespace_evictions_per_second=3.0))
    bench.seconds = 100.0
    bench.drain(namespace="shop")
    assert bench.refuses(namespace="shop") == PER_NAMESPACE
    assert bench.drain(namespace="office") == 3


def test_a_zones_changed_rate_holds_at_once_and_fills_nothing():
    bench = Bench(PARTED)
    bench.seconds = 100.0
    bench.drain()
    bench.configure(limited(zone_evictions_per_second=8.0))
    assert bench.drain() == 0
    bench.seconds = 101.0
    assert bench.drain() == 8


def test_full_buckets_are_forgotten_when_there_are_many():
    bench = Bench(PARTED, max_idle_buckets=3)
    bench.seconds = 100.0
    for number in range(50):
        bench.refuses(zone=f"idle-{number}")
    assert sum(bool(kept(bench.rates, f"idle-{number}")) for number in range(50)) <= 3


def test_few_buckets_stay_of_many_that_are_full_again():
    bench = Bench(PARTED)
    bench.seconds = 100.0
    for number in range(1_000):
        bench.refuses(zone=f"idle-{number}")
    assert sum(bool(kept(bench.rates, f"idle-{number}")) for number in range(0, 1_000, 10)) <= 10


def test_a_bucket_in_use_is_not_forgotten():
    bench = Bench(PARTED, max_idle_buckets=3)
    bench.seconds = 100.0
    bench.drain(zone="busy")
    for number in range(50):
        bench.refuses(zone=f"idle-{number}")
    assert bench.drain(zone="busy") == 0


# -- how calls end -----------------------------------------------------------------------------------------------------

ALL = limited(evictions_per_second=1.0, burst=1, zone_evictions_per_second=1.0, namespace_evictions_per_second=1.0)


@pytest.mark.parametrize("settlement", [Settlement.EVICTED, Settlement.STAYS, Settlement.UNKNOWN])
def test_every_call_costs_a_token_of_each(settlement):
    bench = Bench(ALL, overall=1.0)
    bench.seconds = 100.0
    bench.call(settlement)
    buckets = bench.rates.shared(bench.request()) + bench.rates.parted(bench.request())
    assert [bucket.available_at(100.0) for _, _, bucket in buckets] == [101.0] * 4
    assert bench.freed.take() == []


def test_what_was_not_sent_costs_no_token():
    bench = Bench(ALL, overall=1.0)
    bench.seconds = 100.0
    for _ in range(3):
        assert bench.refuses() == ""
        bench.call(Settlement.UNSENT)
    assert bench.refuses() == ""


def test_who_waits_for_the_token_is_asked_again_when_it_is_given_back():
    bench = Bench(ALL)
    bench.seconds = 100.0
    bench.call(Settlement.UNSENT)
    assert bench.freed.take() == [EVERY_POLICY, "zone/p/z1", "namespace/p/shop"]


def test_a_token_is_given_back_once():
    bench = Bench(ALL)
    bench.seconds = 100.0
    bench.call(Settlement.UNSENT)
    bench.freed.take()
    bench.settle(Settlement.UNSENT)
    assert bench.freed.take() == []


def test_tokens_of_a_policy_that_is_gone_are_given_back_to_nobody():
    bench = Bench(ALL)
    bench.seconds = 100.0
    bench.reserve()
    bench.rates.configure([], MonotonicTime(100.0))
    bench.settle(Settlement.UNSENT)
    assert bench.rates.shared(bench.request()) == []


# -- calls that are likely to fail -------------------------------------------------------------------------------------


def fail_all(bench: Bench) -> int:
    """How many retries are made until they are refused, if none of them helps."""
    made = 0
    while not bench.refuses(is_retry=True):
        bench.call(Settlement.STAYS, is_retry=True)
        made += 1
    return made


def test_retries_that_do_not_help_use_up_none_of_the_tokens_of_others():
    bench = Bench(limited(evictions_per_second=8.0, burst=8), overall=40.0)
    bench.seconds = 100.0
    assert fail_all(bench) == 2, "a quarter of the policy's rate, as a burst"
    assert bench.refuses(is_retry=True) == RETRY_RATE
    assert bench.drain() == 8


@pytest.mark.parametrize("settlement", [Settlement.EVICTED, Settlement.UNKNOWN])
def test_retries_that_may_have_helped_count_like_other_calls(settlement):
    bench = Bench(limited(evictions_per_second=8.0, burst=8))
    bench.seconds = 100.0
    bench.call(settlement, is_retry=True)
    assert bench.drain() == 7


def test_a_slow_policy_retries_once_a_second():
    bench = Bench(limited(evictions_per_second=0.1, burst=1))
    bench.seconds = 100.0
    assert fail_all(bench) == 1
    bench.seconds += 1.0
    assert fail_all(bench) == 1


def test_without_any_rate_retries_have_one():
    bench = Bench(limited())
    bench.seconds = 100.0
    assert bench.drain(is_retry=True) == 5


def test_retries_of_all_policies_share_a_quarter_of_the_overall_rate():
    bench = Bench(limited(), overall=4.0)
    bench.seconds = 100.0
    bench.reserve(is_retry=True)
    bench.configure(limited("q"))
    assert bench.refuses(is_retry=True) == RETRY_RATE


# -- shares of namespaces ----------------------------------------------------------------------------------------------


def test_a_namespace_gets_half_while_others_wait():
    bench = Bench(limited(evictions_per_second=8.0, burst=8))
    bench.seconds = 100.0
    bench.others_wait = True
    assert bench.drain() == 4
    assert bench.refuses() == SHARE
    assert bench.drain(namespace="bank") == 4


def test_it_gets_all_while_no_other_waits():
    bench = Bench(limited(evictions_per_second=8.0, burst=8))
    bench.seconds = 100.0
    assert bench.drain() == 8


def test_a_policy_that_reclaims_shares_the_overall_rate():
    bench = Bench(msgspec.structs.replace(limited(), reclaim=Reclaim(120)), overall=8.0)
    bench.seconds = 100.0
    bench.others_wait = True
    assert bench.drain() == 4
    assert bench.refuses() == SHARE
