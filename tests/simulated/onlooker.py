"""Somebody who hears what the operator hears, and keeps the plainest possible account of it."""

from collections.abc import Iterable, Iterator

from simulated.drawing import NO_LIMITS
from simulated.trace import Moment, Started
from taintwarden.engine.machine import Outcome, commands, events
from taintwarden.engine.model import Budget, Limits, Node, Pod, Policy, Taint

ACCEPTED_SECONDS = 60.0
"""An accepted eviction that is not seen for so long did not happen."""


class Onlooker:
    """What can be known of the cluster at one moment."""

    def __init__(self) -> None:
        self.policies: dict[str, Policy] = {}
        self._forget()

    def _forget(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.wanted: dict[str, int] = {}
        self.budgets: dict[tuple[str, str], Budget] = {}
        self.terminating: dict[str, tuple[str, float]] = {}
        """UID -> its node, and until when it may take to stop, in true time."""
        self.calls: dict[str, tuple[str, float]] = {}
        """UID -> whether an eviction is ``asked``, ``accepted`` or ``uncertain``, and since when (true time)."""

    def watch(self, trace: Iterable[Moment]) -> Iterator[tuple[Moment, "Onlooker"]]:
        """Yield each moment with what is known once it has happened; an eviction before it is counted."""
        for moment in trace:
            what = moment.what
            for uid, (state, since) in list(self.calls.items()):
                if state == "accepted" and moment.at > since + ACCEPTED_SECONDS:
                    del self.calls[uid]
            if not isinstance(what, commands.Evict):
                self._hear(what, moment.at, moment.now.wall)
            yield moment, self
            if isinstance(what, commands.Evict):
                self.calls[what.pod.uid] = ("asked", moment.at)

    def _hear(self, what: object, at: float, wall: float) -> None:
        match what:
            case Started():
                self._forget()
            case events.PoliciesChanged(policies):
                self.policies = {policy.name: policy for policy in policies}
            case events.NodeSeen(node):
                known = self.nodes.get(node.name)
                if known is None or known.resource_version <= node.resource_version:
                    self.nodes[node.name] = node
            case events.NodeGone(name):
                self.nodes.pop(name, None)
            case events.NodesListed(names):
                self.nodes = {name: node for name, node in self.nodes.items() if name in names}
            case events.PodSeen(pod):
                self.pods[pod.uid] = pod
            case events.PodGone(uid, node, until):
                self._lose(uid)
                if until is not None:
                    self.terminating[uid] = (node, at + until - wall)
            case events.PodsListed(nodes):
                for uid in [*self.pods, *self.terminating]:
                    if uid not in nodes:
                        self._lose(uid)
            case events.WorkloadSeen((_, uid), replicas):
                self.wanted[uid] = replicas
            case events.WorkloadGone((_, uid)):
                self.wanted.pop(uid, None)
            case events.BudgetSeen(budget):
                self.budgets[budget.namespace, budget.name] = budget
            case events.BudgetGone(namespace, name):
                self.budgets.pop((namespace, name), None)
            case commands.Cancelled(pod) if self.calls.get(pod.uid, ("",))[0] == "uncertain":
                del self.calls[pod.uid]  # it may leave for a moment yet, which nobody goes on reckoning with
            case events.Settled(uid, outcome):
                self._settle(uid, outcome, at)
            case _:
                pass

    def _lose(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.terminating.pop(uid, None)
        self.calls.pop(uid, None)

    def _settle(self, uid: str, outcome: Outcome, at: float) -> None:
        if outcome in (Outcome.EVICTED, Outcome.GONE) and uid in self.pods:
            self.calls[uid] = ("accepted", at)
        elif outcome is Outcome.FAILED and uid in self.pods:
            self.calls[uid] = ("uncertain", at)
        else:
            self.calls.pop(uid, None)

    def limits(self, policy: str) -> Limits:
        """The limits that hold for a policy: none of its own where nodes will be gone."""
        found = self.policies[policy]
        return found.limits if found.reclaim is None else NO_LIMITS

    # -- what follows -----------------------------------------------------------------------------------------------

    def acting_on(self, pod: Pod) -> list[str]:
        """The names of the policies that make a pod leave, sooner or later.

        The pods of histories tolerate ``sla`` above 950, and no other taint.
        """
        node = self.nodes.get(pod.node)
        keys = {taint.key for taint, _ in node.taints if is_bad(taint)} if node else set()
        return [one.name for one in self.policies.values() if one.mode != "Paused" and one.taints[0].key in keys]


def is_bad(taint: Taint) -> bool:
    """Whether no pod of a history tolerates it."""
    return taint.key == "flag" or (taint.key == "sla" and int(taint.value) <= 950)


def zone_of(node: Node | None) -> str:
    """Region and zone of a node."""
    labels = node.labels if node else {}
    parts = (labels.get("topology.kubernetes.io/region", ""), labels.get("topology.kubernetes.io/zone", ""))
    return "/".join(part for part in parts if part)
