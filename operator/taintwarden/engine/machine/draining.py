"""Which nodes count as drained by which policy, for the health of their zones.

A node counts while a taint that the policy acts on evicts a pod of it, or has evicted one that is gone: an empty node
is no healthier than before. The class of such a pod is the *witness*. A node that has no pods to evict also counts if
its value became untolerated together with those of others: a witness from another node would have to leave it now, and
would not have had to before. Otherwise each empty node would make a fault of the monitoring look smaller. The count of
a node that never met the tolerations of a witness does not change: it is a cheap node, not an unhealthy one.
"""

from taintwarden.engine.evaluate import TaintVerdict, acting_policy
from taintwarden.engine.limits.zones import Zones
from taintwarden.engine.machine.cluster import NodeState, history_name
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import PodClass, Tolerations

MAX_WITNESSES = 8
"""How many different tolerations of witnesses are evaluated on a node that has no pods to evict."""

_Key = tuple[str, str]
"""A policy and a taint's key and effect."""


class _Testimony:
    """A witness from a node, and how many nodes have one with the same tolerations."""

    __slots__ = ("nodes", "since", "witness")

    def __init__(self, witness: PodClass, since: float) -> None:
        self.witness = witness
        self.since = since
        """When the value became untolerated for it, on the node where that happened last."""
        self.nodes = 0


class Draining:
    """Keeps witnesses, and counts nodes for the limits.

    Args:
        verdicts: evaluates pods of a class on a node.
        zones: receives the counts.
        timings: how long an incident lasts.

    """

    def __init__(self, verdicts: Verdicts, zones: Zones, timings: Timings) -> None:
        self._verdicts = verdicts
        self._zones = zones
        self._timings = timings
        self._testimonies: dict[_Key, dict[Tolerations, _Testimony]] = {}
        self._given: dict[str, dict[_Key, Tolerations]] = {}
        """Node -> the tolerations of its witnesses."""
        self.stale: dict[_Key, None] = {}
        """Testimonies of these were added or removed: the count of nodes with the taint may change."""

    def judged(self, state: NodeState) -> bool:
        """The pods of a node were evaluated. Returns whether the set of taints that drain it changed."""
        before = {name for name, history in state.histories.items() if history.drains}
        here: dict[_Key, tuple[PodClass, TaintVerdict]] = {}
        for pod_class, verdicts in state.evicting.items():
            for verdict in verdicts:
                here.setdefault(_key(verdict), (pod_class, verdict))
        witnesses = {key: pod_class for key, (pod_class, _) in here.items()}
        since = {key: verdict.counts_from for key, (_, verdict) in here.items()}
        for key, witness in state.witnesses.items():
            # A pod that comes later says nothing of when the incident began, nor of nodes that it would tolerate.
            if (stands := self._verdict(state, witness, key)) is not None:
                witnesses[key], since[key] = witness, stands.counts_from
        state.witnesses = witnesses
        self._forget_found(state)
        drained = {name for _, name in witnesses} | set(state.found_draining)
        for name in state.histories:
            state.set_draining(name, drains=name in drained)
        self._testify(state, since)
        return before != {name for name, history in state.histories.items() if history.drains}

    def _forget_found(self, state: NodeState) -> None:
        """After a restart there are no witnesses: a mark stays until the value changes to one that a pod tolerates."""
        if not state.found_draining:
            return
        judged = {history_name(verdict.taint) for verdicts in state.verdicts.values() for verdict in verdicts}
        witnessed = {name for _, name in state.witnesses}
        state.found_draining = {
            name: value
            for name, value in state.found_draining.items()
            if name in state.histories
            and name not in witnessed
            and (name not in judged or state.histories[name].value == value)
        }

    def _verdict(self, state: NodeState, witness: PodClass, key: _Key) -> TaintVerdict | None:
        """The verdict by which a policy would evict the witness from the node because of the taint."""
        verdicts = self._verdicts.compute(state, witness)
        return next((verdict for verdict in verdicts if verdict.evicts and _key(verdict) == key), None)

    def _testify(self, state: NodeState, since: dict[_Key, float]) -> None:
        given = {key: self._verdicts.tolerations(witness) for key, witness in state.witnesses.items()}
        before = self._given.get(state.name, {})
        for key, tolerations in before.items():
            if given.get(key) != tolerations:
                self._take_back(key, tolerations)
        for key, tolerations in given.items():
            known = self._testimonies.setdefault(key, {})
            testimony = known.get(tolerations)
            if testimony is None:
                testimony = known[tolerations] = _Testimony(state.witnesses[key], since[key])
                self.stale[key] = None
            if before.get(key) != tolerations:
                testimony.nodes += 1
            testimony.since = max(testimony.since, since[key])
        if given:
            self._given[state.name] = given
        else:
            self._given.pop(state.name, None)

    def _take_back(self, key: _Key, tolerations: Tolerations) -> None:
        known = self._testimonies[key]
        known[tolerations].nodes -= 1
        if not known[tolerations].nodes:
            del known[tolerations]
            self.stale[key] = None
        if not known:
            del self._testimonies[key]

    def forget(self, name: str) -> None:
        """A node is gone."""
        for key, tolerations in self._given.pop(name, {}).items():
            self._take_back(key, tolerations)
        self._zones.forget(name)

    def count(self, state: NodeState) -> None:
        """Report to the zones, for each policy that selects the node, whether it counts as drained."""
        if state.node is None:
            return
        drained = {
            policy.name: self._is_drained(state, policy.name)
            for policy in self._verdicts.select(state)
            if policy.limits.zone_health
        }
        self._zones.count(state.name, state.node.labels, drained)

    def _is_drained(self, state: NodeState, policy: str) -> bool:
        if any(key[0] == policy for key in state.witnesses):
            return True
        for taint, _ in state.taints():
            name = history_name(taint)
            if name in state.found_draining:
                acting = acting_policy(taint, self._verdicts.select(state))
                if acting is not None and acting.name == policy:
                    return True
            if self._is_part_of_incident(state, (policy, name)):
                return True
        return False

    def _is_part_of_incident(self, state: NodeState, key: _Key) -> bool:
        for testimony in list(self._testimonies.get(key, {}).values())[:MAX_WITNESSES]:
            verdict = self._verdict(state, testimony.witness, key)
            if verdict is not None and abs(verdict.counts_from - testimony.since) <= self._timings.incident:
                return True
        return False


def _key(verdict: TaintVerdict) -> _Key:
    return verdict.policy.name, history_name(verdict.taint)
