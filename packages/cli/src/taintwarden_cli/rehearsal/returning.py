"""Finds pods that the scheduler may put back on a node that they have to leave.

kube-scheduler reads native tolerations and node affinity. A pod with a native ``Exists`` beside a comparison in its
annotation or profile comes back to the node it was evicted from, unless placement or the extender keeps it off.
"""

from collections.abc import Collection, Iterator

from taintwarden.engine.derived import derivations
from taintwarden.engine.machine import View
from taintwarden.engine.model import Gates, PodClass, Taint, Tolerations
from taintwarden.engine.operators import Operator
from taintwarden_cli.rehearsal.node_requirements import NodeRequirements, labels_of
from taintwarden_placement.admission.own_objects import INJECT
from taintwarden_placement.node_labels import wanted_labels
from taintwarden_placement.node_labels.names import LabelSubject, subjects_of
from taintwarden_placement.scheduling.feasibility import REPELLING, Demand, NodeFilter

REMEDY = (
    f"set placement: true for the taint in the policy and label the namespace {INJECT}=true, "
    "or use the scheduler extender"
)
"""How to keep pods off nodes that they have to leave."""


class ReturnFinder:
    """Finds the pods of a cluster that may come back, and their nodes.

    Args:
        view: the view of a machine that was fed the cluster.
        injected: the namespaces in which the webhook adds node affinity.
        has_extender: True if the scheduler extender runs. That kube-scheduler calls it is assumed.

    """

    def __init__(self, view: View, gates: Gates, injected: Collection[str], *, has_extender: bool) -> None:
        self._view = view
        self._gates = gates
        self._injected = injected
        self._has_extender = has_extender

    def nodes(self, pod_class: PodClass, requirements: NodeRequirements) -> Iterator[str]:
        """The names of the nodes that a pod has to leave and that the scheduler accepts for it."""
        native, node_filter = self._native(pod_class), requirements.as_filter(self._gates)
        for name in () if self._has_extender else sorted(self._view.nodes):
            node = self._view.node(name)
            verdicts = self._view.verdicts(name, pod_class)
            evicting = [verdict.taint for verdict in verdicts if verdict.evicts and verdict.taint.origin is None]
            if node is None or not evicting or any(self._is_placed(pod_class, taint.key) for taint in evicting):
                continue
            # The labels once the operator has written them.
            labels = wanted_labels(node.node, self._view.policies).applied_to(labels_of(node.node))
            taints = [taint for taint, _ in node.taints if not taint.source]
            if native.refusal(taints, {}) is None and node_filter.refusal((), labels) is None:
                yield name

    def uncompared_keys(self, pod_class: PodClass, requirements: NodeRequirements) -> list[str]:
        """The keys of the :func:`compared_taints` that the scheduler does not compare."""
        if self._has_extender:
            return []
        native = self._native(pod_class)
        found = {
            taint.key
            for taint in compared_taints(self._view, pod_class)
            if (taint.source or native.refusal([taint], {}) is None)
            and not _names_labels(requirements, taint.key)
            and not self._is_placed(pod_class, taint.key)
        }
        return sorted(found)

    def _native(self, pod_class: PodClass) -> NodeFilter:
        return NodeFilter(Demand(Tolerations(pod_class.tolerations.native)), self._gates)

    def _is_placed(self, pod_class: PodClass, key: str) -> bool:
        """True if the webhook gives new pods of the class node affinity for the key."""
        if pod_class.namespace not in self._injected or pod_class.labels.get(INJECT) == "false":
            return False
        # Policies in mode DryRun label no node until they enforce, but count.
        selectors = (selector for policy in self._view.policies_for(pod_class) for selector in policy.taints)
        return any(selector.placement and selector.key == key for selector in selectors)


def compared_taints(view: View, pod_class: PodClass) -> list[Taint]:
    """The taints, without values, that policies act on and that extended tolerations of a class judge by value."""
    derived = {key: derivation.text for key, derivation in derivations(view.policies).items()}
    named = [one for one in view.tolerations_of(pod_class).extended if one.operator != Operator.EXISTS]
    pairs = {(one.key, effect) for one in named for effect in ([one.effect] if one.effect else REPELLING)}
    taints = [Taint(key, effect=effect, source=derived.get(key, "")) for key, effect in sorted(pairs)]
    policies = view.policies_for(pod_class)
    return [taint for taint in taints if any(policy.selector_for(taint) for policy in policies)]


def _names_labels(requirements: NodeRequirements, key: str) -> bool:
    """True if each of the pod's terms has a requirement on the labels that repeat the taint."""
    named = [subjects_of(one.key for one in term.match_expressions) for term in requirements.terms or ()]
    return bool(named) and all(LabelSubject(key) in keys for keys in named)
