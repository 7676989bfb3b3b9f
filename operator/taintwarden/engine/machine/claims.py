"""Which policies evict which pods, and the phase of each of these claims.

A pod has one claim for each policy that evicts it. Each claim waits in a lane of its own policy and is subject to the
limits of that policy. The first claim that is admitted evicts the pod, and the others end with it.

============ ================================================= ====================================================
phase        enters when                                       leaves when
============ ================================================= ====================================================
WAITING      a verdict gives a deadline                        the deadline has passed
SETTLING     due, but its wave must be complete first          the wave is complete
RETRYING     its last call did not evict the pod               the back-off of the pod is over
READY        due                                               limits admit it and a slot is free
BLOCKED      a limit refused it, but not other pods            that limit may admit it
IN_FLIGHT    ``Evict`` was issued                              ``Settled``
ACCEPTED     the call was accepted                             the pod is seen to leave, or a read shows that it runs
REHEARSED    due under a DryRun policy                         the verdict changes
PAUSED       a verdict of a paused policy                      the policy is resumed
ENDED        the pod is gone, or no longer has to leave
============ ================================================= ====================================================

A claim keeps what happened: its phase, its call, what limits answered last. What is true (which taints evict the pod,
since when a budget blocks it, whether a person released it) is asked at the moment when it matters.
"""

from enum import IntEnum, auto
from zlib import crc32

import msgspec

from taintwarden.engine.evaluate import Grounds, TaintVerdict
from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.refusal import BUDGET, CALLS, FAILING, VIEW, WORKLOAD, Whom
from taintwarden.engine.machine.commands import Evict
from taintwarden.engine.model import Mode, MonotonicTime, Pod, Policy, WallTime
from taintwarden.engine.outcomes import Outcome


class Phase(IntEnum):
    """The phase of a claim: see the table above. An integer, since phases are looked up for every pod."""

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


_RESTS = (Phase.WAITING, Phase.PAUSED)
"""Where a claim begins, and begins again: until its deadline, or for as long as its policy does not act."""
QUEUED = (Phase.WAITING, Phase.SETTLING, Phase.RETRYING, Phase.READY, Phase.BLOCKED)
"""No call was made yet: a claim in these phases may start again, or end, at any moment."""
TRANSITIONS: dict[Phase, tuple[Phase, ...]] = {
    Phase.WAITING: (*_RESTS, Phase.SETTLING, Phase.RETRYING, Phase.READY, Phase.ENDED),
    Phase.SETTLING: (*_RESTS, Phase.READY, Phase.ENDED),
    Phase.RETRYING: (*_RESTS, Phase.READY, Phase.ENDED),
    Phase.READY: (*_RESTS, Phase.BLOCKED, Phase.IN_FLIGHT, Phase.REHEARSED, Phase.ENDED),
    Phase.BLOCKED: (*_RESTS, Phase.READY, Phase.ENDED),
    Phase.IN_FLIGHT: (Phase.ACCEPTED, Phase.RETRYING, Phase.ENDED),
    Phase.ACCEPTED: (Phase.ACCEPTED, Phase.RETRYING, Phase.ENDED),
    Phase.REHEARSED: (*_RESTS, Phase.ENDED),
    Phase.PAUSED: (*_RESTS, Phase.ENDED),
    Phase.ENDED: (),
}


class Claim(msgspec.Struct, eq=False, gc=False):
    """One policy evicts one pod. Only :class:`~.queues.Queues` changes its phase."""

    key: str
    """UID and policy."""
    uid: str
    node: str
    grounds: Grounds
    verdict: TaintVerdict
    """The one that sets the deadline."""
    due_at: WallTime
    version: int
    """The pod's resourceVersion at its first evaluation: its node has to be known as of then."""
    phase: Phase = Phase.WAITING
    announced_in: int | None = None
    """The term of the leader that reported that the pod will be evicted at ``due_at``."""
    is_reported: bool = False
    """It was reported what delays the eviction."""
    settles_at: MonotonicTime = MonotonicTime(0.0)
    """When its wave is complete."""
    retry_at: MonotonicTime = MonotonicTime(0.0)
    """When it may be called again."""
    attempts: int = 0
    """Calls that did not evict the pod."""
    outcome: Outcome | None = None
    """Of the last call that did not evict the pod."""
    ready_since: MonotonicTime | None = None
    """When it became due: no later read of its node and no retry changes that."""
    failing_since: MonotonicTime | None = None
    """When calls for it began to fail, other than by a budget."""
    refusal: Refusal | None = None
    """Why it waits, if nothing keeps its whole policy or lane: a limit, or the answer to its last call."""
    budget_refused_at: MonotonicTime | None = None
    """When a budget first refused it, or the API server because of one."""
    waited_for: str = ""
    """The limit to report on admission: the last one that is not over in a moment."""

    @classmethod
    def of(cls, pod: Pod, grounds: Grounds, settles_at: MonotonicTime) -> "Claim":
        """A claim of a policy on a pod."""
        due_at, verdict = grounds.first(pod.bound_at)
        key = f"{pod.uid}/{grounds.policy.name}"
        return cls(key, pod.uid, pod.node, grounds, verdict, due_at, pod.resource_version, settles_at=settles_at)

    @property
    def not_before(self) -> MonotonicTime:
        """When it may be admitted at the earliest."""
        return max(self.settles_at, self.retry_at)

    @property
    def policy(self) -> Policy:
        """The policy that evicts the pod."""
        return self.grounds.policy

    @property
    def rests(self) -> Phase:
        """The phase in which it begins."""
        return Phase.PAUSED if self.grounds.policy.mode is Mode.PAUSED else Phase.WAITING

    @property
    def is_enforced(self) -> bool:
        """Whether the pod is evicted because of it."""
        return self.grounds.policy.mode is Mode.ENFORCE

    @property
    def was_expected(self) -> bool:
        """Whether it was reported that the pod is to be evicted."""
        return self.announced_in is not None or self.is_reported or self.phase is Phase.REHEARSED

    @property
    def failed(self) -> Outcome | None:
        """How the last call ended, if the pod waits for the next one, or for its answer."""
        return self.outcome if self.phase in (Phase.RETRYING, Phase.READY, Phase.IN_FLIGHT) else None

    def waits_since(self, limit: str, now: MonotonicTime) -> MonotonicTime:
        """Since when ``limit`` delays it: since it was due; an outcome of calls, since they began to fail."""
        failing = self.failing_since if limit == FAILING else None
        since = self.ready_since if failing is None else failing
        return now if since is None else since

    def grace_seconds(self, pod: Pod) -> int:
        """How long the pod may take to stop."""
        given = self.policy.eviction.grace_period_seconds
        return pod.shared.grace_seconds if given is None else given

    def decide(self, grounds: Grounds, pod: Pod, settles_at: MonotonicTime) -> bool:
        """The pod was evaluated again. Returns whether its deadline or its policy changed.

        One that becomes due earlier than before is part of a new wave, which has to be complete first.
        """
        due_at, verdict = grounds.first(pod.bound_at)
        before = self.grounds
        changed = due_at != self.due_at or not (before.policy is grounds.policy or before.policy == grounds.policy)
        if due_at < self.due_at:
            self.settle(settles_at)
        if due_at != self.due_at:
            self._begin_again()
            self.announced_in = None
        self.grounds, self.verdict, self.due_at = grounds, verdict, due_at
        self.version = min(self.version, pod.resource_version)  # lower after a restore of etcd
        return changed

    def move(self, node: str) -> None:
        """The pod is on another node than before, after a restore of etcd."""
        self.node = node

    def rest(self) -> None:
        """The policy does not act, so no eviction is expected any more."""
        self._begin_again()
        self.announced_in, self.is_reported = None, False

    def settle(self, until: MonotonicTime) -> None:
        """Make no call before its wave is complete."""
        self.settles_at = max(self.settles_at, until)

    def become_ready(self, now: MonotonicTime) -> None:
        """It is due, or may be tried again."""
        if self.ready_since is None:
            self.ready_since = now

    def _begin_again(self) -> None:
        """It has waited for nothing yet."""
        self.ready_since, self.failing_since, self.waited_for = None, None, ""

    def hold_by_budget(self, now: MonotonicTime) -> None:
        """A budget refuses it."""
        if self.budget_refused_at is None:
            self.budget_refused_at = now

    def change_pod(self, refused_since: MonotonicTime | None, now: MonotonicTime) -> None:
        """The pod differs from before: since then its budgets had refused it; None: they would have admitted it."""
        if self.budget_refused_at is not None:
            self.budget_refused_at = max(self.budget_refused_at, now if refused_since is None else refused_since)

    def hold(self, refusal: Refusal, *, is_reported: bool) -> None:
        """A limit refuses it."""
        self.refusal = refusal
        self.is_reported = self.is_reported or is_reported
        if not refusal.is_brief or (not self.waited_for and refusal.limit != VIEW):  # most reads of nodes take a moment
            self.waited_for = refusal.limit

    def retry(self, outcome: Outcome, message: str, retry_at: MonotonicTime) -> None:
        """The call was not made, or did not evict the pod: make the next one at ``retry_at`` at the earliest."""
        self.retry_at = retry_at
        self.refusal = Refusal(limit_of(outcome), retry_at, Whom.PODS, detail=message or outcome.row.why)

    def fail(self, outcome: Outcome, message: str, now: MonotonicTime, retry_at: MonotonicTime) -> None:
        """A call was made, and did not evict the pod."""
        self.attempts += 1
        self.retry(outcome, message, retry_at)
        self.become_ready(now)  # its deadline may have changed during the call
        if outcome.row.by_budget:
            self.failing_since = None
        elif self.failing_since is None:
            self.failing_since = now
        self.outcome, self.is_reported = outcome, True


class Call(msgspec.Struct, eq=False, gc=False):
    """An eviction call that was issued, and the claim that it carries out."""

    claim: Claim
    order: Evict

    @property
    def is_answered(self) -> bool:
        """Whether it has ended; the watch has yet to report that the pod is gone."""
        return self.claim.phase is not Phase.IN_FLIGHT


class Evictee(msgspec.Struct, eq=False, gc=False):
    """A pod that has to leave: the claims on it, and the call that one of them has issued."""

    uid: str
    node: str
    claims: tuple[Claim, ...] = ()
    """One for each policy. There is rarely more than one, and a tuple of one is the smallest collection."""
    call: Call | None = None
    missing_until: MonotonicTime | None = None
    """Until when it counts as missing from its workload although no call is in progress; None: it does not."""
    kept_until: MonotonicTime | None = None
    """The same, since an admission webhook kept it from being evicted for the first time; None: none has."""
    checks: int = 0
    """Reads since its eviction was accepted."""

    def move(self, node: str) -> None:
        """The pod is on another node, and so are the claims that remain."""
        self.node = node
        for claim in self.claims:
            claim.move(node)

    def claim_of(self, policy: str) -> Claim | None:
        """The claim of a policy."""
        for claim in self.claims:
            if claim.grounds.policy.name == policy:
                return claim
        return None


class Claims:
    """All claims, by pod."""

    def __init__(self) -> None:
        self.evictees: dict[str, Evictee] = {}
        """By the pod's UID."""

    def get(self, key: str) -> Claim | None:
        """The claim with this key, if it has not ended."""
        uid, _, policy = key.partition("/")
        evictee = self.evictees.get(uid)
        return None if evictee is None else evictee.claim_of(policy)

    def evictee(self, pod: Pod) -> Evictee:
        """The pod's evictee, which is created if there is none."""
        found = self.evictees.get(pod.uid)
        if found is None:
            found = self.evictees[pod.uid] = Evictee(pod.uid, pod.node)
        return found

    def of(self, uid: str) -> tuple[Claim, ...]:
        """The claims on a pod."""
        evictee = self.evictees.get(uid)
        return () if evictee is None else evictee.claims

    def add(self, evictee: Evictee, claim: Claim) -> None:
        """Another policy evicts the pod."""
        evictee.claims = (*evictee.claims, claim)

    def remove(self, claim: Claim) -> None:
        """A claim has ended."""
        evictee = self.evictees[claim.uid]
        evictee.claims = tuple([one for one in evictee.claims if one is not claim])
        if not evictee.claims and evictee.missing_until is not None:
            evictee.missing_until = evictee.kept_until  # a webhook may move a pod that may stay, too
        self.drop(claim.uid)

    def drop(self, uid: str) -> None:
        """Forget the evictee if nothing is known of it any more: no claim, no call, and it counts as no missing pod."""
        evictee = self.evictees.get(uid)
        if evictee is not None and not evictee.claims and evictee.call is None and evictee.missing_until is None:
            del self.evictees[uid]


def limit_of(outcome: Outcome) -> str:
    """The limit that an outcome of a call stands for."""
    if outcome.row.by_budget:
        return BUDGET
    if outcome is Outcome.NOT_SENT:
        return VIEW
    if outcome in (Outcome.ASKED, Outcome.NOT_REPLACED):
        return WORKLOAD
    return CALLS if outcome.row.pauses or outcome.row.back_off[1] else FAILING


def retry_delay(bounds: tuple[float, float], attempts: int, name: str) -> float:
    """Seconds until the next retry, doubling from the first to the longest, with up to 20% jitter each way.

    The jitter is derived from the name and is not random, so that one history of events has one trace.
    """
    first, longest = bounds
    delay = min(longest, first * 2.0 ** min(attempts - 1, 16))
    jitter = crc32(f"{name}/{attempts}".encode()) / 2**32
    return delay * (0.8 + 0.4 * jitter)
