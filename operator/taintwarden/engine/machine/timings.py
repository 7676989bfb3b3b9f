"""How long the machine waits for what, in seconds. One structure that is handed in; tests hand in another one."""

import msgspec

from taintwarden.engine.machine.events import Outcome

# Outcome -> first and longest delay. The reasons: a budget frees up when a replacement is Ready, seconds at the
# earliest; an overloaded or absent API server wants few calls; a refusal may be an admission policy that is changed
# soon; two budgets on one pod stay until a person looks.
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
    """An eviction that is due sooner is not announced: the next that is reported is that it was carried out."""
    not_leading: float = 1.0
    """Pause after a call that was not made because the lease had run out, until leadership is lost here, too."""
    leaving: float = 60.0
    """How long an accepted eviction may go unseen in the watch before the pod is judged again."""
    backoff: dict[Outcome, tuple[float, float]] = msgspec.field(default_factory=_BACKOFF.copy)
    """First and longest delay before an eviction is tried again, by how the last call ended."""
    longest_retry_after: float = 300.0
    """What a server asks for in Retry-After counts up to here."""
    write_failed: tuple[float, float] = (1.0, 30.0)
    """First and longest delay before another write that failed is tried again."""
    write_refused: tuple[float, float] = (30.0, 600.0)
    """The same for one that the API server refused: it may be allowed later."""
    forecast: float = 1.0
    """A wave comes node by node: what it means for everybody's turn is computed at most this often."""
    change_is_new: float = 30.0
    """A wave within this time after a policy or profile changed is attributed to the change."""
    incident: float = 3600.0
    """Nodes whose value became untolerated within this time of each other did so for the same reason."""
