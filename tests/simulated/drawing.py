"""Limits by chance: each alone, or as many together as it happens."""

from random import Random
from typing import Any

import msgspec

from simulated.policies import policy
from taintwarden.engine.model import (
    BounceSettings,
    EvictionSettings,
    GuardAction,
    GuardSettings,
    Limits,
    Method,
    Policy,
    Reclaim,
    Share,
    Window,
    ZoneHealth,
)

NO_LIMITS = Limits(evictions_per_second=None, max_unavailable=None, zone_health=None, guard=None, bounce=None)
LIMITS = ("rate", "per-node", "namespace", "zone-rate", "max-unavailable", "zone-health", "guard", "bounce")
WINDOWS = {2: ("*/2 * * * *", 45), 1: ("* * * * *", 20), 3: ("*/3 * * * *", 100)}
"""Every so many minutes of the epoch: schedule, and duration in seconds."""


def draw_limit(limit: str, chance: Random) -> dict[str, Any]:
    """Fields of :class:`Limits` that are this one limit."""
    pick = chance.choice
    match limit:
        case "rate":
            return {"evictions_per_second": pick([0.5, 1.0, 3.0, 10.0]), "burst": pick([1, 2, 5, 20])}
        case "per-node":
            return {"node_max_concurrent": pick([1, 2, 3])}
        case "namespace":
            return {"namespace_evictions_per_second": pick([0.5, 1.0, 2.5])}
        case "zone-rate":
            return {"zone_evictions_per_second": pick([0.5, 1.0, 2.5])}
        case "max-unavailable":
            return {"max_unavailable": pick([Share(percent=10), Share(percent=25), Share(percent=50), Share(number=2)])}
        case "zone-health":
            health = ZoneHealth(
                threshold=pick([0.4, 0.55]),
                min_nodes=pick([0, 2, 3]),
                degraded_evictions_per_second=pick([0.5, 1.0, 2.5]),
                full_evictions_per_second=pick([0.5, 1.0]),
                halt_small_zones=pick([False, False, True]),
                small_zone=pick([4, 50]),
            )
            return {"zone_health": health}
        case "guard":
            guard = GuardSettings(
                max_percent=pick([10, 20, 50]),
                min_pods=pick([1, 4, 12]),
                window_seconds=pick([20, 60]),
                settle_seconds=pick([0, 2]),
                action=pick([GuardAction.HALT, GuardAction.HALT, GuardAction.HALT, GuardAction.REPORT]),
            )
            return {"guard": guard}
        case "bounce":
            return {"bounce": BounceSettings(pick([1, 2, 3]), pick([5, 20, 60]), pick([4, 15, 90]))}
    raise ValueError(limit)


def draw_limits(chance: Random, only: str = "") -> Limits:
    """The limit ``only``, or each with even chances."""
    limits = NO_LIMITS
    for limit in LIMITS:
        drawn = draw_limit(limit, chance)
        if limit == only or (not only and chance.random() < 0.5):
            limits = msgspec.structs.replace(limits, **drawn)
    return limits


def is_open(window: Window, wall: float) -> bool:
    """Whether a window that was drawn is open, by arithmetic."""
    schedule = (window.schedule, window.duration_seconds)
    minutes = next(minutes for minutes, one in WINDOWS.items() if one == schedule)
    return wall % (60 * minutes) < window.duration_seconds


def draw_policy(chance: Random, name: str, key: str, only: str = "") -> Policy:
    """A policy on one key with limits by chance."""
    grace = chance.choice([0, 0, 3, 10])
    plain = policy(name, taints=[{"key": key}], timing={"violationGraceSeconds": grace})
    windows = ()
    if only == "window" or (not only and chance.random() < 0.2):
        windows = (Window(*chance.choice([*WINDOWS.values()])),)
    eviction = EvictionSettings()
    if only == "budget" or (not only and chance.random() < 0.3):
        eviction = EvictionSettings(chance.choice([Method.EVICT_THEN_DELETE, Method.EVICT, Method.DELETE]), 20)
    reclaim = Reclaim(60) if not only and chance.random() < 0.1 else None
    return msgspec.structs.replace(
        plain, limits=draw_limits(chance, only), windows=windows, eviction=eviction, reclaim=reclaim
    )
