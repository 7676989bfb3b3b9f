"""What the machine asks for. The loop carries commands out; notices only tell people."""

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits.guard import GuardRecord
from taintwarden.engine.model import Pod, Policy, Taint


class Evict(msgspec.Struct, frozen=True):
    """Make ``pod`` leave, with its UID as precondition; answered by :class:`~.events.Settled`.

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
    """Write ``text`` into the node's taint-history annotation (empty: remove it). Answered by ``HistorySaved``."""

    node: str
    uid: str
    text: str


class MirrorTaints(msgspec.Struct, frozen=True):
    """Write these labels of the node, and remove those that are None. Answered by ``TaintsMirrored``."""

    node: str
    uid: str
    labels: dict[str, str | None]


class SaveGuard(msgspec.Struct, frozen=True):
    """Write ``record`` into the policy's status before what it foretells happens. Answered by ``GuardSaved``."""

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
    """Notice: a taint's value cannot be compared, which concerns pods on the node. ``held``: it evicts nobody."""

    node: str
    node_uid: str
    taint: Taint
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


class GuardOpened(msgspec.Struct, frozen=True):
    """Notice: more pods would have to leave than the guard lets go in one window. ``cause`` tells which change did it.

    ``pods`` would have gone, of ``population``; ``limit`` is how many may; ``examples`` are some of them. ``halts``:
    nothing is evicted until it closes.
    """

    policy: Policy
    cause: str
    pods: int
    population: int
    limit: int
    examples: tuple[str, ...]
    halts: bool


class GuardClosed(msgspec.Struct, frozen=True):
    """Notice: the cause is gone, or somebody reset the guard and so let ``accepted`` pods go."""

    policy: Policy
    accepted: int | None


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
    """Notice: the node's taint-history annotation could not be read and counts as absent."""

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
    | GuardOpened
    | GuardClosed
    | DeadlineAtRisk
    | DeadlineMissed
    | UnreadableHistory
)
Command = Evict | CheckNode | SaveHistory | MirrorTaints | SaveGuard | ClearGuardReset | Notice
