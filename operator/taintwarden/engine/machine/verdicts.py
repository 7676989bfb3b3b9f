"""Policies and profiles in force, and verdicts: computed once for all pods of a class on a node."""

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
from taintwarden.engine.limit_settings import ZoneHealth
from taintwarden.engine.machine.cluster import ClassVerdicts, NodeState, history_name
from taintwarden.engine.model import Gates, PodClass, Profile, Tolerations
from taintwarden.engine.operators import Match, match
from taintwarden.engine.policy import Policy
from taintwarden.engine.profile_selection import Profiles
from taintwarden.engine.tally import Tally

MAX_CACHED_VERDICTS = 100
"""Maximum number of cached verdicts per node. Workloads mostly share tolerations, but those of a tenant may differ."""


_NO_POD = PodClass("", {}, Tolerations())
"""Class without tolerations. Only a value that is not of the type the policy states is invalid for it."""


class Features(NamedTuple):
    """Optional features that the policies in force use. Code of features that are not used is not called."""

    bounce: bool = False
    devices: bool = False
    zone_health: bool = False
    reclaim: bool = False

    @classmethod
    def of(cls, policies: Collection[Policy]) -> Self:
        """Features that these policies use."""
        return cls(
            any(policy.limits.bounce.is_limit for policy in policies),
            any(policy.devices for policy in policies),
            any(policy.limits.zone_health is not None for policy in policies),
            any(policy.reclaim is not None for policy in policies),
        )


T = TypeVar("T")
_OfClass = WeakKeyDictionary[PodClass, tuple[tuple[Policy, ...], dict[str, str] | None, T]]
"""Value by pod class, with the policies and namespace labels it was computed for. Outdated ones are replaced on use."""


class Verdicts:
    """Policies and profiles in force, the labels of namespaces, and the resulting verdicts."""

    def __init__(self, gates: Gates) -> None:
        self.evaluator = Evaluator(gates)
        self.policies: tuple[Policy, ...] = ()
        self.derivations: Derivations = {}
        """Taints that policies derive from fields of nodes."""
        self.features = Features()
        self.population: Tally[str] = Tally()
        """Policy -> number of pods that it may evict, summed over all nodes."""
        self._namespaces: dict[str, dict[str, str]] = {}
        self._selecting: _OfClass[tuple[Policy, ...]] = WeakKeyDictionary()
        self._profiles = Profiles()

    def set_policies(self, policies: Iterable[Policy]) -> None:
        """Replace the policies in force. The caller discards what was computed for nodes."""
        self.policies = tuple(sorted(policies, key=lambda policy: policy.name))
        self.derivations = derivations(self.policies)
        self.features = Features.of(self.policies)

    def set_namespace(self, name: str, labels: dict[str, str] | None) -> bool:
        """Store the labels of a namespace; None: it was deleted. Returns True if other policies select it now.

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
        """Labels of a namespace; None if it is not known."""
        return self._namespaces.get(name)

    def set_profile(self, namespace: str, name: str, profile: Profile | None) -> bool:
        """Store a profile; None: it was deleted. Returns True if pods of the namespace may tolerate other taints now.

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
        """Profiles that select pods of a class, sorted by name."""
        return self._profiles.of(pod_class)

    def tolerations(self, pod_class: PodClass) -> Tolerations:
        """All tolerations of pods of a class: their own and those of profiles."""
        return self._profiles.tolerations(pod_class) if self._profiles.named else pod_class.tolerations

    def of(self, state: NodeState, pod_class: PodClass) -> ClassVerdicts:
        """Verdicts on pods of a class on a node, and why policies evict them. The node caches the result."""
        found = state.class_verdicts.get(pod_class)
        if found is None:
            found = state.class_verdicts[pod_class] = self.compute(state, pod_class)
        return found

    def compute(self, state: NodeState, pod_class: PodClass) -> ClassVerdicts:
        """Compute the verdicts on a class, and why policies evict it, even if the node has no such pod."""
        if not state.is_tainted:
            return (), ()
        policies_for = self.policies_for(pod_class)
        policies = tuple([policy for policy in self.policies_on(state) if policy in policies_for])
        return self._evaluate(state, pod_class, policies) if policies else ((), ())

    def _evaluate(self, state: NodeState, pod_class: PodClass, policies: tuple[Policy, ...]) -> ClassVerdicts:
        tolerations = self.tolerations(pod_class)
        grace_seconds = pod_class.grace_seconds if any(policy.reclaim for policy in policies) else 0
        alike = (tolerations, policies, grace_seconds, pod_class.protected_seconds, pod_class.devices)
        found = state.shared_verdicts.get(alike)
        if found is None:
            if len(state.shared_verdicts) >= MAX_CACHED_VERDICTS:
                state.shared_verdicts.clear()
            verdicts = self.evaluator.verdicts(pod_class, tolerations, state.concerns(pod_class), policies)
            found = state.shared_verdicts[alike] = verdicts, grounds_of(verdicts)
        return found

    def unhealthy(self, state: NodeState) -> dict[str, bool]:
        """Policy -> True if its ``zoneHealth`` makes the node unhealthy, for policies with one that select the node."""
        with_health = ((policy.name, policy.limits.zone_health) for policy in self.policies_on(state))
        return {name: _is_unhealthy(state, health) for name, health in with_health if health is not None}

    def policies_on(self, state: NodeState) -> tuple[Policy, ...]:
        """Policies that act on a node."""
        if state.policies is None:
            labels, opts_out = state.labels, state.do_not_evict
            state.history_policies = tuple(policy for policy in self.policies if selects_node(policy, labels))
            state.policies = tuple(
                policy for policy in state.history_policies if selects_node(policy, labels, do_not_evict=opts_out)
            )
        return state.policies

    def invalid_values(self, state: NodeState) -> dict[str, TaintVerdict]:
        """Verdicts, by history name, on values that have the wrong type for the policy or that a pod cannot compare."""
        judged, policies = list(state.class_verdicts.values()), self.policies_on(state)
        own = (taint for taint, _ in state.taints() if taint.origin is None)  # those of devices concern pods only
        acting = ((taint, self.evaluator.acting_on(taint, policies)) for taint in own)
        if any(by is not None and is_invalid(taint.value, by[1].value_type) for taint, by in acting):
            judged.append(self._evaluate(state, _NO_POD, policies))
        found: dict[str, TaintVerdict] = {}
        for verdicts, _ in judged:
            for verdict in verdicts:
                if verdict.invalid:
                    found.setdefault(history_name(verdict.taint), verdict)
        return found

    def count_pods(self, state: NodeState, pod_class: PodClass, by: int) -> None:
        """Add ``by`` pods of a class to a node; ``by`` may be negative.

        Changes of policies and of namespace labels count when the node is evaluated again.
        """
        state.staying = None
        if not state.pods:
            self.recount_pods(state)
            return
        for policy in self.policies_on(state):
            if self._may_evict(policy, pod_class):
                state.population.change(policy.name, by)
                self.population.change(policy.name, by)

    def recount_pods(self, state: NodeState) -> None:
        """Count again how many pods of a node each policy may evict."""
        for name, pods in state.population.items():
            self.population.change(name, -pods)
        state.population = Tally()
        for pod in state.pods.values():
            self.count_pods(state, pod.shared, 1)

    def _may_evict(self, policy: Policy, pod_class: PodClass) -> bool:
        """True if a policy may evict pods of a class. A policy for devices only evicts pods that have such a device."""
        if policy not in self.policies_for(pod_class):
            return False
        if policy.taints:
            return True
        drivers = {use.device.driver for use in pod_class.devices}
        return bool(drivers) and any(not selector.driver or selector.driver in drivers for selector in policy.devices)

    def policies_for(self, pod_class: PodClass) -> tuple[Policy, ...]:
        """Policies that may evict pods of a class."""
        labels = self._namespaces.get(pod_class.namespace)
        policies, labelled, found = self._selecting.get(pod_class, (None, None, ()))
        if policies is not self.policies or labelled is not labels:
            found = tuple(policy for policy in self.policies if not exclusion(policy, pod_class, labels))
            self._selecting[pod_class] = self.policies, labels, found
        return found


def _is_unhealthy(state: NodeState, health: ZoneHealth) -> bool:
    taints = () if state.node is None else state.node.taints
    return any(match(toleration, taint) is Match.HOLDS for taint, _ in taints for toleration in health.tolerations)
