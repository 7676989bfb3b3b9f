"""What happened in a history, in order: every event into the machine, every command out of it, and some of the truth.

Oracles read it afterwards. It is all they know, so they share nothing with the engine but the names of things.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from taintwarden.engine.machine import commands
from taintwarden.engine.model import Instant


class Started(NamedTuple):
    """An operator begins with nothing in memory."""


class Killed(NamedTuple):
    """It is gone, and with it the answers to its calls."""


class CarriedOut(NamedTuple):
    """The API server accepted an eviction, whether anybody heard of it or not. ``sent_at``: when it was asked."""

    uid: str
    sent_at: float


class Calmed(NamedTuple):
    """For long, nothing has happened and nothing gone wrong."""


class Lifted(NamedTuple):
    """For long, there have been no limits."""


class Moment(NamedTuple):
    """``at`` is the true time in seconds since the start, which no clock step moves."""

    at: float
    now: Instant
    what: Any


def evictions_of(trace: Iterable[Moment]) -> set[tuple[str, float]]:
    """The pods that were evicted, each with when that was requested."""
    return {(one.what.uid, one.what.sent_at) for one in trace if isinstance(one.what, CarriedOut)}


def is_spent(moment: Moment, carried_out: set[tuple[str, float]]) -> bool:
    """Whether this is an eviction that was carried out, or a rehearsal."""
    what = moment.what
    if isinstance(what, commands.Evict):
        return (what.pod.uid, moment.at) in carried_out
    return isinstance(what, commands.Rehearsed)
