"""Which policies select what, and the resulting verdicts: computed once for all pods of a class on a node."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from weakref import WeakKeyDictionary

from taintwarden.engine.evaluate import Evaluator, TaintVerdict, selects_node, selects_pod
from taintwarden.engine.machine.cluster import Cluster, NodeState, history_name
from taintwarden.engine.model import Gates, PodClass, Policy, Profile, Toleration, Tolerations
from taintwarden.engine.profiles import Profiles, selects

MAX_ALIKE = 100
"""On one node. Most workloads have the same tolerations, but each pod of a tenant may have others."""

_Profiled = WeakKeyDictionary[PodClass, tuple[tuple[Profile, ...], Tolerations]]


class Verdicts:
    """The policies and profiles in force, the namespaces that policies may select by, and the resulting verdicts."""

    def __init__(self, gates: Gates) -> None:
        self.evaluator = Evaluator(gates)
        self.policies: tuple[Policy, ...] = ()
        self._namespaces: dict[str, dict[str, str]] = {}
        self._selecting: WeakKeyDictionary[PodClass, tuple[Policy, ...]] = WeakKeyDictionary()
        self._profiles = Profiles()
        self._profiled: defaultdict[str, _Profiled] = defaultdict(WeakKeyDictionary)
        """Namespace -> the profiles of each class, and all its tolerations including theirs."""

    def set_policies(self, policies: Iterable[Policy]) -> None:
        """The policies in force changed. The caller discards what was computed for nodes."""
        self.policies = tuple(sorted(policies, key=lambda policy: policy.name))
        self._selecting.clear()

    def set_namespace(self, name: str, labels: dict[str, str] | None) -> Collection[PodClass]:
        """A namespace has these labels, or is gone. Returns the classes that other policies select because of it.

        The caller discards what was computed for them on nodes.
        """
        if self._namespaces.get(name) == labels:
            return frozenset()
        if labels is None:
            del self._namespaces[name]
            self._profiled.pop(name, None)
        else:
            self._namespaces[name] = labels
        if not any(policy.namespace_selector.requirements for policy in self.policies):
            return frozenset()
        changed = []
        for pod_class, before in list(self._selecting.items()):
            if pod_class.namespace == name:
                del self._selecting[pod_class]
                if self.selecting(pod_class) != before:
                    changed.append(pod_class)
        return frozenset(changed)

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """The labels of a namespace; None if it is not known."""
        return self._namespaces.get(name)

    def set_profile(self, namespace: str, name: str, profile: Profile | None) -> Collection[PodClass]:
        """A profile was set, or is gone. Returns the classes whose tolerations changed because of it.

        The caller discards what was computed for them on nodes.
        """
        before = self._profiles.put(namespace, name, profile)
        changed = []
        for pod_class in list(self._profiled[namespace]):
            had = before if before is not None and selects(before, pod_class) else None
            has = profile if profile is not None and selects(profile, pod_class) else None
            if had is has:
                continue
            del self._profiled[namespace][pod_class]
            if _tolerations_of(had) != _tolerations_of(has):
                changed.append(pod_class)
            else:  # this class is not evaluated again, and its profile may change once more
                self._profile(pod_class)
        return frozenset(changed)

    def profiles(self) -> list[Profile]:
        """All profiles in force, by namespace and name."""
        return list(self._profiles)

    def profiles_of(self, pod_class: PodClass) -> tuple[Profile, ...]:
        """The profiles that select pods of a class, by name."""
        return self._profile(pod_class)[0]

    def tolerations(self, pod_class: PodClass) -> Tolerations:
        """All tolerations of pods of a class: their own and those of profiles."""
        return self._profile(pod_class)[1]

    def _profile(self, pod_class: PodClass) -> tuple[tuple[Profile, ...], Tolerations]:
        profiled = self._profiled[pod_class.namespace]
        found = profiled.get(pod_class)
        if found is None:
            profiles = self._profiles.of(pod_class)
            found = profiled[pod_class] = (profiles, self._profiles.tolerations(pod_class, profiles))
        return found

    def of(self, state: NodeState, pod_class: PodClass) -> tuple[TaintVerdict, ...]:
        """The verdicts on pods of a class on a node, one for each taint that a policy acts on."""
        verdicts = state.verdicts.get(pod_class)
        if verdicts is None:
            verdicts = state.verdicts[pod_class] = self.compute(state, pod_class)
            state.evicting[pod_class] = tuple(verdict for verdict in verdicts if verdict.evicts)
        return verdicts

    def evicting(self, state: NodeState, pod_class: PodClass) -> tuple[TaintVerdict, ...]:
        """The verdicts of these that evict pods, now or later."""
        self.of(state, pod_class)
        return state.evicting[pod_class]

    def compute(self, state: NodeState, pod_class: PodClass) -> tuple[TaintVerdict, ...]:
        """The same for a class that need not have a pod on the node."""
        if state.node is None or not state.node.taints:
            return ()
        selecting = self.selecting(pod_class)
        policies = tuple([policy for policy in self.select(state) if policy in selecting])
        if not policies:
            return ()
        tolerations = self.tolerations(pod_class)
        grace_seconds = pod_class.grace_seconds if any(policy.reclaim for policy in policies) else 0
        alike = (tolerations, policies, grace_seconds)
        found = state.alike.get(alike)
        if found is None:
            if len(state.alike) >= MAX_ALIKE:
                state.alike.clear()
            found = state.alike[alike] = self.evaluator.verdicts(pod_class, tolerations, state.taints(), policies)
        return found

    def select(self, state: NodeState) -> tuple[Policy, ...]:
        """The policies that act on a node."""
        if state.policies is None:
            state.policies = tuple(policy for policy in self.policies if selects_node(policy, state.labels))
        return state.policies

    def invalid(self, state: NodeState) -> dict[str, TaintVerdict]:
        """The taints of a node with a value that cannot be compared for a pod on it, each with the verdict."""
        found: dict[str, TaintVerdict] = {}
        for verdicts in state.verdicts.values():
            for verdict in verdicts:
                if verdict.invalid:
                    found.setdefault(history_name(verdict.taint), verdict)
        return found

    def population(self, policy: Policy, cluster: Cluster) -> int:
        """How many pods the policy may evict."""
        if not policy.node_selector.requirements:
            return sum(pods for one, pods in cluster.classes.items() if policy in self.selecting(one))
        nodes = (state for state in cluster.nodes.values() if policy in self.select(state))
        return sum(policy in self.selecting(pod.shared) for state in nodes for pod in state.pods.values())

    def selecting(self, pod_class: PodClass) -> tuple[Policy, ...]:
        """The policies that may evict pods of a class."""
        found = self._selecting.get(pod_class)
        if found is None:
            labels = self.namespace_labels(pod_class.namespace)
            found = tuple(policy for policy in self.policies if selects_pod(policy, pod_class, labels))
            self._selecting[pod_class] = found
        return found


def _tolerations_of(profile: Profile | None) -> tuple[Toleration, ...]:
    return () if profile is None else profile.tolerations
