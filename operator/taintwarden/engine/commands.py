"""Commands of the machine: orders, which the loop carries out, and notices, which are only reported.

The garbage collector does not track commands of which a wave has one for every pod: they are many, and none is part of
a cycle.
"""

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.model import Deployment, NodeCondition, Pod, Taint
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy
from taintwarden.engine.records import GuardRecord, Pace, Place


class Evict(msgspec.Struct, frozen=True, gc=False):
    """Evict ``pod``, with its UID as precondition. Answered by :class:`~.events.Settled`.

    ``delete``: use DELETE instead of the Eviction API, in spite of ``past_budgets``, the PodDisruptionBudgets
    (namespace/name) that do not allow it. ``grace_period_seconds``: None keeps the pod's own. ``as_seen``: only if the
    pod has not changed since it was seen not Ready, so that its workload loses nothing. ``deployment``: ask this
    Deployment for a replacement instead; it removes the pod when the replacement is Ready.
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
    """Read a pod whose eviction was accepted but that the stream does not show leaving. Answered by ``PodChecked``."""

    pod: Pod


class CheckNode(msgspec.Struct, frozen=True):
    """Read a node. Due pods wait until the stream has delivered what the read found. Answered by ``NodeChecked``."""

    name: str


class FindWriter(msgspec.Struct, frozen=True):
    """Read who wrote the taint that the ``cause`` of a trip names. Answered by :class:`~.events.WriterFound`."""

    policy: str
    cause: str
    node: str
    key: str


class SaveHistory(msgspec.Struct, frozen=True):
    """Write ``text`` into the node's taint-history annotation (empty: remove it). Answered by ``Written``.

    ``version`` is the resourceVersion of the node on which the decision is based. The write fails if it has changed.
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
    """Write the nodes that may lose pods into the policy's status, before pods leave. Answered by ``Written``."""

    policy: Policy
    places: tuple[Place, ...]
    term: int


class SaveCondition(msgspec.Struct, frozen=True, eq=False):
    """Write the condition ``taintwarden.io/Drained`` of a node; None: remove it. Answered by ``Written``.

    ``version`` is the resourceVersion that the node must have, ``at`` the time. ``changes_status``: False
    if only its reason or message changes.
    """

    node: str
    uid: str
    condition: NodeCondition | None
    version: int
    at: float
    changes_status: bool

    @property
    def says_drained(self) -> bool:
        """True if the condition has the status ``True``."""
        return self.condition is not None and self.condition.is_true


class ClearGuardReset(msgspec.Struct, frozen=True, eq=False):
    """Remove the annotation that requests a reset of the guard. The process that removed it grants it, once.

    No two of them are equal: a request made while another is being removed has to be removed, too, or it would stay for
    the next leader.
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
    """Notice: all limits admit the due pod, and its call is issued. It ``waited`` seconds, last for ``limit``."""

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
    """Notice: a Deployment was asked for a replacement. If the pod still runs at ``until``, it is evicted."""

    pod: Pod
    verdict: TaintVerdict
    deployment: str
    until: float


class EvictionFailed(msgspec.Struct, frozen=True, gc=False):
    """Notice: the call did not evict the pod. It is retried at ``retry_at`` if the pod still has to leave."""

    pod: Pod
    verdict: TaintVerdict
    outcome: Outcome
    message: str
    attempts: int
    retry_at: float


class PodAlreadyGone(msgspec.Struct, frozen=True, gc=False):
    """Notice: the pod was gone before it was evicted."""

    pod: Pod
    verdict: TaintVerdict


class InvalidValue(msgspec.Struct, frozen=True):
    """Notice: a taint's value cannot be compared, which affects pods on the node.

    ``verdict``: the one on some of these pods. ``held``: True if the value evicts no pod, or the last valid one
    decides.
    """

    node: str
    node_uid: str
    verdict: TaintVerdict
    held: bool


class Held(msgspec.Struct, frozen=True, gc=False):
    """Notice: the pod is due, and no call is made.

    Its PodDisruptionBudgets, which ``reason`` names, do not allow it; at ``until`` the pod is deleted instead, if its
    policy specifies that. If the pod ``is_bouncing``, it waits until ``until``, and ``reason`` states how often its
    workload came back.
    """

    pod: Pod
    verdict: TaintVerdict
    reason: str
    until: float | None
    is_bouncing: bool = False


class BadNode(msgspec.Struct, frozen=True):
    """A node, its current taint, and the value ``before`` if pods leave because the value changed."""

    name: str
    taint: Taint
    before: str | None = None


class BadNodes(msgspec.Struct, frozen=True):
    """Number of bad nodes, and the first of them by name."""

    number: int = 0
    named: tuple[BadNode, ...] = ()


class GuardReport(msgspec.Struct, frozen=True):
    """State of a policy's guard: its record, whether it ``halts`` evictions now, and the numbers that it compares."""

    record: GuardRecord
    halts: bool
    due: int
    """Pods that have to leave within the window, as far as budgets allow it."""
    evicted: int
    """Evictions of the last window."""
    allowance: int
    """Maximum number of evictions within a window."""
    window_seconds: float = 0.0
    bad: BadNodes = BadNodes()
    """Nodes that make pods leave while the guard is tripped."""
    scope: str = ""
    """Namespace that it holds; empty if it holds all pods."""
    pace: Pace | None = None
    """Progress of a tripped guard with ``action: Pace``."""
    pruned: tuple[str, ...] = ()
    """Fields of its record that the API server does not store."""


class GuardTripped(msgspec.Struct, frozen=True):
    """Notice: more pods would be evicted than the guard allows in one window."""

    policy: Policy
    guard: GuardReport


class GuardArmed(msgspec.Struct, frozen=True):
    """Notice: a person reset the guard, which released ``released`` pods; None: the cause is gone."""

    policy: Policy
    released: int | None


class DeadlineMissed(msgspec.Struct, frozen=True):
    """Notice: the node was removed, or the pod had less time to stop than it specifies, as ``reason`` states."""

    pod: Pod
    verdict: TaintVerdict
    hard_at: float
    reason: str


class EndsWithNode(msgspec.Struct, frozen=True):
    """Notice: the pod opts out of evictions, as ``reason`` states, so it ends when its node is removed."""

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
    | EvictionFailed
    | PodAlreadyGone
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
