"""``concurrentNodes``, the maximum nodes that lose pods at once. A node from which pods may leave has a *place*.

A node takes a place with the first call for one of its pods, and the place is stored before that call. The node keeps
the place until it is drained, or until no pod has left it for too long while others wait, which ``machine.placing``
observes. A free place is for the first of the nodes that wait: those that have begun, then those that wait longest.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Limit
from taintwarden.engine.limits.refusal import PLACE, Refusal, RefusalScope
from taintwarden.engine.model import Instant, Pod, WallTime
from taintwarden.engine.policy import Mode, Policy
from taintwarden.engine.records import Place

NAMED = 3
"""Maximum nodes that a sentence names."""
STORING = "the place of its node is stored first"


class Nodes:
    """The nodes of one policy: those with a place, and those that wait.

    Args:
        policy: name of the policy.
        freed: receives the keys of nodes whose pods may be evicted.
        stored: the stored places.

    """

    def __init__(self, policy: str, freed: FreedKeys, stored: Iterable[Place] = ()) -> None:
        self._policy = policy
        self._freed = freed
        self.most = 0
        """Maximum nodes with a place. Set before pods are evicted."""
        self.stored = {place.node: place for place in stored}
        self.held = dict(self.stored)
        self.idle: dict[str, float] = {}
        """Node -> seconds in which no pod left the node while others waited."""
        self.ending: dict[str, None] = {}
        """Nodes whose place ends when their calls in progress have ended. No other call is made for their pods."""
        self.begun: dict[str, None] = dict.fromkeys(self.held)
        """Nodes that have, or had, a place and are not drained."""
        self.waiting: dict[str, None] = {}
        """Nodes with a pod that waits for nothing but a place. Those that have waited longest come first."""
        self.passed_over: dict[str, None] = {}
        """Nodes that another limit held at the last check, so that all others come before them."""
        self.is_new = False
        """True if the limit was added while the policy was in effect: pods may leave more nodes than it allows."""
        self.changed = True
        """True if a pod has left or stays: a node may be drained."""
        self.others_wait = False
        """True if a pod waited for nothing but a place at the last check."""

    @property
    def free(self) -> int:
        """Number of free places."""
        return max(0, self.most - len(self.held))

    def restart(self, stored: Iterable[Place] | None = None) -> None:
        """Keep only the stored places, since another process may have acted. ``stored`` None: they are known."""
        if stored is not None:
            self.stored, self.is_new = {place.node: place for place in stored}, False
        for node in [*self.waiting, *self.held]:
            self.retry(node)
        self.held, self.begun = dict(self.stored), dict.fromkeys([*self.begun, *self.stored])
        self.waiting, self.idle, self.ending, self.changed = {}, {}, {}, True

    def retry(self, node: str) -> None:
        """Retry the pods of a node."""
        self._freed.add(key(self._policy, node))

    def take(self, node: str, now: WallTime) -> None:
        """Give a node a place. No pod leaves the node before the place is stored."""
        self.waiting.pop(node, None)
        self.held[node], self.begun[node] = Place(node, now), None

    def end(self, node: str) -> None:
        """End the place of a node."""
        del self.held[node]
        self.idle.pop(node, None)
        self.ending.pop(node, None)
        self.retry(node)

    def pass_over(self, node: str) -> None:
        """Move a node to the end of the nodes that wait, even if it has begun."""
        self.waiting[node] = self.waiting.pop(node)
        self.passed_over[node] = None

    def note_saved(self, places: Iterable[Place]) -> None:
        """Note that these places, and no others, are stored."""
        before, self.stored = self.stored, {one.node: one for one in places}
        for node, place in self.stored.items():
            if before.get(node) != place:
                self.retry(node)

    def admit(self, node: str, now: Instant) -> Refusal | None:
        """Refuse pods of a node without a stored place. The node takes a free place if it is its turn."""
        place = self.held.get(node)
        if place is not None and self.stored.get(node) == place and node not in self.ending:
            return None
        if place is None:
            self.waiting.setdefault(node, None)
            if node not in islice(self.in_order(), self.free):
                return Refusal(PLACE, None, RefusalScope.PODS, key(self._policy, node))
            self.take(node, now.wall)
        return Refusal(PLACE, None, RefusalScope.PODS, key(self._policy, node), STORING, is_brief=True)

    def in_order(self) -> Iterator[str]:
        """Iterate over the nodes that wait: those that have begun, then those that have waited longest."""
        first = {node: None for node in self.begun if node in self.waiting and node not in self.passed_over}
        yield from first
        yield from (node for node in self.waiting if node not in first)

    def describe_wait(self, node: str) -> str:
        """Return why a node waits, in one sentence."""
        named = ", ".join([*self.held][:NAMED]) + f" and {len(self.held) - NAMED} more" * (len(self.held) > NAMED)
        holding = f"{named} {'loses' if len(self.held) == 1 else 'lose'} pods now; " if named else ""
        wait = "1 node waits" if len(self.waiting) == 1 else f"{len(self.waiting)} nodes wait"
        return f"node {node} waits for a place: {holding}{wait}"


class Places(Limit):
    """The nodes of each policy with ``concurrentNodes``, except for policies in DryRun or with ``reclaim``.

    Args:
        freed: receives the keys of nodes whose pods may be evicted.

    """

    def __init__(self, freed: FreedKeys) -> None:
        self._freed = freed
        self.by_policy: dict[str, Nodes] = {}
        self._uids: dict[str, str] = {}
        """UIDs of the policies in effect, by name."""
        self._restored: dict[str, tuple[Place, ...]] = {}
        """Stored places of policies that are not in effect yet, by name."""
        self._called: set[str] = set()
        """UIDs of pods with a call that may evict them."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed limits at once. Nodes keep their places even if fewer are allowed."""
        del now
        known, before, self.by_policy, self._uids = self.by_policy, self._uids, {}, {}
        for policy in policies:
            name, is_same = policy.name, before.get(policy.name) == policy.uid
            self._uids[name] = policy.uid
            stored = self._restored.pop(name, ())
            if not self.concerns(policy):
                continue
            nodes = known.get(name) if is_same else None
            if nodes is None:
                nodes = Nodes(name, self._freed, () if name in before else stored)
                nodes.is_new = is_same
            self.by_policy[name] = nodes
        if not self.by_policy:  # an unused limit does not learn of calls that end
            self._called.clear()

    def concerns(self, policy: Policy) -> bool:
        """Return True if the policy limits nodes, is not in DryRun and has no ``reclaim``."""
        limits_nodes = policy.limits.concurrent_nodes is not None
        return limits_nodes and policy.reclaim is None and policy.mode is not Mode.DRY_RUN

    def keep(self, policy: str, places: tuple[Place, ...]) -> None:
        """Apply the places that another process stored."""
        if (nodes := self.by_policy.get(policy)) is not None:
            nodes.restart(places)
        elif policy not in self._uids:
            self._restored[policy] = places

    def restart(self) -> None:
        """Drop places that are not stored, since this process begins to lead."""
        for nodes in self.by_policy.values():
            nodes.restart()

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod whose node has no stored place."""
        return self.by_policy[request.policy.name].admit(request.pod.node, request.now)

    def reserve(self, request: EvictionRequest) -> None:
        """Note that a call for the pod is made."""
        self._called.add(request.pod.uid)

    def stay(self, uid: str) -> None:
        """Note that no call for the pod is in progress, or that the pod no longer has to leave."""
        self._called.discard(uid)
        for nodes in self.by_policy.values():
            nodes.changed = True

    def gone(self, pod: Pod, now: Instant) -> None:
        """Note that a called pod has left: its node is not idle, unless the pod was bound after the place was taken."""
        del now
        is_called = pod.uid in self._called
        self.stay(pod.uid)
        for nodes in self.by_policy.values() if is_called else ():
            place = nodes.held.get(pod.node)
            if place is not None and pod.bound_at <= place.since:
                nodes.idle.pop(pod.node, None)


def key(policy: str, node: str) -> str:
    """Return the key of a refusal, shared by the pods of a policy on the node."""
    return f"place/{policy}/{node}"
