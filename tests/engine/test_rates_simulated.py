"""In no window of time, wherever it begins, does anybody evict more than a burst and what the rate adds."""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from random import Random
from typing import NamedTuple

import msgspec
import pytest

from simulated import Simulation, policy
from simulated.drawing import NO_LIMITS, draw_limit
from simulated.histories import BAD, TOLERATION, Played, histories
from simulated.onlooker import Onlooker, zone_of
from simulated.trace import evictions_of, is_spent
from taintwarden.engine.machine import commands
from taintwarden.engine.model import Policy


class Spent(NamedTuple):
    """One token of the bucket ``of`` somebody, and what that bucket may hold and get then."""

    at: float
    of: Hashable
    rate: float
    burst: int


CLOCK = 1e-4
"""Of a token: clocks count whole microseconds."""


def one_second(rate: float) -> int:
    return max(1, int(rate))


def too_many(spent: Iterator[Spent]) -> list[str]:
    """Windows that hold more than they may. Where limits changed, the greatest of the window count."""
    found = []
    buckets = defaultdict(list)
    for token in spent:
        buckets[token.of].append(token)
    for tokens in buckets.values():
        for first, begin in enumerate(tokens):
            rate, burst = 0.0, 0
            for last, end in enumerate(tokens[first:], 1):
                rate, burst = max(rate, end.rate), max(burst, end.burst)
                if last > burst + rate * (end.at - begin.at) + CLOCK:
                    found.append(f"{last} of {begin.of} from {begin.at} to {end.at}")
    return found


def limited(history: Played, field: str) -> Iterator[tuple[float, commands.Evict, Policy, Onlooker, int]]:
    """The evictions under a limit, each with the number of times that it was switched off before.

    Only those that the API server carried out: a request that it refused costs nothing that others wait for.
    """
    carried_out = evictions_of(history.trace)
    offs: dict[str, int] = defaultdict(int)
    was_on: dict[str, bool] = {}
    for moment, known in history.moments():
        for name in {*was_on, *known.policies}:
            is_on = name in known.policies and getattr(known.limits(name), field) is not None
            offs[name] += was_on.get(name, False) and not is_on
            was_on[name] = is_on
        if is_spent(moment, carried_out):
            policy = known.policies[moment.what.verdict.policy.name]
            if was_on[policy.name]:
                yield moment.at, moment.what, policy, known, offs[policy.name]


def test_no_window_holds_more_than_the_burst_of_its_policy_and_what_the_rate_adds():
    for history in histories("rate"):
        spent = (
            Spent(at, (policy.name, offs), policy.limits.evictions_per_second, policy.limits.burst)
            for at, _, policy, _, offs in limited(history, "evictions_per_second")
        )
        assert too_many(spent) == [], history


def test_no_window_holds_more_than_all_policies_together_may_evict():
    for history in histories("overall"):
        rate = history.overall_rate
        if rate is not None:
            carried_out = evictions_of(history.trace)
            calls = (one for one in history.trace if is_spent(one, carried_out))
            assert too_many(Spent(one.at, "all", rate, one_second(rate)) for one in calls) == [], history


def test_no_window_holds_more_than_a_namespace_may_lose():
    for history in histories("namespace"):
        spent = (
            Spent(at, (policy.name, offs, what.pod.namespace), rate, one_second(rate))
            for at, what, policy, _, offs in limited(history, "namespace_evictions_per_second")
            if (rate := policy.limits.namespace_evictions_per_second)
        )
        assert too_many(spent) == [], history


def test_no_window_holds_more_than_a_zone_may_lose():
    for history in histories("zone-rate"):
        spent = (
            Spent(at, (policy.name, offs, zone_of(known.nodes.get(what.pod.node))), rate, one_second(rate))
            for at, what, policy, known, offs in limited(history, "zone_evictions_per_second")
            if (rate := policy.limits.zone_evictions_per_second)
        )
        assert too_many(spent) == [], history


@pytest.mark.parametrize("seed", range(5))
def test_changing_a_rate_again_and_again_opens_nothing(seed):
    chance = Random(seed)

    def drawn() -> Policy:
        limits = msgspec.structs.replace(NO_LIMITS, **draw_limit("rate", chance))
        return msgspec.structs.replace(policy(taints=[{"key": "sla"}]), limits=limits)

    sim = Simulation([drawn()])
    sim.create_node("n")
    for number in range(200):
        sim.create_pod(f"p{number}", "n", [TOLERATION])
    sim.start()
    sim.run(30)
    sim.set_taints("n", [BAD])
    for _ in range(30):
        sim.run(sim.at + chance.uniform(0.0, 2.0))
        sim.change_policies([drawn()])
    history = Played(seed, "rate", sim.trace, None, ())
    spent = (
        Spent(at, one.name, one.limits.evictions_per_second, one.limits.burst)
        for at, _, one, _, _ in limited(history, "evictions_per_second")
    )
    assert too_many(spent) == []
    assert sim.calls


def test_the_histories_try_the_rates():
    """An oracle that never sees a limit reached says nothing."""
    waited = [
        moment.what.limit
        for history in histories("rate")
        for moment in history.trace
        if isinstance(moment.what, commands.Decided)
    ]
    assert {"policy-rate", "overall-rate", "per-namespace", "per-zone"} <= set(waited)
