"""Which policies select what, and the resulting verdicts: computed once for all pods of a class on a node."""

from collections.abc import Collection, Iterable
from typing import NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

from taintwarden.engine.derived import Derivations, derivations
from taintwarden.engine.evaluate import (
    Evaluator,
    TaintVerdict,
    exclusion,
    grounds_of,
    is_invalid,
    selects_namespace,
    selects_node,
)
from taintwarden.engine.machine.cluster import Judged, NodeState, history_name
from taintwarden.engine.model import Gates, PodClass, Policy, Profile, Tolerations, ZoneHealth
from taintwarden.engine.operators import Match, match
from taintwarden.engine.profile_selection import Profiles
from taintwarden.engine.tally import Tally

MAX_ALIKE = 100
"""On one node. Most workloads have the same tolerations, but each pod of a tenant may have others."""


_NO_POD = PodClass("", {}, Tolerations())
"""It compares nothing, so what cannot be compared for it is not of its type."""


class Features(NamedTuple):
    """What the policies in force use. What none of them does is not called on the way from a taint to an eviction."""

    bounce: bool = False
    devices: bool = False
    zone_health: bool = False
    reclaim: bool = False

    @classmethod
    def of(cls, policies: Collection[Policy]) -> Self:
        """What these use."""
        return cls(
            any(policy.limits.bounce.is_limit for policy in policies),
            any(policy.devices for policy in policies),
            any(policy.limits.zone_health is not None for policy in policies),
            any(policy.reclaim is not None for policy in policies),
        )


T = TypeVar("T")
_OfClass = WeakKeyDictionary[PodClass, tuple[tuple[Policy, ...], dict[str, str] | None, T]]
"""What holds while these policies are in force and the namespace has these labels: nothing is dropped at once."""


class Verdicts:
    """The policies and profiles in force, the namespaces that policies may select by, and the resulting verdicts."""

    def __init__(self, gates: Gates) -> None:
        self.evaluator = Evaluator(gates)
        self.policies: tuple[Policy, ...] = ()
        self.derivations: Derivations = {}
        """The taints that policies derive."""
        self.uses = Features()
        self.population: Tally[str] = Tally()
        """Policy -> how many pods it may evict: the sum of what nodes have."""
        self._namespaces: dict[str, dict[str, str]] = {}
        self._selecting: _OfClass[tuple[Policy, ...]] = WeakKeyDictionary()
        self._profiles = Profiles()

    def set_policies(self, policies: Iterable[Policy]) -> None:
        """The policies in force changed. The caller discards what was computed for nodes."""
        self.policies = tuple(sorted(policies, key=lambda policy: policy.name))
        self.derivations = derivations(self.policies)
        self.uses = Features.of(self.policies)

    def set_namespace(self, name: str, labels: dict[str, str] | None) -> bool:
        """A namespace has these labels, or is gone. Returns whether other policies select it because of that.

        The caller discards what was computed for its pods on nodes.
        """
        before = self._namespaces.get(name)
        if before == labels:
            return False
        if labels is None:
            del self._namespaces[name]
        else:
            self._namespaces[name] = labels
        return any(selects_namespace(one, before) is not selects_namespace(one, labels) for one in self.policies)

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """The labels of a namespace; None if it is not known."""
        return self._namespaces.get(name)

    def set_profile(self, namespace: str, name: str, profile: Profile | None) -> bool:
        """A profile was set, or is gone. Returns whether pods of the namespace may tolerate other taints because of it.

        The caller discards what was computed for them on nodes.
        """
        before = self._profiles.put(namespace, name, profile)
        if before is None or profile is None:
            return before is not profile
        return (before.selector, before.tolerations) != (profile.selector, profile.tolerations)

    def profiles(self) -> list[Profile]:
        """All profiles in force, by namespace and name."""
        return list(self._profiles)

    def profiles_of(self, pod_class: PodClass) -> tuple[Profile, ...]:
        """The profiles that select pods of a class, by name."""
        return self._profiles.of(pod_class)

    def tolerations(self, pod_class: PodClass) -> Tolerations:
        """All tolerations of pods of a class: their own and those of profiles."""
        return self._profiles.tolerations(pod_class) if self._profiles.named else pod_class.tolerations

    def of(self, state: NodeState, pod_class: PodClass) -> Judged:
        """The verdicts on pods of a class on a node, and why policies evict them."""
        found = state.judged.get(pod_class)
        if found is None:
            found = state.judged[pod_class] = self.compute(state, pod_class)
        return found

    def compute(self, state: NodeState, pod_class: PodClass) -> Judged:
        """The same for a class that need not have a pod on the node."""
        if not state.is_tainted:
            return (), ()
        selecting = self.selecting(pod_class)
        policies = tuple([policy for policy in self.select(state) if policy in selecting])
        return self._evaluate(state, pod_class, policies) if policies else ((), ())

    def _evaluate(self, state: NodeState, pod_class: PodClass, policies: tuple[Policy, ...]) -> Judged:
        tolerations = self.tolerations(pod_class)
        grace_seconds = pod_class.grace_seconds if any(policy.reclaim for policy in policies) else 0
        alike = (tolerations, policies, grace_seconds, pod_class.protected_seconds, pod_class.devices)
        found = state.alike.get(alike)
        if found is None:
            if len(state.alike) >= MAX_ALIKE:
                state.alike.clear()
            verdicts = self.evaluator.verdicts(pod_class, tolerations, state.concerns(pod_class), policies)
            found = state.alike[alike] = verdicts, grounds_of(verdicts)
        return found

    def unhealthy(self, state: NodeState) -> dict[str, bool]:
        """The policies with ``zoneHealth`` that select a node, and whether it is unhealthy by what each lists."""
        with_health = ((one.name, one.limits.zone_health) for one in self.select(state))
        return {name: _is_unhealthy(state, health) for name, health in with_health if health is not None}

    def select(self, state: NodeState) -> tuple[Policy, ...]:
        """The policies that act on a node."""
        if state.policies is None:
            labels, opts_out = state.labels, state.do_not_evict
            state.concerned = tuple(policy for policy in self.policies if selects_node(policy, labels))
            state.policies = tuple(
                policy for policy in state.concerned if selects_node(policy, labels, do_not_evict=opts_out)
            )
        return state.policies

    def invalid(self, state: NodeState) -> dict[str, TaintVerdict]:
        """The taints of a node with a value that is not of its policy's type, or that a pod there cannot compare.

        Each with its verdict.
        """
        judged, policies = list(state.judged.values()), self.select(state)
        own = (taint for taint, _ in state.taints() if taint.origin is None)  # of devices only what pods there have
        acting = ((taint, self.evaluator.acting_on(taint, policies)) for taint in own)
        if any(by is not None and is_invalid(taint.value, by[1].value_type) for taint, by in acting):
            judged.append(self._evaluate(state, _NO_POD, policies))
        found: dict[str, TaintVerdict] = {}
        for verdicts, _ in judged:
            for verdict in verdicts:
                if verdict.invalid:
                    found.setdefault(history_name(verdict.taint), verdict)
        return found

    def count(self, state: NodeState, pod_class: PodClass, by: int) -> None:
        """The node has so many more pods of a class; negative: fewer.

        Policies that changed, and namespaces whose labels did, count when the node is evaluated again.
        """
        state.staying = None
        if not state.pods:
            self.count_again(state)
            return
        for policy in self.select(state):
            if self._may_evict(policy, pod_class):
                state.population.change(policy.name, by)
                self.population.change(policy.name, by)

    def count_again(self, state: NodeState) -> None:
        """Other policies may evict the pods of a node than before."""
        for name, pods in state.population.items():
            self.population.change(name, -pods)
        state.population = Tally()
        for pod in state.pods.values():
            self.count(state, pod.shared, 1)

    def _may_evict(self, policy: Policy, pod_class: PodClass) -> bool:
        """Whether a policy may evict pods of a class; one for devices alone evicts none that has no such device."""
        if policy not in self.selecting(pod_class):
            return False
        if policy.taints:
            return True
        drivers = {use.device.driver for use in pod_class.devices}
        return bool(drivers) and any(not one.driver or one.driver in drivers for one in policy.devices)

    def selecting(self, pod_class: PodClass) -> tuple[Policy, ...]:
        """The policies that may evict pods of a class."""
        labels = self._namespaces.get(pod_class.namespace)
        policies, labelled, found = self._selecting.get(pod_class, (None, None, ()))
        if policies is not self.policies or labelled is not labels:
            found = tuple(policy for policy in self.policies if not exclusion(policy, pod_class, labels))
            self._selecting[pod_class] = self.policies, labels, found
        return found


def _is_unhealthy(state: NodeState, health: ZoneHealth) -> bool:
    taints = () if state.node is None else state.node.taints
    return any(match(one, taint) is Match.HOLDS for taint, _ in taints for one in health.tolerations)
