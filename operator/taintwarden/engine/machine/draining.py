"""Which nodes count as drained by which policy, for the health of their zones.

1. A node *drains* if pods have to leave it that were there before the value fell or the taint was added: of two
   namespaces, or at least half of the pods whose verdict depends on the value. Pods that came later, or that asked for
   other values since, do not count. A taint of a device says nothing about the other devices of its node: it drains a
   node if at least half of the pods that have devices have to leave.
2. It stays drained when these pods are gone, until the taint is removed, until pods are there and none has to leave, or
   until the pods that left could stay.
3. A node without pods whose verdict depends on the value is a *refuge*, and counts as healthy, if some pod that has to
   leave another node could go there: it would tolerate all taints. Otherwise the node does not count.
4. A zone is Full if all nodes that count are drained.
5. While every zone is Full, nothing is evicted: that looks like a fault of the monitoring.
"""

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from taintwarden.engine.evaluate import Kind, TaintVerdict
from taintwarden.engine.guard import ROUNDING_SECONDS
from taintwarden.engine.history import is_of_device
from taintwarden.engine.machine.cluster import NodeState, history_name
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Operator, Pod, PodClass, Policy, Tolerations
from taintwarden.engine.scheduling import REPELLING, untolerated

MAX_SAMPLES = 8
"""How many different tolerations of pods that have to leave are compared with the taints of other nodes."""


class _Count(msgspec.Struct):
    """How many pods of a node have to leave it, for one policy."""

    dependent: int = 0
    """Pods whose verdict depends on the value."""
    leaving: int = 0
    """Of these, pods that have to leave."""
    earlier: int = 0
    """Of these, pods that were there before."""
    namespaces: set[str] = msgspec.field(default_factory=set)
    """Of those that were there before. Never iterated."""
    sample: PodClass | None = None
    taints: dict[str, None] = msgspec.field(default_factory=dict)

    @property
    def is_drained(self) -> bool:
        """Whether they are enough."""
        return len(self.namespaces) > 1 or (self.earlier > 0 and 2 * self.earlier >= self.dependent)


_NONE, _ONE = _Count(), _Count(dependent=1)


class Draining:
    """Counts nodes for the zones, and marks in their histories which taints drain them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._samples: dict[str, Counter[Tolerations]] = {}
        """Policy -> the tolerations of pods that have to leave, each with the number of nodes it is taken from."""
        self._classes: dict[Tolerations, PodClass] = {}
        self._given: dict[str, dict[str, Tolerations]] = {}
        """Node -> policy -> the sample that it gives."""
        self._departed: dict[str, dict[str, PodClass]] = {}
        """Node -> policy -> a pod that had to leave when the node was drained."""
        self._undecided: dict[str, dict[str, None]] = {}
        """Policy -> nodes without pods whose verdict depends on the value."""
        self._stale: dict[str, None] = {}
        """Nodes to be counted again, because their pods or the samples of a policy changed."""

    @property
    def is_counted(self) -> bool:
        """Whether all nodes are counted."""
        return not self._stale

    def advance(self, budget: int) -> int:
        """Count nodes with about so many pods again. Returns what is left of the budget."""
        while self._stale and budget > 0:
            name = next(iter(self._stale))
            del self._stale[name]
            state = self._world.cluster.nodes.get(name)
            if state is not None:
                self.judged(state)
                budget -= len(state.pods) + 1
        return budget

    def policies_changed(self) -> None:
        """The policies in force changed. The caller has all nodes counted again."""
        self._undecided.clear()

    def classes_again(self, classes: Collection[PodClass]) -> None:
        """Pods of these classes may have other verdicts, also where they had to leave and are gone."""
        departed = self._departed.items() if classes else ()
        self._stale.update({name: None for name, left in departed if any(one in classes for one in left.values())})

    def recount(self, state: NodeState) -> None:
        """A pod of a node came, is another one than before, or is gone: count the node again."""
        if self._world.synced and state.is_tainted:
            self._stale[state.name] = None

    def forget(self, name: str) -> None:
        """A node is gone."""
        for policy, tolerations in self._given.pop(name, {}).items():
            self._take_back(policy, tolerations)
        for nodes in self._undecided.values():
            nodes.pop(name, None)
        self._departed.pop(name, None)
        self._stale.pop(name, None)
        self._world.limiter.zones.forget(name)

    def judged(self, state: NodeState) -> None:
        """The pods of a node were evaluated."""
        node = state.node
        if node is None:
            return
        self._stale.pop(state.name, None)
        policies = [one for one in self._world.verdicts.select(state) if one.limits.zone_health is not None]
        counts = self._count(state, policies) if policies else {}
        drained: dict[str, bool] = {}
        marked: dict[str, None] = {}
        departed: dict[str, PodClass] = {}
        for policy in policies:
            count = counts.get(policy.name, _NONE)
            answer = self._is_drained(state, policy.name, count)
            if answer:
                left = count.sample or self._departed.get(state.name, {}).get(policy.name)
                if left is not None:
                    departed[policy.name] = left
                marked |= count.taints or dict.fromkeys(self._marks(state, policy.name))
            if answer is not None:
                drained[policy.name] = answer
        self._departed.pop(state.name, None)
        if departed:
            self._departed[state.name] = departed
        for name in state.histories:
            state.set_draining(name, drains=name in marked)
        self._give_samples(state, counts, policies)
        self._world.limiter.zones.count(node.name, node.labels, drained)

    def _count(self, state: NodeState, policies: list[Policy]) -> dict[str, _Count]:
        """How many pods have to leave, by policy."""
        if not any(state.grounds.values()):
            return self._none_leaves(state, policies)
        found: dict[str, _Count] = {}
        by_class: dict[PodClass, list[tuple[_Count, TaintVerdict | None]]] = {}
        for pod_class, verdicts in state.verdicts.items():
            dependent = [one for one in verdicts if _depends_on_value(one)]
            by_class[pod_class] = [self._of_class(found, one) for one in dependent]
        leaving_devices = {name for name, count in found.items() if any(map(is_of_device, count.taints))}
        by_devices = [one for one in policies if one.name in leaving_devices]
        for pod_class, verdicts in state.verdicts.items():
            untainted = self._with_untainted_devices(by_devices, pod_class, verdicts)
            by_class[pod_class] += [(found[name], None) for name in untainted]
        for pod in state.pods.values():
            for count, verdict in by_class.get(pod.shared, ()):
                count.dependent += 1
                if verdict is not None:
                    self._add(count, verdict, pod)
        return found

    def _with_untainted_devices(
        self, policies: list[Policy], pod_class: PodClass, verdicts: Iterable[TaintVerdict]
    ) -> list[str]:
        """The policies that may evict pods of a class because of devices, and have no verdict on any of them."""
        if not pod_class.devices:
            return []
        told = {one.policy.name for one in verdicts if one.taint.origin is not None or _depends_on_value(one)}
        untold = [one for one in policies if one.name not in told]
        return [one.name for one in untold if self._world.verdicts.has_devices(one, pod_class)]

    @staticmethod
    def _of_class(found: dict[str, _Count], verdict: TaintVerdict) -> tuple[_Count, TaintVerdict | None]:
        """Where the pods of a class are counted; and the verdict, if they have to leave."""
        count = found.setdefault(verdict.policy.name, _Count())
        if not verdict.evicts:
            return count, None
        count.taints[history_name(verdict.taint)] = None
        return count, verdict

    def _none_leaves(self, state: NodeState, policies: list[Policy]) -> dict[str, _Count]:
        """The same where no pod has to leave: then it is enough that the verdict on one depends on the value."""
        dependent = (one for verdicts in state.verdicts.values() for one in verdicts if _depends_on_value(one))
        found = {one.policy.name: _ONE for one in dependent}
        for_devices = [one for one in policies if one.devices and not one.taints]
        for pod_class, verdicts in state.verdicts.items() if for_devices else ():
            found |= dict.fromkeys(self._with_untainted_devices(for_devices, pod_class, verdicts), _ONE)
        return found

    def _add(self, count: _Count, verdict: TaintVerdict, pod: Pod) -> None:
        count.leaving += 1
        if self._world.caused_at(pod) <= verdict.met_from + ROUNDING_SECONDS:
            count.earlier += 1
            if verdict.taint.origin is None:
                count.namespaces.add(pod.namespace)
            count.sample = count.sample or pod.shared

    def _is_drained(self, state: NodeState, policy: str, count: _Count) -> bool | None:
        """Whether a node counts as drained; None: it does not count."""
        if count.is_drained:
            return True
        was_drained = bool(self._marks(state, policy))
        if count.dependent:
            return was_drained and count.leaving > 0
        samples = list(self._samples.get(policy, ()))[:MAX_SAMPLES]
        if any(self._is_refuge(state, self._classes[one]) for one in samples):
            return False
        if was_drained and self._would_still_leave(state, policy):
            return True
        return None if samples else False

    def _would_still_leave(self, state: NodeState, policy: str) -> bool:
        """Whether the pods that left would have to leave again. After a restart that is not known: then they would."""
        left = self._departed.get(state.name, {}).get(policy)
        return left is None or any(one.evicts for one in self._world.verdicts.compute(state, left))

    def _marks(self, state: NodeState, policy: str) -> list[str]:
        """The taints that drained a node, of those on which a policy acts."""
        found = []
        for taint, history in state.taints():
            if history.drains:
                acting = self._world.verdicts.evaluator.acting_on(taint, self._world.verdicts.select(state))
                if acting is not None and acting[0].name == policy:
                    found.append(history_name(taint))
        return found

    def _is_refuge(self, state: NodeState, pod_class: PodClass) -> bool:
        """Whether a pod that has to leave another node could come to this one, and stay."""
        if any(one.evicts for one in self._world.verdicts.compute(state, pod_class)):
            return False
        taints = [one for one, _ in state.taints() if one.effect in REPELLING and one.origin is None]
        return not (taints and untolerated(self._world.verdicts.tolerations(pod_class), taints))

    # -- samples --------------------------------------------------------------------------------------------------

    def _give_samples(self, state: NodeState, counts: dict[str, _Count], policies: list[Policy]) -> None:
        given: dict[str, Tolerations] = {}
        for policy in policies:
            count = counts.get(policy.name, _NONE)
            if count.sample is not None and count.is_drained:
                tolerations = given[policy.name] = self._world.verdicts.tolerations(count.sample)
                self._classes.setdefault(tolerations, count.sample)
            if not count.dependent:
                self._undecided.setdefault(policy.name, {})[state.name] = None
            elif policy.name in self._undecided:
                self._undecided[policy.name].pop(state.name, None)
        before = self._given.pop(state.name, {})
        if given:
            self._given[state.name] = given
        for name, tolerations in given.items():
            if before.get(name) != tolerations:
                samples = self._samples.setdefault(name, Counter())
                samples[tolerations] += 1
                if samples[tolerations] == 1 and len(samples) <= MAX_SAMPLES:
                    self._count_again(name)
        for name, tolerations in before.items():
            if given.get(name) != tolerations:
                self._take_back(name, tolerations)

    def _take_back(self, policy: str, tolerations: Tolerations) -> None:
        samples = self._samples[policy]
        samples[tolerations] -= 1
        if not samples[tolerations]:
            if tolerations in list(samples)[:MAX_SAMPLES]:
                self._count_again(policy)
            del samples[tolerations]
            if not samples:
                del self._samples[policy]
            if not any(tolerations in one for one in self._samples.values()):
                del self._classes[tolerations]

    def _count_again(self, policy: str) -> None:
        self._stale.update(self._undecided.get(policy, {}))


def _depends_on_value(verdict: TaintVerdict) -> bool:
    """Whether a verdict may change with the value of the taint."""
    tolerated_by = verdict.toleration
    is_unconditional = tolerated_by is not None and tolerated_by.operator == Operator.EXISTS and not verdict.evicts
    return not is_unconditional and verdict.kind is not Kind.HELD
