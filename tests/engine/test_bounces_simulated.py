"""A workload that comes back leaves no faster than the limit lets, and nobody is held who did not come back."""

from collections.abc import Iterator
from itertools import groupby
from random import Random
from typing import NamedTuple

import msgspec
import pytest

from simulated import Simulation, policy
from simulated.drawing import NO_LIMITS
from simulated.histories import BAD, TOLERATION, Played, histories
from simulated.trace import Started
from simulated.workloads import Workloads
from taintwarden.engine.machine import commands, events
from taintwarden.engine.model import BounceSettings, Policy

Where = tuple[str, str, str]
"""UID of the owner, node, and key of the taint: a history has one effect only."""


class Departure(NamedTuple):
    """A pod whose eviction was asked for first ``asked_at``. Numbers are those of moments."""

    where: Where
    uid: str
    heard: int
    asked: int
    asked_at: float


class Held(NamedTuple):
    """A pod that was said to be held ``until``, in seconds since the start."""

    where: Where
    heard: int
    at: float
    until: float


class Row(NamedTuple):
    """What one operator did under one policy while its settings were these."""

    settings: BounceSettings
    departures: list[Departure]
    held: list[Held]
    before: list[Departure]
    """Those of the same operator and policy under other settings."""


def settings_of(policy: Policy | None) -> BounceSettings | None:
    return None if policy is None or policy.reclaim is not None else policy.limits.bounce


def lives(history: Played) -> Iterator[list]:
    starts = 0

    def life(moment) -> int:
        nonlocal starts
        starts += isinstance(moment.what, Started)
        return starts

    for _, moments in groupby(history.trace, life):
        yield list(moments)


def rows(history: Played) -> Iterator[Row]:
    for moments in lives(history):
        for name in ("p", "q"):
            yield from rows_of(moments, name)


def rows_of(moments: list, name: str) -> Iterator[Row]:
    heard: dict[str, int] = {}
    asked: dict[tuple[str, str], None] = {}
    policy: Policy | None = None
    row: Row | None = None
    for number, moment in enumerate(moments):
        match moment.what:
            case events.PoliciesChanged(policies):
                now = next((one for one in policies if one.name == name), None)
                same = settings_of(now) == settings_of(policy) and getattr(now, "uid", "") == getattr(policy, "uid", "")
                policy = now
                if not same:
                    if row is not None:
                        yield row
                    row = None if (settings := settings_of(policy)) is None else Row(settings, [], [], past(row))
            case events.PodSeen(pod):
                heard.setdefault(pod.uid, number)
            case events.PodGone(uid):
                heard.pop(uid, None)
            case commands.Evict(pod, verdict) if row and verdict.policy.name == name and pod.shared.owner:
                where = (pod.shared.owner.uid, pod.node, verdict.taint.key)
                if (pod.uid, verdict.taint.key) not in asked:
                    asked[pod.uid, verdict.taint.key] = None
                    row.departures.append(Departure(where, pod.uid, heard[pod.uid], number, moment.at))
            case commands.HeldAsBouncing(pod, verdict, _, until) if row and verdict.policy.name == name:
                where = (pod.shared.owner.uid, pod.node, verdict.taint.key)
                row.held.append(Held(where, heard[pod.uid], moment.at, moment.at + until - moment.now.wall))
    if row is not None:
        yield row


def past(row: Row | None) -> list[Departure]:
    return [] if row is None else row.before + row.departures


def chains(departures: list[Departure], within: float) -> Iterator[tuple[Departure, int, float]]:
    """Each departure with the length of each chain that ends in it, and the latest moment such a one began.

    In a chain each came after the one before was asked to leave, and left no later than ``within`` after that.
    """
    began: list[dict[int, float]] = []
    for number, one in enumerate(departures):
        mine = {1: one.asked_at}
        for other, starts in zip(departures[:number], began, strict=True):
            if other.asked < one.heard and one.asked_at - other.asked_at <= within:
                for length, at in starts.items():
                    mine[length + 1] = max(mine.get(length + 1, at), at)
        began.append(mine)
        for length, at in mine.items():
            yield one, length, at


def least_seconds(length: int, settings: BounceSettings) -> float:
    """From the first to the last of so many in a row. The first may have left long after its round began."""
    waits = (
        min(settings.max_backoff_seconds, 60 * 2 ** (row - settings.after_evictions))
        for row in range(max(2, settings.after_evictions), length)
    )
    return float(sum(waits))


def by_place(departures: list[Departure]) -> dict[Where, list[Departure]]:
    found: dict[Where, list[Departure]] = {}
    for one in departures:
        found.setdefault(one.where, []).append(one)
    return found


def too_fast(history: Played) -> list[str]:
    found = []
    for row in rows(history):
        for where, departures in by_place(row.departures).items():
            for one, length, began in chains(departures, row.settings.within_seconds):
                if one.asked_at - began < least_seconds(length, row.settings) - 0.002:
                    found.append(f"{length} of {where} in a row from {began} to {one.asked_at}: {row.settings}")
    return found


def held_in_vain(history: Played) -> list[str]:
    found = []
    for row in rows(history):
        places = by_place(row.before + row.departures)
        for held in row.held:
            before = [one for one in places.get(held.where, []) if one.asked < held.heard]
            longest = max((length for _, length, _ in chains(before, float("inf"))), default=0)
            if longest < row.settings.after_evictions:
                found.append(f"{held} after {longest} in a row: {row.settings}")
            elif held.until > held.at + row.settings.max_backoff_seconds + 0.002:
                found.append(f"{held} for longer than the longest time: {row.settings}")
    return found


def test_whoever_comes_back_leaves_no_faster_than_the_limit_lets():
    for history in histories("bounce"):
        assert too_fast(history) == [], history


def test_nobody_is_held_who_did_not_come_back_often_enough():
    for history in histories("bounce"):
        assert held_in_vain(history) == [], history


@pytest.mark.parametrize("seed", range(5))
def test_a_workload_that_is_left_alone_bounces_as_often_as_it_may_and_no_more(seed):
    chance = Random(seed)
    settings = BounceSettings(chance.randint(1, 4), chance.randint(30, 600), chance.randint(100, 3_600))
    limits = msgspec.structs.replace(NO_LIMITS, bounce=settings)
    sim = Simulation([msgspec.structs.replace(policy("p", taints=[{"key": "sla"}]), limits=limits)])
    sim.create_node("n", [BAD])
    Workloads(sim, chance).create("web", 1, tolerations=[TOLERATION], home="n")
    sim.start()
    sim.run(4 * 3_600)
    history = Played(seed, "bounce", sim.trace, None, ())
    assert too_fast(history) == []
    left = [one.asked_at for row in rows(history) for one in row.departures]
    slowest = 5.0  # until a pod is replaced, and heard of
    times = sum(least_seconds(number, settings) + slowest * number <= 4 * 3_600 for number in range(1, 500))
    assert len(left) >= times


def test_the_histories_have_workloads_that_bounce():
    held = sum(len(row.held) for history in histories("bounce") for row in rows(history))
    longest = max(
        length
        for history in histories("bounce")
        for row in rows(history)
        for departures in by_place(row.departures).values()
        for _, length, _ in chains(departures, row.settings.within_seconds)
    )
    assert held > 10
    assert longest > 4
