"""What can happen to the machine. Every input is one of these values; nothing else changes its state."""

from enum import StrEnum

import msgspec

from taintwarden.engine.limits.guard import GuardRecord
from taintwarden.engine.machine.commands import Write
from taintwarden.engine.model import Budget, Node, Pod, Policy, Profile


class NodeSeen(msgspec.Struct, frozen=True):
    """A node was listed, added or modified.

    ``listed``: by a list, which replaces what is known whatever its version, and may follow a gap.
    """

    node: Node
    listed: bool = False


class NodeGone(msgspec.Struct, frozen=True):
    """A node was deleted."""

    name: str


class NodesListed(msgspec.Struct, frozen=True):
    """A complete list of nodes ended: what it did not name was deleted unseen.

    ``resource_version`` is the list's: from here on nodes are known up to it, and no further.
    """

    names: frozenset[str]
    resource_version: int = -1


class NodesReached(msgspec.Struct, frozen=True):
    """The node stream has delivered everything up to this resourceVersion."""

    resource_version: int


class NodeChecked(msgspec.Struct, frozen=True):
    """A :class:`~.commands.CheckNode` was answered by a fresh read; ``node`` None: it is gone.

    The read began when the streams had reached ``resource_version``, so it is at least as new.
    """

    name: str
    node: Node | None
    resource_version: int


class CheckFailed(msgspec.Struct, frozen=True):
    """A :class:`~.commands.CheckNode` got no answer."""

    name: str


class ViewChanged(msgspec.Struct, frozen=True):
    """Whether a stream has delivered all that the API server had, or is cut off from it."""

    stream: str
    live: bool


class PodSeen(msgspec.Struct, frozen=True):
    """A running pod was listed, added or modified."""

    pod: Pod


class PodGone(msgspec.Struct, frozen=True):
    """A pod was deleted, is terminating, or finished: nothing is left to evict.

    ``until``: it is terminating, and stays on its node until then at the latest if that works.
    """

    uid: str
    node: str
    until: float | None = None


class PodsListed(msgspec.Struct, frozen=True):
    """A complete list of pods ended, as of ``resource_version``: what it did not name was deleted unseen."""

    uids: frozenset[str]
    resource_version: int = -1


class NamespaceSeen(msgspec.Struct, frozen=True):
    """A namespace was listed, added or modified."""

    name: str
    labels: dict[str, str]


class NamespaceGone(msgspec.Struct, frozen=True):
    """A namespace was deleted."""

    name: str


class WorkloadSeen(msgspec.Struct, frozen=True):
    """A controller of pods (ReplicaSet, StatefulSet, ...) wants ``replicas`` pods."""

    uid: str
    replicas: int


class WorkloadGone(msgspec.Struct, frozen=True):
    """A controller of pods was deleted."""

    uid: str


class BudgetSeen(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget was listed, added or modified."""

    budget: Budget


class BudgetGone(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget was deleted."""

    namespace: str
    name: str


class GuardRestored(msgspec.Struct, frozen=True):
    """What the process that led before has saved of a policy's guard."""

    policy: str
    record: GuardRecord


class GuardReset(msgspec.Struct, frozen=True):
    """A person has seen which pods a tripped guard, or unhealthy zones, are holding, and releases them.

    ``reset`` is the text of the request, which counts once until it is taken off; empty: it was taken off.
    """

    policy: str
    reset: str


class PoliciesChanged(msgspec.Struct, frozen=True):
    """All policies in force, valid ones only."""

    policies: tuple[Policy, ...]


class ProfileSeen(msgspec.Struct, frozen=True):
    """A profile of tolerations was listed, added or modified; valid ones only."""

    profile: Profile


class ProfileGone(msgspec.Struct, frozen=True):
    """A profile of tolerations was deleted."""

    namespace: str
    name: str


class Synced(msgspec.Struct, frozen=True):
    """Policies, profiles, namespaces, nodes and pods are known: deciding may begin."""


class LeadershipChanged(msgspec.Struct, frozen=True):
    """Whether this process may act. Without it the machine follows and computes but issues no command that writes."""

    leading: bool


class Outcome(StrEnum):
    """How an eviction call ended, as far as the machine must know."""

    EVICTED = "evicted"
    GONE = "gone"
    """404, or 409 on the UID: the pod that was decided on does not exist any more."""
    BLOCKED = "blocked"
    """429 by a PodDisruptionBudget."""
    THROTTLED = "throttled"
    """429 by the API server's flow control."""
    MISCONFIGURED = "misconfigured"
    """500, more than one PodDisruptionBudget: permanent until a person changes something."""
    REFUSED = "refused"
    """403, 422 and other client errors: permanent until a person changes something."""
    FAILED = "failed"
    """Timeout, 5xx or a lost connection: the call may or may not have been carried out."""
    NOT_LEADING = "not-leading"
    """The lease was not held at the moment of the call, which was not made."""


class Settled(msgspec.Struct, frozen=True):
    """An :class:`~.commands.Evict` ended. ``message`` is the API server's; ``retry_after`` its wish in seconds."""

    uid: str
    outcome: Outcome
    message: str = ""
    retry_after: float | None = None


class WriteOutcome(StrEnum):
    """How a write ended."""

    DONE = "done"
    GONE = "gone"
    """The object is not there any more, or another one has its name."""
    REFUSED = "refused"
    """403, 422 and other client errors: permanent until a person changes something."""
    FAILED = "failed"
    """Time-out, 5xx, 429 or a lost connection: the write may or may not have been carried out."""


class Written(msgspec.Struct, frozen=True):
    """A write ended. ``order`` is the very command that asked for it."""

    order: Write
    outcome: WriteOutcome


class Woke(msgspec.Struct, frozen=True):
    """Time passed: what ``wake_after`` said is over."""


Event = (
    NodeSeen
    | NodeGone
    | NodesListed
    | NodesReached
    | NodeChecked
    | CheckFailed
    | ViewChanged
    | PodSeen
    | PodGone
    | PodsListed
    | NamespaceSeen
    | NamespaceGone
    | WorkloadSeen
    | WorkloadGone
    | BudgetSeen
    | BudgetGone
    | GuardRestored
    | GuardReset
    | PoliciesChanged
    | ProfileSeen
    | ProfileGone
    | Synced
    | LeadershipChanged
    | Settled
    | Written
    | Woke
)
