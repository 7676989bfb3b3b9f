"""What can happen to the machine. Every input is one of these values; nothing else changes its state."""

from enum import StrEnum

import msgspec

from taintwarden.engine.limits.guard import GuardRecord
from taintwarden.engine.model import Budget, Node, Pod, Policy, Profile


class NodeSeen(msgspec.Struct, frozen=True):
    """A node was listed, added or modified."""

    node: Node


class NodeGone(msgspec.Struct, frozen=True):
    """A node was deleted."""

    name: str


class NodesListed(msgspec.Struct, frozen=True):
    """A complete list of nodes ended: what it did not name was deleted unseen."""

    names: frozenset[str]


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
    """Whether what a stream tells is up to date, or it is cut off from the API server."""

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
    """A complete list of pods ended: what it did not name was deleted unseen."""

    uids: frozenset[str]


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
    """What was saved of a policy's guard by whoever led before."""

    policy: str
    record: GuardRecord


class GuardReset(msgspec.Struct, frozen=True):
    """A person looked at what an open guard holds, and lets it go."""

    policy: str


class GuardSaved(msgspec.Struct, frozen=True):
    """A :class:`~.commands.SaveGuard` ended, well or not."""

    policy: str
    succeeded: bool


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
    """500, more than one PodDisruptionBudget: permanent until somebody mends it."""
    REFUSED = "refused"
    """403, 422 and other client errors: permanent until somebody mends it."""
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


class HistorySaved(msgspec.Struct, frozen=True):
    """A :class:`~.commands.SaveHistory` ended, well or not."""

    node: str
    succeeded: bool


class TaintsMirrored(msgspec.Struct, frozen=True):
    """A :class:`~.commands.MirrorTaints` ended, well or not."""

    node: str
    succeeded: bool


class Woke(msgspec.Struct, frozen=True):
    """Time passed: the machine's ``wake_at`` was reached."""


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
    | GuardSaved
    | PoliciesChanged
    | ProfileSeen
    | ProfileGone
    | Synced
    | LeadershipChanged
    | Settled
    | HistorySaved
    | TaintsMirrored
    | Woke
)
