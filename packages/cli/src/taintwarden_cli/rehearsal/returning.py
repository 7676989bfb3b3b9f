"""Pods that the scheduler may put on a node that they have to leave again.

kube-scheduler reads native tolerations and node affinity. A pod with a native ``Exists`` beside a comparison in its
annotation or profile comes back to the node it was evicted from, unless placement or the extender keeps it off.
"""

from collections.abc import Collection, Iterator

from taintwarden.engine.derived import derivations
from taintwarden.engine.machine import View
from taintwarden.engine.model import Gates, PodClass, Taint, Tolerations
from taintwarden.engine.operators import Operator
from taintwarden_cli.rehearsal.places import Place, labels_of
from taintwarden_placement.admission.own_objects import INJECT
from taintwarden_placement.node_labels import wanted_labels
from taintwarden_placement.node_labels.names import LabelSubject, subjects_of
from taintwarden_placement.scheduling.feasibility import REPELLING, Demand, NodeFilter

REMEDY = (
    f"set placement: true for the taint in the policy and label the namespace {INJECT}=true, "
    "or use the scheduler extender"
)
"""What keeps such pods off."""


class Returning:
    """Judges pods of a cluster.

    Args:
        view: of a machine that knows the cluster.
        gates: which operators are enabled.
        injected: the namespaces in which the webhook adds node affinity.
        has_extender: the scheduler extender runs; whether kube-scheduler asks it cannot be seen.

    """

    def __init__(self, view: View, gates: Gates, injected: Collection[str], *, has_extender: bool) -> None:
        self._view = view
        self._gates = gates
        self._injected = injected
        self._has_extender = has_extender

    def nodes(self, pod_class: PodClass, place: Place) -> Iterator[str]:
        """The nodes that the scheduler accepts for a pod, and that the pod has to leave, by name."""
        native, judge = self._native(pod_class), place.judge(self._gates)
        for name in () if self._has_extender else sorted(self._view.nodes):
            node = self._view.node(name)
            verdicts = self._view.verdicts(name, pod_class)
            evicting = [one.taint for one in verdicts if one.evicts and one.taint.origin is None]
            if node is None or not evicting or any(self._is_placed(pod_class, taint.key) for taint in evicting):
                continue
            # As they are once the operator has written them.
            labels = wanted_labels(node.node, self._view.policies).applied_to(labels_of(node.node))
            taints = [taint for taint, _ in node.taints if not taint.source]
            if native.refusal(taints, {}) is None and judge.refusal((), labels) is None:
                yield name

    def keys(self, pod_class: PodClass, place: Place) -> list[str]:
        """The keys of taints that evict the pod by an extended toleration, and that the scheduler does not compare."""
        if self._has_extender:
            return []
        native = self._native(pod_class)
        found = {
            taint.key
            for taint in compared_taints(self._view, pod_class)
            if (taint.source or native.refusal([taint], {}) is None)
            and not _names_labels(place, taint.key)
            and not self._is_placed(pod_class, taint.key)
        }
        return sorted(found)

    def _native(self, pod_class: PodClass) -> NodeFilter:
        return NodeFilter(Demand(Tolerations(pod_class.tolerations.native)), self._gates)

    def _is_placed(self, pod_class: PodClass, key: str) -> bool:
        """Whether the webhook gives the pods that replace it node affinity for the key."""
        if pod_class.namespace not in self._injected or pod_class.labels.get(INJECT) == "false":
            return False
        # Also in mode DryRun, which labels no node until it enforces.
        selectors = (one for policy in self._view.policies_for(pod_class) for one in policy.taints)
        return any(one.placement and one.key == key for one in selectors)


def compared_taints(view: View, pod_class: PodClass) -> list[Taint]:
    """The taints, without values, that evict pods of a class by a comparison in their extended tolerations."""
    derived = {key: one.text for key, one in derivations(view.policies).items()}
    named = [one for one in view.tolerations_of(pod_class).extended if one.operator != Operator.EXISTS]
    pairs = {(one.key, effect) for one in named for effect in ([one.effect] if one.effect else REPELLING)}
    taints = [Taint(key, effect=effect, source=derived.get(key, "")) for key, effect in sorted(pairs)]
    policies = view.policies_for(pod_class)
    return [taint for taint in taints if any(policy.selector_for(taint) for policy in policies)]


def _names_labels(place: Place, key: str) -> bool:
    """Whether each of the pod's terms requires something of the labels that repeat the taint."""
    named = [subjects_of(requirement.key for requirement in term.match_expressions) for term in place.terms or ()]
    return bool(named) and all(LabelSubject(key) in keys for keys in named)
