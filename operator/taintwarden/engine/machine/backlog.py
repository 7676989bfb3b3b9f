"""What waits to be evaluated again, in two queues.

*Nodes* are evaluated again as a whole when policies change, at the start and with a change of leader. No pod is evicted
before that is complete: the guard has to count the whole wave.

*Shares* are the pods of one namespace by node, after a change of its profiles, its budgets or its labels. Only the
pods of that namespace wait for it. The namespaces take turns, and each begins again at most once a second, so that a
tenant whose profiles change all the time delays no other.
"""

from collections.abc import Iterable, Iterator

from taintwarden.engine.machine.source import pending_key
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, MonotonicTime, Pod, later


class Backlog:
    """Nodes, and shares of namespaces, to be evaluated again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.nodes: dict[str, None] = {}
        """In order."""
        self.shares: dict[str, dict[str, None]] = {}
        """Namespace -> nodes where its pods are to be evaluated again."""
        self._rests_until: dict[str, MonotonicTime] = {}
        """Namespace -> when its pods may be evaluated again."""
        self.relabelled: set[str] = set()
        """Namespaces with shares whose label change may change which policies select their pods."""

    def pending(self, pod: Pod) -> str:
        """The key of the refusal of a pod that waits to be evaluated again; empty: it does not."""
        source = self._world.source
        if source is not None and source.is_pending(pod.node):
            return pending_key(pod.node)
        return share_key(pod.namespace) if pod.node in self.shares.get(pod.namespace, ()) else ""

    def next_in(self, now: Instant) -> float | None:
        """Seconds until something may be evaluated."""
        source = self._world.source
        if self.nodes or (source is not None and source.is_busy):
            return 0.0
        return min((self._rest_of(namespace, now) for namespace in self.shares), default=None)

    def _rest_of(self, namespace: str, now: Instant) -> float:
        return max(0.0, self._rests_until.get(namespace, now.monotonic) - now.monotonic)

    def add_all(self) -> None:
        """Verdicts may have changed on all nodes."""
        self.add_nodes(self._world.cluster.nodes)

    def add_nodes(self, names: Iterable[str]) -> None:
        """Verdicts may have changed on these nodes."""
        if self._world.synced:
            self.nodes.update(dict.fromkeys(names))

    def add_namespace(self, namespace: str, *, is_relabelled: bool = False) -> None:
        """The pods of a namespace may have other verdicts, or guards have to count them again by other budgets."""
        nodes = self._world.cluster.namespaces.get(namespace)
        if nodes and self._world.synced:
            self.shares.setdefault(namespace, {}).update(dict.fromkeys(nodes))
            if is_relabelled:
                self.relabelled.add(namespace)

    def ready_namespaces(self) -> Iterator[str]:
        """The namespaces whose shares may be evaluated now, in turn."""
        now = self._world.now
        for namespace in list(self.shares):
            if not self._rest_of(namespace, now):
                yield namespace
        for namespace in [one for one, until in self._rests_until.items() if until <= now.monotonic]:
            if namespace not in self.shares:
                del self._rests_until[namespace]

    def put_back(self, namespace: str, nodes: dict[str, None]) -> None:
        """Keep what is left of a share, behind the others. Without any the namespace rests."""
        world = self._world
        if nodes:
            self.shares[namespace] = nodes
            return
        self.relabelled.discard(namespace)
        self._rests_until[namespace] = later(world.now.monotonic, world.timings.profile_rest)
        world.limiter.freed.add(share_key(namespace))


def share_key(namespace: str) -> str:
    """The key of a refusal, shared by the pods of a namespace that wait to be evaluated."""
    return f"evaluation/{namespace}"
