"""Claims: which policies evict which pods, and the phase of each decision.

A pod has one claim for each policy that evicts it. Each claim waits in a lane of its own policy and is subject to the
limits of that policy. The first claim that all limits admit evicts the pod, and the other claims end with it.

============ ================================================= ====================================================
phase        enters when                                       leaves when
============ ================================================= ====================================================
WAITING      a verdict gives a deadline                        the deadline has passed
SETTLING     due, but its wave must be complete first          the wave is complete
RETRYING     its last call did not evict the pod               the back-off of the pod is over
READY        due                                               limits admit it and a slot is free
BLOCKED      a limit refused it, but not other pods            that limit may admit it
IN_FLIGHT    ``Evict`` was issued                              ``Settled``
ACCEPTED     the call was accepted, or found the pod gone      the pod is seen to leave, or a read shows that it runs
REHEARSED    due under a DryRun policy                         the verdict changes
PAUSED       a verdict of a paused policy                      the policy is resumed
ENDED        the pod is gone, or no longer has to leave
============ ================================================= ====================================================

A claim stores events of the past: its phase, its call, the last answers of limits. The present state (which taints
evict the pod, how long a budget has blocked it, whether a person released it) is computed when needed.
"""

from enum import IntEnum, auto
from zlib import crc32

import msgspec

from taintwarden.engine.commands import Evict
from taintwarden.engine.evaluate import Grounds, TaintVerdict
from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.refusal import BUDGET, CALLS, FAILING, VIEW, WORKLOAD, RefusalScope
from taintwarden.engine.model import MonotonicTime, Pod, WallTime
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode, Policy


class Phase(IntEnum):
    """Phase of a claim, see the table above. An integer, since phases are looked up for every pod."""

    WAITING = auto()
    SETTLING = auto()
    RETRYING = auto()
    READY = auto()
    BLOCKED = auto()
    IN_FLIGHT = auto()
    ACCEPTED = auto()
    REHEARSED = auto()
    PAUSED = auto()
    ENDED = auto()


_INITIAL = (Phase.WAITING, Phase.PAUSED)
"""Phases in which a claim begins or restarts: PAUSED if its policy is paused, otherwise WAITING."""
QUEUED = (Phase.WAITING, Phase.SETTLING, Phase.RETRYING, Phase.READY, Phase.BLOCKED)
"""Phases in which a claim waits for its next call. It may restart or end in them at any moment."""
TRANSITIONS: dict[Phase, tuple[Phase, ...]] = {
    Phase.WAITING: (*_INITIAL, Phase.SETTLING, Phase.RETRYING, Phase.READY, Phase.ENDED),
    Phase.SETTLING: (*_INITIAL, Phase.READY, Phase.ENDED),
    Phase.RETRYING: (*_INITIAL, Phase.READY, Phase.ENDED),
    Phase.READY: (*_INITIAL, Phase.BLOCKED, Phase.IN_FLIGHT, Phase.REHEARSED, Phase.ENDED),
    Phase.BLOCKED: (*_INITIAL, Phase.READY, Phase.ENDED),
    Phase.IN_FLIGHT: (Phase.ACCEPTED, Phase.RETRYING, Phase.ENDED),
    Phase.ACCEPTED: (Phase.ACCEPTED, Phase.RETRYING, Phase.ENDED),
    Phase.REHEARSED: (*_INITIAL, Phase.ENDED),
    Phase.PAUSED: (*_INITIAL, Phase.ENDED),
    Phase.ENDED: (),
}


class Claim(msgspec.Struct, eq=False, gc=False):
    """Decision of one policy to evict one pod. Only :class:`~.queues.Queues` changes its phase."""

    key: str
    """UID of the pod, a slash, and the name of the policy."""
    uid: str
    node: str
    grounds: Grounds
    verdict: TaintVerdict
    """Verdict that sets the deadline."""
    due_at: WallTime
    version: int
    """resourceVersion of the pod at its first evaluation. Its node has to be known up to this version."""
    phase: Phase = Phase.WAITING
    announced_in: int | None = None
    """Leadership term in which an eviction at ``due_at`` was announced; None if it was not."""
    reported: Refusal | None = None
    """Last reported refusal by a limit, or reported answer to a call."""
    settles_at: MonotonicTime = MonotonicTime(0.0)
    """Time at which its wave is complete."""
    retry_at: MonotonicTime = MonotonicTime(0.0)
    """Earliest time of its next call."""
    attempts: int = 0
    """Number of calls that did not evict the pod."""
    conflicts: int = 0
    """Number of calls, while it was not Ready, for which the API server had a later version of it."""
    outcome: Outcome | None = None
    """Outcome of the last call that did not evict the pod."""
    ready_since: MonotonicTime | None = None
    """Time at which it became READY for its present deadline; None if it has not. Later waits and retries keep it."""
    failing_since: MonotonicTime | None = None
    """Time at which calls for it began to fail, other than by a budget."""
    refusal: Refusal | None = None
    """Last refusal by a limit, or the answer to its last call. In force only while it is BLOCKED or RETRYING."""
    budget_refused_at: MonotonicTime | None = None
    """Time at which a budget first refused it, by its status or in an answer of the API server."""
    waited_for: str = ""
    """Limit to report as the cause of the wait: the last whose refusal was not brief, or else the first."""

    @classmethod
    def of(cls, pod: Pod, grounds: Grounds, settles_at: MonotonicTime) -> "Claim":
        """Create a claim of a policy on a pod."""
        due_at, verdict = grounds.first(pod.bound_at)
        key = f"{pod.uid}/{grounds.policy.name}"
        return cls(key, pod.uid, pod.node, grounds, verdict, due_at, pod.resource_version, settles_at=settles_at)

    @property
    def not_before(self) -> MonotonicTime:
        """Earliest time at which it may be admitted."""
        return max(self.settles_at, self.retry_at)

    @property
    def policy(self) -> Policy:
        """The policy that evicts the pod."""
        return self.grounds.policy

    @property
    def initial_phase(self) -> Phase:
        """Phase in which it begins or restarts."""
        return Phase.PAUSED if self.grounds.policy.mode is Mode.PAUSED else Phase.WAITING

    @property
    def is_enforced(self) -> bool:
        """True if its policy enforces, so that the pod is evicted."""
        return self.grounds.policy.mode is Mode.ENFORCE

    @property
    def was_announced(self) -> bool:
        """True if the pending eviction of the pod was reported."""
        return self.announced_in is not None or self.reported is not None or self.phase is Phase.REHEARSED

    @property
    def failed(self) -> Outcome | None:
        """Outcome of the last failed call while the claim is RETRYING, READY or IN_FLIGHT; otherwise None."""
        return self.outcome if self.phase in (Phase.RETRYING, Phase.READY, Phase.IN_FLIGHT) else None

    def waits_since(self, limit: str, now: MonotonicTime) -> MonotonicTime:
        """Time since which ``limit`` delays it: ``ready_since``, or ``failing_since`` for FAILING; else ``now``."""
        failing = self.failing_since if limit == FAILING else None
        since = self.ready_since if failing is None else failing
        return now if since is None else since

    def grace_seconds(self, pod: Pod) -> int:
        """Grace period in seconds of the pod: that of the policy, or else its own."""
        given = self.policy.eviction.grace_period_seconds
        return pod.shared.grace_seconds if given is None else given

    def update_grounds(self, grounds: Grounds, pod: Pod, settles_at: MonotonicTime) -> bool:
        """Store the result of a new evaluation. Returns True if its deadline or its policy changed.

        A claim that becomes due earlier than before is part of a new wave, which has to be complete first.
        """
        due_at, verdict = grounds.first(pod.bound_at)
        changed = due_at != self.due_at or self.policy != grounds.policy
        if due_at < self.due_at:
            self.delay_until(settles_at)
        if due_at != self.due_at:
            self._reset_waits()
            self.announced_in = None
        if self.policy.mode is not grounds.policy.mode:  # after a pause or a dry run, evictions begin again
            self.budget_refused_at = None
            self.announced_in = None
        self.grounds, self.verdict, self.due_at = grounds, verdict, due_at
        self.version = min(self.version, pod.resource_version)  # lower after a restore of etcd
        return changed

    def move(self, node: str) -> None:
        """Move to another node, after a restore of etcd."""
        self.node = node

    def pause(self) -> None:
        """Withdraw the announcement of an eviction, since the policy is paused."""
        self._reset_waits()
        self.announced_in = self.reported = None

    def delay_until(self, until: MonotonicTime) -> None:
        """Allow no call before ``until``, when its wave is complete."""
        self.settles_at = max(self.settles_at, until)

    def note_due(self, now: MonotonicTime) -> None:
        """Record that it is due, unless that was recorded before."""
        if self.ready_since is None:
            self.ready_since = now

    def _reset_waits(self) -> None:
        """Reset the times and the limit that describe its wait."""
        self.ready_since, self.failing_since, self.waited_for = None, None, ""

    def note_budget_refusal(self, now: MonotonicTime) -> None:
        """Record that a budget refuses it."""
        if self.budget_refused_at is None:
            self.budget_refused_at = now

    def pod_changed(self, refused_since: MonotonicTime | None, now: MonotonicTime) -> None:
        """Count how long budgets refuse a changed pod from ``refused_since`` at the earliest; None: from ``now``."""
        if self.budget_refused_at is not None:
            self.budget_refused_at = max(self.budget_refused_at, now if refused_since is None else refused_since)

    def note_refusal(self, refusal: Refusal, *, is_reported: bool) -> None:
        """Record that a limit refuses it. ``is_reported``: True if it is shown to users."""
        self.refusal = refusal
        if is_reported:
            self.reported = refusal
        if not refusal.is_brief or (not self.waited_for and refusal.limit != VIEW):  # reads of nodes are not named
            self.waited_for = refusal.limit

    def retry(self, outcome: Outcome, message: str, retry_at: MonotonicTime) -> None:
        """Allow the next call at ``retry_at``, since the last one was not made or did not evict the pod."""
        self.retry_at = retry_at
        self.refusal = Refusal(limit_of(outcome), retry_at, RefusalScope.PODS, detail=message or outcome.row.why)

    def fail(self, outcome: Outcome, message: str, now: MonotonicTime, retry_at: MonotonicTime) -> None:
        """Record a call that did not evict the pod."""
        self.attempts += 1
        self.retry(outcome, message, retry_at)
        self.note_due(now)  # its deadline may have changed during the call
        if outcome.row.by_budget:
            self.failing_since = None
        elif self.failing_since is None:
            self.failing_since = now
        self.outcome, self.reported = outcome, self.refusal


class Call(msgspec.Struct, eq=False, gc=False):
    """An eviction call that was issued, and its claim."""

    claim: Claim
    order: Evict

    @property
    def is_answered(self) -> bool:
        """True if the call has ended. The pod may still exist."""
        return self.claim.phase is not Phase.IN_FLIGHT


class Evictee(msgspec.Struct, eq=False, gc=False):
    """A pod that has to leave, or still may after a call: its claims, and the call in progress or accepted."""

    uid: str
    node: str
    claims: tuple[Claim, ...] = ()
    """One claim for each policy. There is rarely more than one; a tuple takes the least memory."""
    call: Call | None = None
    missing_until: MonotonicTime | None = None
    """Time until which it counts as missing from its workload, although no call is in progress; None if it does not."""
    kept_until: MonotonicTime | None = None
    """Time until which it counts as missing because a webhook prevented its eviction; None if none has."""
    checks: int = 0
    """Number of reads of the pod since its eviction was accepted."""

    def move(self, node: str) -> None:
        """Move to another node, with the remaining claims."""
        self.node = node
        for claim in self.claims:
            claim.move(node)

    def claim_of(self, policy: str) -> Claim | None:
        """Claim of a policy; None if it has none."""
        for claim in self.claims:
            if claim.grounds.policy.name == policy:
                return claim
        return None


class Claims:
    """All claims, by pod."""

    def __init__(self) -> None:
        self.evictees: dict[str, Evictee] = {}
        """Evictees by the UIDs of their pods."""

    def get(self, key: str) -> Claim | None:
        """Claim with this key; None if it has ended."""
        uid, _, policy = key.partition("/")
        evictee = self.evictees.get(uid)
        return None if evictee is None else evictee.claim_of(policy)

    def evictee(self, pod: Pod) -> Evictee:
        """Evictee of a pod, created if there is none."""
        found = self.evictees.get(pod.uid)
        if found is None:
            found = self.evictees[pod.uid] = Evictee(pod.uid, pod.node)
        return found

    def of(self, uid: str) -> tuple[Claim, ...]:
        """Claims on a pod."""
        evictee = self.evictees.get(uid)
        return () if evictee is None else evictee.claims

    def add(self, evictee: Evictee, claim: Claim) -> None:
        """Add the claim of another policy on the pod."""
        evictee.claims = (*evictee.claims, claim)

    def remove(self, claim: Claim) -> None:
        """Remove a claim that has ended."""
        evictee = self.evictees[claim.uid]
        evictee.claims = tuple([other for other in evictee.claims if other is not claim])
        if not evictee.claims and evictee.missing_until is not None:
            evictee.missing_until = evictee.kept_until  # a webhook may move even a pod that no policy evicts
        self.drop_if_idle(claim.uid)

    def drop_if_idle(self, uid: str) -> None:
        """Drop the evictee if it has no claim and no call, and does not count as missing."""
        evictee = self.evictees.get(uid)
        if evictee is not None and not evictee.claims and evictee.call is None and evictee.missing_until is None:
            del self.evictees[uid]


def limit_of(outcome: Outcome) -> str:
    """Limit to report for the outcome of a call."""
    if outcome.row.by_budget:
        return BUDGET
    if outcome is Outcome.NOT_SENT:
        return VIEW
    if outcome in (Outcome.ASKED, Outcome.NOT_REPLACED):
        return WORKLOAD
    return CALLS if outcome.row.pauses or outcome.row.back_off[1] else FAILING


def retry_delay(bounds: tuple[float, float], attempts: int, name: str) -> float:
    """Seconds until the next retry, doubling within ``bounds`` (first, longest), with up to 20% jitter each way.

    The jitter is derived from ``name``, so that a replay gives the same result.
    """
    first, longest = bounds
    delay = min(longest, first * 2.0 ** min(attempts - 1, 16))
    jitter = crc32(f"{name}/{attempts}".encode()) / 2**32
    return delay * (0.8 + 0.4 * jitter)
