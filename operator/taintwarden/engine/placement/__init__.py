"""Placement without a scheduler plugin: what nodes carry and pods require so that the scheduler avoids what evicts.

The scheduler compares integers of node labels in a pod's node affinity. So the values of selected taints stand on the
node as labels, and a pod's extended tolerations become requirements on them. Whatever cannot be said exactly leaves a
node out and is told: a node that would evict the pod is never let in.
"""

from taintwarden.engine.placement.encoding import encode_version
from taintwarden.engine.placement.labels import effect_label, is_mirror_label, value_label, version_label
from taintwarden.engine.placement.mirroring import NodeLabels, node_labels
from taintwarden.engine.placement.requirements import Alternatives, requirements
from taintwarden.engine.placement.terms import NodeOperator, NodeRequirement, Term

__all__ = [
    "Alternatives",
    "NodeLabels",
    "NodeOperator",
    "NodeRequirement",
    "Term",
    "effect_label",
    "encode_version",
    "is_mirror_label",
    "node_labels",
    "requirements",
    "value_label",
    "version_label",
]
