"""One pod that has to leave: where it stands between its deadline and being gone."""

from enum import Enum, auto
from zlib import crc32

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.machine.events import Outcome, Settled
from taintwarden.engine.model import Method, Pod


class Phase(Enum):
    """Where a pod stands. See the table in :mod:`taintwarden.engine.machine.machine`."""

    WAITING = auto()
    """For its deadline, or for the next try."""
    READY = auto()
    """Due: for the limits and a free slot."""
    PARKED = auto()
    """Due: for a fresh read of its node."""
    IN_FLIGHT = auto()
    """The call is being made."""
    LEAVING = auto()
    """The call was accepted: for the watch to say so."""
    REHEARSED = auto()
    """A DryRun policy would have evicted it."""


class Pending:
    """A pod with a deadline. There is at most one for a UID."""

    __slots__ = (
        "announced",
        "attempts",
        "blocked_since",
        "due_at",
        "limit",
        "message",
        "outcome",
        "phase",
        "pod",
        "ready_since",
        "retry_at",
        "unwanted",
        "verdict",
    )

    def __init__(self, pod: Pod, verdict: TaintVerdict, due_at: float) -> None:
        self.pod = pod
        self.verdict = verdict
        self.due_at = due_at
        self.phase = Phase.WAITING
        self.announced = False
        self.attempts = 0
        self.outcome: Outcome | None = None
        self.message = ""
        self.retry_at = 0.0
        self.blocked_since: float | None = None
        self.ready_since = 0.0
        """When it became due or ready again, on the monotonic clock."""
        self.limit = ""
        """The limit that refused it last."""
        self.unwanted = False
        """The verdict went away while the call was being made."""

    @property
    def delete_at(self) -> float | None:
        """When a pod that a budget blocks is deleted instead, if its policy wants that."""
        settings = self.verdict.policy.eviction
        if settings.method is not Method.EVICT_THEN_DELETE or self.blocked_since is None:
            return None
        return self.blocked_since + settings.pdb_timeout_seconds

    def note_failure(self, event: Settled, now: float) -> None:
        """A call did not make it leave: remember why, and when to try again."""
        self.attempts = self.attempts + 1 if self.outcome is event.outcome else 1
        self.outcome, self.message = event.outcome, event.message
        self.retry_at = now + retry_delay(event.outcome, self.attempts, self.pod.uid, event.retry_after)
        if event.outcome in (Outcome.BLOCKED, Outcome.MISCONFIGURED):  # both are budgets that do not let it go
            if self.blocked_since is None:
                self.blocked_since = now
            if self.delete_at is not None and self.delete_at > now:
                self.retry_at = min(self.retry_at, self.delete_at)

    @property
    def rank(self) -> tuple[float, ...]:
        """The order among pods with the same deadline: lower priority first."""
        return (float(self.pod.shared.priority),)


# Outcome -> first delay and longest delay, in seconds. The reasons: a budget frees up when a replacement is Ready,
# seconds at the earliest; an overloaded or absent API server wants few calls; a refusal may be an admission policy that
# is mended soon; two budgets on one pod stay until a person looks.
_BACKOFF: dict[Outcome, tuple[float, float]] = {
    Outcome.BLOCKED: (2.0, 15.0),
    Outcome.THROTTLED: (1.0, 30.0),
    Outcome.FAILED: (0.5, 15.0),
    Outcome.MISCONFIGURED: (60.0, 300.0),
    Outcome.REFUSED: (5.0, 60.0),
}


def retry_delay(outcome: Outcome, attempts: int, uid: str, retry_after: float | None) -> float:
    """Seconds until the next try, doubling, with up to 20% jitter each way.

    The jitter comes from the UID and not from chance, so that one history of events has one trace. What the server
    asks for in Retry-After is a lower bound.
    """
    first, longest = _BACKOFF[outcome]
    delay = min(longest, first * 2.0 ** min(attempts - 1, 16))
    jitter = crc32(f"{uid}/{attempts}".encode()) / 2**32
    return max(delay * (0.8 + 0.4 * jitter), retry_after or 0.0)
