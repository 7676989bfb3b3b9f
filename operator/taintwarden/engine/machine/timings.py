"""The waits of the machine, in seconds. One structure that is an argument, so that tests can pass another one."""

import msgspec


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """All waits of the machine. They run on the monotonic clock."""

    announced_ahead: float = 1.0
    """An eviction that is due sooner is not announced: only its result is reported."""
    leaving: float = 60.0
    """How long the watch may not show an accepted eviction before the pod is evaluated again."""
    longest_retry_after: float = 300.0
    """The greatest Retry-After of a server that is respected; a longer one is cut to it."""
    write_failed: tuple[float, float] = (1.0, 30.0)
    """First and longest delay before any other write that failed is retried."""
    write_outdated: tuple[float, float] = (0.02, 1.0)
    """The same for a write to an object that has changed meanwhile: the stream delivers that in a moment."""
    write_refused: tuple[float, float] = (30.0, 600.0)
    """The same for a write that the API server refused: it may be allowed later."""
    labels_contested: tuple[float, float] = (1.0, 300.0)
    """First and longest delay before labels are written again that another client keeps changing."""
    labels_calm: float = 1800.0
    """How long such labels have to stay until the delays begin again."""
    forecast: float = 1.0
    """A wave arrives node by node: the forecast of all evictions is computed at most once in this time."""
    change_is_new: float = 30.0
    """A wave within this time after a change of a policy or profile is attributed to the change."""
    silence: float = 5.0
    """If the node stream has been silent for so long, a node is read again before pods are evicted from it."""
    profile_rest: float = 1.0
    """The pods of one namespace are evaluated again at most once in this time, whatever its tenants change."""
    outage: float = 120.0
    """After a longer time without a leader, nothing that happened meanwhile counts as a pod's own doing."""
    shortest_pause: float = 1.0
    """How long no call is made after the API server rejected one by its flow control, if it names no time."""
