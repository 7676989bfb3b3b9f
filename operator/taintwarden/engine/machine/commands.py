"""The commands of the machine: orders, which the loop carries out, and notices, which are only reported.

Those about one pod are not tracked by the garbage collector: a wave has one of each for every pod, and none is part of
a cycle.
"""

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.guard import GuardRecord, Pace
from taintwarden.engine.limits.places import Place
from taintwarden.engine.model import Deployment, NodeCondition, Pod, Policy, Taint
from taintwarden.engine.outcomes import Outcome


class Evict(msgspec.Struct, frozen=True, gc=False):
    """Evict ``pod``, with its UID as precondition; answered by :class:`~.events.Settled`.

    ``delete`` uses DELETE instead of the Eviction API, in spite of ``past_budgets``: the PodDisruptionBudgets
    (namespace/name) that do not allow it. ``grace_period_seconds`` None keeps the pod's own. ``as_seen``: only if the
    pod has not changed since: it was not Ready, so its workload loses nothing by it. ``deployment``: ask it for a
    replacement instead, after which it removes the pod itself.
    """

    pod: Pod
    verdict: TaintVerdict
    delete: bool = False
    grace_period_seconds: int | None = None
    term: int = 0
    as_seen: bool = False
    past_budgets: tuple[str, ...] = ()
    deployment: Deployment | None = None


class CheckPod(msgspec.Struct, frozen=True):
    """Read this pod, whose eviction was accepted and whose end the stream has not shown. Answered by ``PodChecked``."""

    pod: Pod


class CheckNode(msgspec.Struct, frozen=True):
    """Read this node: due pods wait until the stream has delivered what is there. Answered by ``NodeChecked``."""

    name: str


class FindWriter(msgspec.Struct, frozen=True):
    """Read who wrote the taint that the ``cause`` of a trip names. Answered by :class:`~.events.WriterFound`."""

    policy: str
    cause: str
    node: str
    key: str


class SaveHistory(msgspec.Struct, frozen=True):
    """Write ``text`` into the node's taint-history annotation (empty: remove it). Answered by ``Written``.

    ``version`` is the resourceVersion of the object on which the decision is based, and has to be that of the stored
    one.
    """

    node: str
    uid: str
    text: str
    version: int = -1


class SaveGuard(msgspec.Struct, frozen=True):
    """Write ``record`` into the policy's status before the evictions that it reserves. Answered by ``Written``."""

    policy: Policy
    record: GuardRecord


class SavePlaces(msgspec.Struct, frozen=True):
    """Write the nodes that may lose pods into the policy's status, before they do. Answered by ``Written``."""

    policy: Policy
    places: tuple[Place, ...]
    term: int


class SaveCondition(msgspec.Struct, frozen=True, eq=False):
    """Write the condition ``taintwarden.io/Drained`` of a node; None: remove it. Answered by ``Written``.

    ``version`` is the resourceVersion that the node must have, ``at`` the time. ``is_other``: the status changes.
    """

    node: str
    uid: str
    condition: NodeCondition | None
    version: int
    at: float
    is_other: bool

    @property
    def says_drained(self) -> bool:
        """True if the condition has the status ``True``."""
        return self.condition is not None and self.condition.is_true


class ClearGuardReset(msgspec.Struct, frozen=True, eq=False):
    """Remove the annotation that requests a reset of the guard: who removed it grants it, once.

    None equals another: a request that comes while one is removed is one more, and would stay for the next leader.
    """

    policy: Policy


class Scheduled(msgspec.Struct, frozen=True, gc=False):
    """Notice: the pod will be evicted at ``due_at`` unless something changes."""

    pod: Pod
    verdict: TaintVerdict
    due_at: float


class Cancelled(msgspec.Struct, frozen=True, gc=False):
    """Notice: a scheduled eviction will not happen. ``node_gone``: the node was deleted, so no taint evicts the pod."""

    pod: Pod
    verdict: TaintVerdict
    node_gone: bool = False


class Decided(msgspec.Struct, frozen=True, gc=False):
    """Notice: the pod is due, all limits admit it, and the call is issued. ``waited``: seconds it waited for limits."""

    pod: Pod
    verdict: TaintVerdict
    due_at: float
    waited: float
    limit: str


class Rehearsed(msgspec.Struct, frozen=True, gc=False):
    """Notice: a DryRun policy would have evicted the pod now."""

    pod: Pod
    verdict: TaintVerdict
    due_at: float


class Evicted(msgspec.Struct, frozen=True, gc=False):
    """Notice: the pod is seen to leave after an eviction call, ``lateness`` seconds after the deadline.

    ``past_budgets``: it was deleted in spite of these PodDisruptionBudgets.
    """

    pod: Pod
    verdict: TaintVerdict
    lateness: float
    past_budgets: tuple[str, ...] = ()


class ReplacementAsked(msgspec.Struct, frozen=True, gc=False):
    """Notice: a Deployment was asked to start the pod's replacement. The pod is evicted ``until`` then if it runs."""

    pod: Pod
    verdict: TaintVerdict
    deployment: str
    until: float


class Hindered(msgspec.Struct, frozen=True, gc=False):
    """Notice: the call did not evict the pod; it is retried at ``retry_at`` if the pod still has to leave."""

    pod: Pod
    verdict: TaintVerdict
    outcome: Outcome
    message: str
    attempts: int
    retry_at: float


class Left(msgspec.Struct, frozen=True, gc=False):
    """Notice: the pod was gone before it was evicted."""

    pod: Pod
    verdict: TaintVerdict


class InvalidValue(msgspec.Struct, frozen=True):
    """Notice: a taint's value cannot be compared, which affects pods on the node.

    ``verdict``: on some of them. ``held``: it evicts no pod, or its last valid value decides.
    """

    node: str
    node_uid: str
    verdict: TaintVerdict
    held: bool


class Held(msgspec.Struct, frozen=True, gc=False):
    """Notice: the pod is due, and no call is made.

    The status of a budget does not allow it, and ``reason`` names the budgets: the pod is deleted instead ``until``
    then, if its policy specifies that. Or it ``is_bouncing``: it waits ``until`` then, and ``reason`` says how often it
    came back.
    """

    pod: Pod
    verdict: TaintVerdict
    reason: str
    until: float | None
    is_bouncing: bool = False


class BadNode(msgspec.Struct, frozen=True):
    """A node, its taint as it is now, and the value ``before``, if pods leave since it is another one."""

    name: str
    taint: Taint
    before: str | None = None


class BadNodes(msgspec.Struct, frozen=True):
    """So many nodes, and the first of them by name."""

    number: int = 0
    named: tuple[BadNode, ...] = ()


class GuardReport(msgspec.Struct, frozen=True):
    """The guard of a policy: its record, and what it compares now."""

    record: GuardRecord
    halts: bool
    due: int
    """Pods that have to leave within the window, as far as budgets allow them."""
    evicted: int
    """Evictions of the last window."""
    allowance: int
    """How many may be evicted within a window."""
    window_seconds: float = 0.0
    bad: BadNodes = BadNodes()
    """The nodes that make pods leave while it is tripped."""
    scope: str = ""
    """The namespace that it holds; empty: all pods."""
    pace: Pace | None = None
    """What it lets leave while it is tripped, with ``action: Pace``."""
    pruned: tuple[str, ...] = ()
    """Fields of its record that the API server does not store."""


class GuardTripped(msgspec.Struct, frozen=True):
    """Notice: more pods would be evicted than the guard allows in one window."""

    policy: Policy
    guard: GuardReport


class GuardArmed(msgspec.Struct, frozen=True):
    """Notice: the cause is gone, or a person reset the guard, which released ``released`` pods."""

    policy: Policy
    released: int | None


class DeadlineMissed(msgspec.Struct, frozen=True):
    """Notice: the node was removed, or the pod had less time to stop than it specifies. ``reason``: which of them."""

    pod: Pod
    verdict: TaintVerdict
    hard_at: float
    reason: str


class EndsWithNode(msgspec.Struct, frozen=True):
    """Notice: the pod opts out of evictions, so it ends when its node is removed. ``reason``: how it opts out."""

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
    | ReplacementAsked
    | Hindered
    | Left
    | InvalidValue
    | Held
    | GuardTripped
    | GuardArmed
    | DeadlineMissed
    | EndsWithNode
    | UnreadableHistory
)
Write = SaveHistory | SaveCondition | SaveGuard | SavePlaces | ClearGuardReset
Order = Evict | CheckPod | CheckNode | FindWriter | Write
Command = Order | Notice
