"""Which policies evict which pods, and the phase of each of these claims.

A pod has one claim for each policy that evicts it. Each claim waits in the queue of its own policy and is subject to
the limits of that policy. The first claim that is admitted evicts the pod, and the others end with it.

============ ================================================= ====================================================
phase        enters when                                       leaves when
============ ================================================= ====================================================
WAITING      a verdict gives a deadline                        the deadline has passed
DELAYED      due, but its wave must be complete first, or the  the delay is over
             last call failed
READY        due                                               limits admit it and a slot is free
BLOCKED      a limit refused it, but not other pods            that limit may admit it
CHECKING     the pod is newer than the node stream             a direct read of the node was answered
ASIDE        another claim on the pod is being carried out     that call ended without evicting it
IN_FLIGHT    ``Evict`` was issued                              ``Settled``
LEAVING      the call was accepted                             the pod is gone (evaluated again after a minute)
REHEARSED    due under a DryRun policy                         the verdict changes
ENDED        the pod is gone, or no longer has to leave
============ ================================================= ====================================================
"""

from collections.abc import Iterator
from enum import IntEnum, auto
from zlib import crc32

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine.commands import Evict
from taintwarden.engine.machine.events import Outcome, Settled
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.model import Instant, Method, Mode, MonotonicTime, Pod, Policy, WallTime, later


class Phase(IntEnum):
    """The phase of a claim: see the table above. An integer, since phases are looked up for every pod."""

    WAITING = auto()
    DELAYED = auto()
    READY = auto()
    BLOCKED = auto()
    CHECKING = auto()
    ASIDE = auto()
    IN_FLIGHT = auto()
    LEAVING = auto()
    REHEARSED = auto()
    ENDED = auto()


QUEUED = (Phase.WAITING, Phase.DELAYED, Phase.READY, Phase.BLOCKED, Phase.CHECKING)
"""No call was made yet: a claim in these phases may start again, be put aside, or end, at any moment."""
SETTLED = (Phase.IN_FLIGHT, Phase.LEAVING, Phase.REHEARSED)
"""No call is ahead: the pod is being evicted, or would be under a DryRun policy."""
TRANSITIONS: dict[Phase, tuple[Phase, ...]] = {
    Phase.WAITING: (Phase.WAITING, Phase.DELAYED, Phase.READY, Phase.ASIDE, Phase.ENDED),
    Phase.DELAYED: (Phase.WAITING, Phase.READY, Phase.ASIDE, Phase.ENDED),
    Phase.READY: (
        Phase.WAITING,
        Phase.BLOCKED,
        Phase.CHECKING,
        Phase.ASIDE,
        Phase.IN_FLIGHT,
        Phase.REHEARSED,
        Phase.ENDED,
    ),
    Phase.BLOCKED: (Phase.WAITING, Phase.READY, Phase.ASIDE, Phase.ENDED),
    Phase.CHECKING: (Phase.WAITING, Phase.DELAYED, Phase.ASIDE, Phase.ENDED),
    Phase.ASIDE: (Phase.WAITING, Phase.ENDED),
    Phase.IN_FLIGHT: (Phase.LEAVING, Phase.DELAYED, Phase.ENDED),
    Phase.LEAVING: (Phase.ENDED,),
    Phase.REHEARSED: (Phase.WAITING, Phase.ENDED),
    Phase.ENDED: (),
}


class Claim(msgspec.Struct, eq=False, gc=False):
    """One policy evicts one pod. Only :class:`~.queues.Queues` changes its phase."""

    key: str
    """UID and policy."""
    uid: str
    node: str
    verdict: TaintVerdict
    due_at: WallTime
    phase: Phase = Phase.WAITING
    is_latecomer: bool = False
    """The pod came to its node when the taint already evicted it."""
    announced: bool = False
    withdrawn: bool = False
    """The verdict ended during the call."""
    not_before: MonotonicTime = MonotonicTime(0.0)
    """Until its wave is complete, or the next retry."""
    attempts: int = 0
    """Consecutive calls with the same outcome."""
    outcome: Outcome | None = None
    """Of the last call that did not evict the pod."""
    message: str = ""
    blocked_since: MonotonicTime | None = None
    """Since when only budgets block the eviction."""
    bounced_until: MonotonicTime | None = None
    """The end of the hold that was last reported because its workload bounces."""
    ready_since: MonotonicTime = MonotonicTime(0.0)
    """When it became due, or ready again."""
    refusal: Refusal | None = None
    """The last refusal by a limit since it became ready."""
    waited_for: str = ""
    """The limit to report on admission: the last one; a guard's record, which takes moments, only if no other."""

    @classmethod
    def of(cls, pod: Pod, verdict: TaintVerdict, due_at: WallTime) -> "Claim":
        """A claim of the verdict's policy on a pod."""
        return cls(f"{pod.uid}/{verdict.policy.name}", pod.uid, pod.node, verdict, due_at)

    @property
    def policy(self) -> Policy:
        """The policy that evicts the pod."""
        return self.verdict.policy

    @property
    def is_enforced(self) -> bool:
        """Whether the policy enforces, so that the pod is evicted."""
        return self.verdict.policy.mode is Mode.ENFORCE

    @property
    def limit(self) -> str:
        """The name of the limit that refused it last."""
        return self.refusal.limit if self.refusal else ""

    def grace_seconds(self, pod: Pod) -> int:
        """How long the pod may take to stop."""
        given = self.policy.eviction.grace_period_seconds
        return pod.shared.grace_seconds if given is None else given

    def delete_at(self, pod: Pod, now: Instant) -> MonotonicTime | None:
        """When a pod that a budget blocks is deleted instead, if its policy specifies that.

        If the node will be removed, that is early enough for the pod to stop gracefully.
        """
        settings = self.policy.eviction
        if settings.method is not Method.EVICT_THEN_DELETE or self.blocked_since is None:
            return None
        at = later(self.blocked_since, settings.pdb_timeout_seconds)
        if self.verdict.hard_at is None:
            return at
        last = later(now.monotonic_at(self.verdict.hard_at), -self.grace_seconds(pod))
        return min(at, max(self.blocked_since, last))

    def note_failure(self, event: Settled, pod: Pod, now: Instant, timings: Timings) -> None:
        """A call did not evict the pod: record why, and when to retry."""
        self.attempts = self.attempts + 1 if self.outcome is event.outcome else 1
        self.outcome, self.message = event.outcome, event.message
        delay = retry_delay(timings.backoff[event.outcome], self.attempts, self.uid)
        asked = min(event.retry_after or 0.0, timings.longest_retry_after)
        self.not_before = later(now.monotonic, max(delay, asked))
        if event.outcome in (Outcome.BLOCKED, Outcome.MISCONFIGURED):  # budgets are the cause of both
            if self.blocked_since is None:
                self.blocked_since = now.monotonic
            delete_at = self.delete_at(pod, now)
            if delete_at is not None and delete_at > now.monotonic:
                self.not_before = min(self.not_before, delete_at)


class Call(msgspec.Struct, eq=False, gc=False):
    """An eviction call that was issued, and the claim that it carries out."""

    claim: Claim
    order: Evict
    grace_cut: bool
    """It gives the pod less time to stop than the pod specifies."""
    is_answered: bool = False
    """The call has ended; the watch has yet to report that the pod is gone."""


class Evictee(msgspec.Struct, eq=False, gc=False):
    """A pod that has to leave: the claims on it, and the call that one of them has issued."""

    uid: str
    node: str
    claims: tuple[Claim, ...] = ()
    """One for each policy. There is rarely more than one, and a tuple of one is the smallest collection."""
    call: Call | None = None
    is_uncertain: bool = False
    """The last call got no answer, and may have been carried out."""

    def move(self, node: str) -> None:
        """The pod is on another node, and so are the claims that remain."""
        self.node = node
        for claim in self.claims:
            claim.node = node

    def claim_of(self, policy: str) -> Claim | None:
        """The claim of a policy."""
        for claim in self.claims:
            if claim.verdict.policy.name == policy:
                return claim
        return None


class Claims:
    """All claims, by pod and by key."""

    def __init__(self) -> None:
        self.evictees: dict[str, Evictee] = {}
        """By the pod's UID."""
        self.by_key: dict[str, Claim] = {}

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.by_key.values())

    def evictee(self, pod: Pod) -> Evictee:
        """The pod's evictee, which is created if there is none."""
        found = self.evictees.get(pod.uid)
        if found is None:
            found = self.evictees[pod.uid] = Evictee(pod.uid, pod.node)
        return found

    def add(self, evictee: Evictee, claim: Claim) -> None:
        """Another policy evicts the pod."""
        evictee.claims = (*evictee.claims, claim)
        self.by_key[claim.key] = claim

    def remove(self, claim: Claim) -> None:
        """A claim has ended."""
        del self.by_key[claim.key]
        evictee = self.evictees[claim.uid]
        evictee.claims = tuple([one for one in evictee.claims if one is not claim])
        if not evictee.claims and evictee.call is None:
            del self.evictees[claim.uid]


def retry_delay(bounds: tuple[float, float], attempts: int, name: str) -> float:
    """Seconds until the next retry, doubling from the first to the longest, with up to 20% jitter each way.

    The jitter is derived from the name and is not random, so that one history of events has one trace.
    """
    first, longest = bounds
    delay = min(longest, first * 2.0 ** min(attempts - 1, 16))
    jitter = crc32(f"{name}/{attempts}".encode()) / 2**32
    return delay * (0.8 + 0.4 * jitter)
