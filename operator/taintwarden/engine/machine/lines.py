"""A line of pods that wait for the same thing: the next is the first in order, by spread within a workload revision."""

from taintwarden.engine.deadlines import DeadlineQueue, Entry
from taintwarden.engine.machine.pending import Pending
from taintwarden.engine.model import OrderBy, SpreadConstraint
from taintwarden.engine.order import Place
from taintwarden.engine.spread import Group, Spread

REVISION_LABELS = ("pod-template-hash", "controller-revision-hash")
"""What a ReplicaSet of a Deployment, and a StatefulSet or DaemonSet, call the revision of a pod."""

_Key = tuple[Place, str, tuple[str, ...], tuple[SpreadConstraint, ...]]


class Line:
    """Pods in the order in which they go.

    Args:
        spread: who counts pods by topology domain.

    """

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._order = DeadlineQueue()
        self._pods: dict[str, tuple[Pending, _Key | None]] = {}
        self._groups: dict[_Key, Group] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pending: Pending) -> None:
        """Let a pod stand in line at the place it has now."""
        pod, place = pending.pod, pending.place
        key: _Key | None = None
        if pod.shared.spread and pod.shared.owner and OrderBy.TOPOLOGY_SPREAD in pending.policy.eviction.order:
            revision = tuple(pod.shared.labels.get(label, "") for label in REVISION_LABELS)
            key = (place, pod.shared.owner.uid, revision, pod.shared.spread)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = self._spread.group()
            group.add(pod)
        self._pods[pod.uid] = (pending, key)
        self._order.schedule(pod.uid, place.urgency, place.rank)

    def remove(self, uid: str) -> None:
        """Take a pod out, if it is there."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        self._order.cancel(uid)
        pending, key = known
        if key is not None:
            group = self._groups[key]
            group.remove(pending.pod)
            if not len(group):
                del self._groups[key]

    def head(self) -> Entry | None:
        """The place of the next pod, comparable with those of other lines."""
        return self._order.head()

    def first(self) -> Pending | None:
        """The pod whose turn it is."""
        head = self._order.head()
        if head is None:
            return None
        pending, key = self._pods[head.key]
        return pending if key is None else self._pods[self._groups[key].first().uid][0]
