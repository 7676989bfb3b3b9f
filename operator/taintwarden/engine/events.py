"""Events of the machine. Every input is one of these values; nothing else changes its state."""

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from taintwarden.engine.commands import FindWriter, Write
from taintwarden.engine.model import Budget, Deployment, Node, Pod, Profile, Revision, WorkloadKey
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy
from taintwarden.engine.records import GuardRecord, Place


class NodeSeen(msgspec.Struct, frozen=True):
    """A node was listed, added or modified.

    ``listed``: True if a list contained it. A list replaces what is known, whatever its version, and may follow a gap.
    """

    node: Node
    listed: bool = False


class NodeGone(msgspec.Struct, frozen=True):
    """A node was deleted."""

    name: str


class NodesListed(msgspec.Struct, frozen=True):
    """A complete list of nodes ended. Nodes that it lacks were deleted in a gap.

    ``resource_version`` is that of the list. Nodes are known up to it, and no further.
    """

    names: frozenset[str]
    resource_version: int = -1


class NodesReached(msgspec.Struct, frozen=True):
    """The node stream has delivered everything up to this resourceVersion."""

    resource_version: int


class NodeUnreadable(msgspec.Struct, frozen=True):
    """The newest version of a node cannot be decoded: its known state is out of date."""

    name: str


class NodeChecked(msgspec.Struct, frozen=True):
    """A :class:`~.commands.CheckNode` found this version; None: the node is gone, or nothing answered.

    The read began when pods had reached ``pods_version``. Only the stream changes the known state: it may be behind the
    read, and still has to deliver the versions before it.
    """

    name: str
    version: int | None = None
    pods_version: int = -1


class PodChecked(msgspec.Struct, frozen=True):
    """A :class:`~.commands.CheckPod` was answered.

    ``runs``: False if the pod terminates or is gone; None if no answer came. Only the stream changes what is known.
    """

    uid: str
    runs: bool | None


class ViewChanged(msgspec.Struct, frozen=True):
    """A stream has delivered all that the API server had (``live``), or is cut off from it."""

    stream: str
    live: bool


class PodSeen(msgspec.Struct, frozen=True):
    """A bound pod that does not terminate, has not finished and is no mirror pod was listed, added or modified."""

    pod: Pod


class PodsSeen(msgspec.Struct, frozen=True):
    """The pods of :class:`PodSeen` that are on one page of a list: one step for all of them."""

    pods: tuple[Pod, ...]


class PodGone(msgspec.Struct, frozen=True):
    """A pod was deleted, is terminating, has finished, or is a mirror pod: there is nothing to evict.

    ``until``: time at which a terminating pod should be gone from its node. ``pod``: the terminating pod.
    """

    uid: str
    node: str
    until: float | None = None
    pod: Pod | None = None


class PodsListed(msgspec.Struct, frozen=True):
    """A complete list of pods, as of ``resource_version``, ended. Pods that it lacks were deleted in a gap.

    ``nodes``: UID of each pod -> its node. After a restore of etcd a pod may be bound to another one.
    """

    nodes: Mapping[str, str]
    resource_version: int = -1


class NamespaceSeen(msgspec.Struct, frozen=True):
    """A namespace was listed, added or modified; ``labels`` None: it was deleted."""

    name: str
    labels: dict[str, str] | None = None


class WorkloadSeen(msgspec.Struct, frozen=True):
    """A controller of pods (ReplicaSet, StatefulSet, ...) wants ``replicas`` pods; None: deleted, or undecodable.

    ``labels``: those of its pod template that policies name in ``perWorkload.label``, with their values.
    ``revision``: set for a ReplicaSet that a Deployment controls, if a policy asks Deployments for replacements.
    """

    workload: WorkloadKey
    replicas: int | None = None
    labels: tuple[tuple[str, str], ...] = ()
    revision: Revision | None = None


class DeploymentSeen(msgspec.Struct, frozen=True):
    """A Deployment was listed, added or modified."""

    deployment: Deployment


class DeploymentGone(msgspec.Struct, frozen=True):
    """A Deployment was deleted, cannot be decoded, or is not followed any more."""

    namespace: str
    uid: str


class DeploymentsKnown(msgspec.Struct, frozen=True):
    """The stream of Deployments has delivered all that the API server had, or not. ``problem``: why it is refused."""

    is_known: bool
    problem: str = ""


class BudgetSeen(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget was listed, added or modified."""

    budget: Budget


class BudgetGone(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget was deleted, or selects no pods any more."""

    namespace: str
    name: str


class SourceEvent(msgspec.Struct, frozen=True):
    """Base of events that a stream of a source of taints delivers. Only the source reads them."""


class GuardRestored(msgspec.Struct, frozen=True):
    """A policy has this guard record in its status, which any leader stored, perhaps this process."""

    policy: str
    record: GuardRecord


class PlacesRestored(msgspec.Struct, frozen=True):
    """A policy has these nodes with places in its status, which any leader stored, perhaps this process."""

    policy: str
    places: tuple[Place, ...]


class GuardReset(msgspec.Struct, frozen=True):
    """A person requests the release of pods that a tripped guard holds, or that wait as all nodes are unhealthy."""

    policy: str


class WriterFound(msgspec.Struct, frozen=True):
    """A :class:`~.commands.FindWriter` was answered. ``writer``: a clause about who wrote the node's taints last."""

    order: FindWriter
    writer: str


class PoliciesChanged(msgspec.Struct, frozen=True):
    """Other policies are in force. ``policies``: all that are valid."""

    policies: tuple[Policy, ...]


class ProfileSeen(msgspec.Struct, frozen=True):
    """A profile of tolerations that is valid and counts is new, or has changed."""

    profile: Profile


class ProfileGone(msgspec.Struct, frozen=True):
    """A profile of tolerations was deleted, or does not count any more."""

    namespace: str
    name: str


class Synced(msgspec.Struct, frozen=True):
    """Policies, profiles, namespaces, controllers, budgets, nodes and pods are known: decisions may begin."""


class LeadershipChanged(msgspec.Struct, frozen=True):
    """The process may act, or may not any more. A follower computes, but issues no command that writes.

    ``term`` counts the changes of the leader.
    """

    leading: bool
    term: int = 0


class LeaseRenewal(msgspec.Struct, frozen=True):
    """The last renewal of the Lease succeeded, or it failed or has had no answer for 2 s.

    No tenant can shape this request, so it shows whether the API server works.
    """

    succeeded: bool


class Settled(msgspec.Struct, frozen=True):
    """An :class:`~.commands.Evict` ended. ``message`` and ``retry_after`` (seconds) are from the API server."""

    uid: str
    outcome: Outcome
    message: str = ""
    retry_after: float | None = None


class WriteOutcome(StrEnum):
    """How a write ended."""

    DONE = "done"
    GONE = "gone"
    """The object is gone, or another one has its name."""
    REFUSED = "refused"
    """403, 422 and other client errors: permanent until a person changes something."""
    OUTDATED = "outdated"
    """409: the object has changed since the version on which the write was based; or its node has unknown pods."""
    FAILED = "failed"
    """Time-out, 5xx, 429 or a lost connection: the write may or may not have been carried out."""


class Written(msgspec.Struct, frozen=True):
    """A write ended. ``order`` is the object of the command that requested it.

    ``version``: resourceVersion of the object after the write; -1 if it is not known. A history or condition counts
    when the stream delivers it, a record at once. ``error``: why the write failed. ``pruned``: fields of a guard's
    record that the API server does not store.
    """

    order: Write
    outcome: WriteOutcome
    version: int = -1
    error: str = ""
    pruned: tuple[str, ...] = ()


class Tick(msgspec.Struct, frozen=True):
    """The time that ``wake_after`` returned has passed."""


Event = (
    NodeSeen
    | NodeGone
    | NodesListed
    | NodesReached
    | NodeUnreadable
    | NodeChecked
    | PodChecked
    | ViewChanged
    | PodSeen
    | PodsSeen
    | PodGone
    | PodsListed
    | NamespaceSeen
    | WorkloadSeen
    | DeploymentSeen
    | DeploymentGone
    | DeploymentsKnown
    | BudgetSeen
    | BudgetGone
    | SourceEvent
    | GuardRestored
    | PlacesRestored
    | GuardReset
    | WriterFound
    | PoliciesChanged
    | ProfileSeen
    | ProfileGone
    | Synced
    | LeadershipChanged
    | LeaseRenewal
    | Settled
    | Written
    | Tick
)

Feed = Callable[[Event], None]
"""Feeds an event into the machine: ``Loop.feed``."""
