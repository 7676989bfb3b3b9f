"""One pod that has to leave: where it stands between its deadline and being gone."""

from enum import Enum, auto
from typing import NamedTuple
from zlib import crc32

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine.events import Outcome, Settled
from taintwarden.engine.model import Method, Pod, Policy
from taintwarden.engine.order import Place, place_of


class Lane(NamedTuple):
    """A policy's line of due pods; lanes with hard deadlines come first."""

    soft: bool
    policy: str


class Phase(Enum):
    """Where a pod stands. See the table in :mod:`taintwarden.engine.machine.machine`."""

    WAITING = auto()
    """For its deadline, or for the next try."""
    READY = auto()
    """Due: for the limits of its policy and a free slot."""
    HELD = auto()
    """Due: for a limit that other pods of its policy need not meet."""
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
        "at_risk",
        "attempts",
        "blocked_since",
        "bounce_until",
        "due_at",
        "grace_cut",
        "held_by",
        "lane",
        "message",
        "missed",
        "outcome",
        "phase",
        "place",
        "pod",
        "ready_at",
        "ready_since",
        "refusal",
        "released_by",
        "retry_at",
        "unwanted",
        "verdict",
        "waited_for",
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
        self.bounce_until = 0.0
        """Until when it was last told that it is held as its workload bounces, on the monotonic clock."""
        self.ready_since = 0.0
        """When it became due or ready again, on the monotonic clock."""
        self.ready_at = 0.0
        """The same on the wall clock."""
        self.refusal: Refusal | None = None
        """The last answer of a limit, of those it met since it became ready."""
        self.waited_for = ""
        """The limit to name when it goes: the last one, and a guard's record, a matter of moments, only if no other."""
        self.lane = Lane(soft=True, policy="")
        self.place = Place(0.0, ())
        """Where it stands in line; computed when it is lined up, so that it is found there again."""
        self.held_by = ""
        """Key of the refusal that holds it."""
        self.released_by = ""
        """Key of the refusal that let it back: whoever is behind it there waits for it to move on."""
        self.unwanted = False
        """The verdict went away while the call was being made."""
        self.at_risk = False
        """It was foretold that it will miss its hard deadline."""
        self.missed = False
        """It was counted that it missed its hard deadline."""
        self.grace_cut = False
        """The call under way gives it less time to stop than it asks for."""

    @property
    def policy(self) -> Policy:
        """The policy that makes it leave."""
        return self.verdict.policy

    @property
    def limit(self) -> str:
        """The name of the limit that refused it last."""
        return self.refusal.limit if self.refusal else ""

    @property
    def grace_seconds(self) -> int:
        """How long it may take to stop."""
        given = self.policy.eviction.grace_period_seconds
        return self.pod.shared.grace_seconds if given is None else given

    @property
    def delete_at(self) -> float | None:
        """When a pod that a budget blocks is deleted instead, if its policy wants that.

        Where the node will be gone, that is early enough for the pod to stop in order.
        """
        settings = self.policy.eviction
        if settings.method is not Method.EVICT_THEN_DELETE or self.blocked_since is None:
            return None
        at = self.blocked_since + settings.pdb_timeout_seconds
        if self.verdict.hard_at is None:
            return at
        return min(at, max(self.blocked_since, self.verdict.hard_at - self.grace_seconds))

    def compute_place(self) -> Place:
        """Where it stands in line now."""
        return place_of(self.pod, self.policy, self.due_at, self.verdict.hard_at)

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
