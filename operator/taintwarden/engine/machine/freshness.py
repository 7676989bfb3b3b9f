"""Due pods that are newer than the data on their node: its taint may be gone already, so the node is read again."""

from collections.abc import Iterator

from taintwarden.engine.machine.claims import Claim, Claims, Phase
from taintwarden.engine.machine.cluster import Cluster
from taintwarden.engine.machine.commands import CheckNode
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.model import MonotonicTime, Pod


class Freshness:
    """Records the version that the node stream has reached, and which claims wait for a read of their node.

    Args:
        cluster: what is known.
        claims: all claims.
        queues: the queues of claims.

    """

    def __init__(self, cluster: Cluster, claims: Claims, queues: Queues) -> None:
        self._cluster = cluster
        self._claims = claims
        self._queues = queues
        self._reached = -1
        self._checking: dict[str, list[str]] = {}
        """Node -> keys of the claims that wait."""

    def reached(self, resource_version: int) -> None:
        """The node stream has delivered everything up to here."""
        self._reached = max(self._reached, resource_version)

    def listed(self, resource_version: int) -> None:
        """A list replaces what is known: after a restore of etcd, versions may be lower than before."""
        self._reached = resource_version
        for state in self._cluster.nodes.values():
            state.checked_version = -1

    def is_missing(self, pod: Pod) -> bool:
        """Whether the pod is newer than all that is known of its node."""
        version = pod.resource_version
        return version > self._reached and version > self._cluster.nodes[pod.node].checked_version

    def check(self, claim: Claim) -> Iterator[CheckNode]:
        """Make a READY claim wait for a read of its node, which is requested if none is in progress."""
        self._queues.move(claim, Phase.CHECKING)
        self._checking.setdefault(claim.node, []).append(claim.key)
        state = self._cluster.nodes[claim.node]
        if not state.check_wanted:
            state.check_wanted = True
            yield CheckNode(claim.node)

    def answered(self, node: str, not_before: MonotonicTime | None = None) -> None:
        """The read was answered, or failed: its claims continue, but not before ``not_before``."""
        state = self._cluster.nodes.get(node)
        if state is not None:
            state.check_wanted = False
        for key in self._checking.pop(node, ()):
            claim = self._claims.by_key.get(key)
            if claim is None or claim.phase is not Phase.CHECKING:
                continue
            if not_before is None:
                self._queues.wait(claim)
            else:
                claim.not_before = not_before
                self._queues.delay(claim)
