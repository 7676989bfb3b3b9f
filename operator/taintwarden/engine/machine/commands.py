"""What the machine asks for: orders, which the loop carries out, and notices, which are only reported."""

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits.guard import GuardRecord
from taintwarden.engine.model import Pod, Policy, Taint


class Evict(msgspec.Struct, frozen=True):
    """Evict ``pod``, with its UID as precondition; answered by :class:`~.events.Settled`.

    ``delete`` uses DELETE instead of the Eviction API. ``grace_period_seconds`` None keeps the pod's own.
    """

    pod: Pod
    verdict: TaintVerdict
    delete: bool = False
    grace_period_seconds: int | None = None


class CheckNode(msgspec.Struct, frozen=True):
    """Read this node afresh: pods newer than the node stream wait for it. Answered by ``NodeChecked``."""

    name: str


class SaveHistory(msgspec.Struct, frozen=True):
    """Write ``text`` into the node's taint-history annotation (empty: remove it). Answered by ``Written``."""

    node: str
    uid: str
    text: str


class SaveLabels(msgspec.Struct, frozen=True):
    """Write these labels of the node, and remove those that are None. Answered by ``Written``."""

    node: str
    uid: str
    labels: dict[str, str | None]


class SaveGuard(msgspec.Struct, frozen=True):
    """Write ``record`` into the policy's status before what it foretells happens. Answered by ``Written``."""

    policy: Policy
    record: GuardRecord


class ClearGuardReset(msgspec.Struct, frozen=True):
    """Remove the annotation that asked for a reset of the guard: it was done, and counts once."""

    policy: Policy


class Scheduled(msgspec.Struct, frozen=True):
    """Notice: the pod will be evicted at ``due_at`` unless something changes."""

    pod: Pod
    verdict: TaintVerdict
    due_at: float


class Cancelled(msgspec.Struct, frozen=True):
    """Notice: an eviction that was scheduled will not happen."""

    pod: Pod
    verdict: TaintVerdict


class Decided(msgspec.Struct, frozen=True):
    """Notice: the pod is due, every limit admits it, and the call is on its way. ``waited`` is for limits, seconds."""

    pod: Pod
    verdict: TaintVerdict
    due_at: float
    waited: float
    limit: str


class Rehearsed(msgspec.Struct, frozen=True):
    """Notice: a DryRun policy would have evicted the pod now."""

    pod: Pod
    verdict: TaintVerdict
    due_at: float


class Evicted(msgspec.Struct, frozen=True):
    """Notice: the API server accepted the eviction, ``lateness`` seconds after the deadline."""

    pod: Pod
    verdict: TaintVerdict
    lateness: float


class Hindered(msgspec.Struct, frozen=True):
    """Notice: the call did not make the pod leave; it is tried again at ``retry_at`` if it still has to."""

    pod: Pod
    verdict: TaintVerdict
    outcome: str
    message: str
    attempts: int
    retry_at: float


class Left(msgspec.Struct, frozen=True):
    """Notice: the pod was gone before we could evict it."""

    pod: Pod
    verdict: TaintVerdict


class InvalidValue(msgspec.Struct, frozen=True):
    """Notice: a taint's value cannot be compared, which concerns pods on the node. ``held``: it evicts no pod."""

    node: str
    node_uid: str
    taint: Taint
    policy: Policy
    held: bool


class NotMirrored(msgspec.Struct, frozen=True):
    """Notice: the node's labels cannot say what ``taint`` does, so they keep pods that compare off the node."""

    node: str
    node_uid: str
    taint: Taint
    reason: str


class Degraded(msgspec.Struct, frozen=True):
    """Notice: pods on this node have to leave because of ``taint``, where none had to before."""

    node: str
    node_uid: str
    taint: Taint
    policy: Policy
    pods: int


class HeldByBudget(msgspec.Struct, frozen=True):
    """Notice: the pod is due, and the API server need not be asked since a budget's status says no.

    ``reason`` names the budgets; ``until``: it is deleted instead then, if its policy wants that.
    """

    pod: Pod
    verdict: TaintVerdict
    reason: str
    until: float | None


class Bounced(msgspec.Struct, frozen=True):
    """Notice: the pod came back to where its workload was evicted by the same taint, and goes, too.

    ``in_a_row``: how many evictions that makes; those that leave together are one.
    """

    pod: Pod
    verdict: TaintVerdict
    in_a_row: int


class HeldAsBouncing(msgspec.Struct, frozen=True):
    """Notice: the pod is due, but its workload came back too often. It is held ``until``; ``reason``: how often."""

    pod: Pod
    verdict: TaintVerdict
    reason: str
    until: float


class GuardTripped(msgspec.Struct, frozen=True):
    """Notice: more pods would be evicted than the guard allows in one window. ``cause`` says which change did it.

    ``waiting`` pods have to leave within the window beside ``evicted`` ones that count already, of ``population``;
    ``limit`` is how many may; ``examples`` are some of them. ``halts``: nothing is evicted until it is armed again.
    """

    policy: Policy
    cause: str
    waiting: int
    evicted: int
    population: int
    limit: int
    examples: tuple[str, ...]
    halts: bool


class GuardArmed(msgspec.Struct, frozen=True):
    """Notice: the cause is gone, or a person reset the guard and so released ``released`` pods."""

    policy: Policy
    released: int | None


class EvictionsHalted(msgspec.Struct, frozen=True):
    """Notice: every zone of the policy is Full, so ``waiting`` pods wait until one is not, or a reset."""

    policy: Policy
    zones: int
    waiting: int


class EvictionsResumed(msgspec.Struct, frozen=True):
    """Notice: not every zone of the policy is Full any more."""

    policy: Policy


class DeadlineAtRisk(msgspec.Struct, frozen=True):
    """Notice: the node is gone at ``hard_at``, before the pod can be gone in order. ``reason`` tells why."""

    pod: Pod
    verdict: TaintVerdict
    hard_at: float
    reason: str


class DeadlineMissed(msgspec.Struct, frozen=True):
    """Notice: the node is gone, or the pod had less time to stop than it asked for. ``reason``: which of them."""

    pod: Pod
    verdict: TaintVerdict
    hard_at: float
    reason: str


class UnreadableHistory(msgspec.Struct, frozen=True):
    """Notice: the node's taint-history annotation, or a part of it, cannot be used, and counts as absent."""

    node: str
    node_uid: str
    reason: str


Notice = (
    Scheduled
    | Cancelled
    | Decided
    | Rehearsed
    | Evicted
    | Hindered
    | Left
    | InvalidValue
    | NotMirrored
    | Degraded
    | HeldByBudget
    | Bounced
    | HeldAsBouncing
    | GuardTripped
    | GuardArmed
    | EvictionsHalted
    | EvictionsResumed
    | DeadlineAtRisk
    | DeadlineMissed
    | UnreadableHistory
)
Write = SaveHistory | SaveLabels | SaveGuard | ClearGuardReset
Order = Evict | CheckNode | Write
Command = Order | Notice
