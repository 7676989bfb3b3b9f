"""Pods that wait to be evaluated again, in two queues.

*Nodes* are evaluated again as a whole when policies change, at the start, for a new leader, and if a source or a write
requires it. No pod is evicted before that is complete: the guard has to count the whole wave.

*Shares* are the pods of one namespace by node, after a change of its profiles, budgets or labels, or of a node that
changes too often. Only these pods wait for the evaluation. Namespaces take turns, and each of them is evaluated at most
once a second, so that a tenant whose profiles change all the time delays no other.
"""

from collections.abc import Iterable, Iterator

from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.source import pending_key
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, MonotonicTime, Pod, later


class Backlog:
    """Nodes, and shares of namespaces, to be evaluated again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.nodes: dict[str, None] = {}
        """Nodes to be evaluated as a whole, in order."""
        self.shares: dict[str, dict[str, None]] = {}
        """Namespace -> nodes where its pods are to be evaluated again."""
        self._next_at: dict[str, MonotonicTime] = {}
        """Namespace -> earliest time of its next evaluation."""
        self.relabelled: set[str] = set()
        """Namespaces in ``shares`` whose labels changed, so that other policies may select their pods."""

    def pending(self, pod: Pod) -> str:
        """Key of the refusal of a pod that waits in a share or for a source; empty otherwise, as for ``nodes``."""
        source = self._world.source
        if source is not None and source.is_pending(pod.node):
            return pending_key(pod.node)
        return share_key(pod.namespace) if pod.node in self.shares.get(pod.namespace, ()) else ""

    def next_in(self, now: Instant) -> float | None:
        """Seconds until something may be evaluated; None if nothing waits."""
        source = self._world.source
        if self.nodes or (source is not None and source.is_busy):
            return 0.0
        return min((self._seconds_until_next(namespace, now) for namespace in self.shares), default=None)

    def _seconds_until_next(self, namespace: str, now: Instant) -> float:
        return max(0.0, self._next_at.get(namespace, now.monotonic) - now.monotonic)

    def add_all(self) -> None:
        """Queue all nodes, since verdicts may have changed."""
        self.add_nodes(self._world.cluster.nodes)

    def add_nodes(self, names: Iterable[str]) -> None:
        """Queue these nodes, since verdicts may have changed."""
        if self._world.synced:
            self.nodes.update(dict.fromkeys(names))

    def add_namespace(self, namespace: str, *, is_relabelled: bool = False) -> None:
        """Queue the pods of a namespace: their verdicts may have changed, or the budgets by which guards count them."""
        nodes = self._world.cluster.namespaces.get(namespace)
        if nodes and self._world.synced:
            self.shares.setdefault(namespace, {}).update(dict.fromkeys(nodes))
            if is_relabelled:
                self.relabelled.add(namespace)

    def add_pods(self, state: NodeState) -> None:
        """Queue the pods of a node that changes too often, with those of their namespaces."""
        for pod in state.pods.values():
            self.shares.setdefault(pod.namespace, {})[state.name] = None

    def ready_namespaces(self) -> Iterator[str]:
        """Yield the namespaces whose shares may be evaluated now, in turn."""
        now = self._world.now
        for namespace in list(self.shares):
            if not self._seconds_until_next(namespace, now):
                yield namespace
        for namespace in [name for name, until in self._next_at.items() if until <= now.monotonic]:
            if namespace not in self.shares:
                del self._next_at[namespace]

    def put_back(self, namespace: str, nodes: dict[str, None]) -> None:
        """Queue the rest of a share, behind others. Without a rest, free its pods and begin the ``namespace_pause``."""
        world = self._world
        if nodes:
            self.shares[namespace] = nodes
            return
        self.relabelled.discard(namespace)
        self._next_at[namespace] = later(world.now.monotonic, world.timings.namespace_pause)
        world.limiter.freed.add(share_key(namespace))


def share_key(namespace: str) -> str:
    """Key of the refusal that pods of a namespace share while they wait to be evaluated."""
    return f"evaluation/{namespace}"
