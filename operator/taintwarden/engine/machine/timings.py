"""The waits of the machine, in seconds. One structure that is an argument, so that tests can pass another one."""

import msgspec

from taintwarden.engine.machine.events import Outcome

# Outcome -> first and longest delay. The reasons: a budget allows a disruption when a replacement is Ready, after
# seconds at the earliest; an overloaded or unavailable API server needs few calls; a refusal may come from an admission
# policy that is changed soon; two budgets on one pod remain until a person changes them.
_BACKOFF: dict[Outcome, tuple[float, float]] = {
    Outcome.BLOCKED: (2.0, 15.0),
    Outcome.THROTTLED: (1.0, 30.0),
    Outcome.FAILED: (0.5, 15.0),
    Outcome.MISCONFIGURED: (60.0, 300.0),
    Outcome.REFUSED: (5.0, 60.0),
}


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """All waits of the machine. They run on the monotonic clock."""

    announced_ahead: float = 1.0
    """An eviction that is due sooner is not announced: only its result is reported."""
    not_leading: float = 1.0
    """Pause after a call that was not made because the lease had expired, until the loss of leadership is known."""
    leaving: float = 60.0
    """How long the watch may not show an accepted eviction before the pod is evaluated again."""
    backoff: dict[Outcome, tuple[float, float]] = msgspec.field(default_factory=_BACKOFF.copy)
    """First and longest delay before an eviction is retried, by the outcome of the last call."""
    longest_retry_after: float = 300.0
    """The greatest Retry-After of a server that is respected; a longer one is cut to it."""
    write_failed: tuple[float, float] = (1.0, 30.0)
    """First and longest delay before any other write that failed is retried."""
    write_refused: tuple[float, float] = (30.0, 600.0)
    """The same for a write that the API server refused: it may be allowed later."""
    forecast: float = 1.0
    """A wave arrives node by node: the forecast of all evictions is computed at most once in this time."""
    change_is_new: float = 30.0
    """A wave within this time after a change of a policy or profile is attributed to the change."""
    incident: float = 3600.0
    """Nodes whose values became untolerated within this time of each other are one incident."""
