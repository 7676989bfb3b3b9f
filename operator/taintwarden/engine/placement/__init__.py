"""Placement without a scheduler plugin: labels and affinity, so that the scheduler avoids nodes that are not tolerated.

The scheduler compares integers of node labels in a pod's node affinity. So the values of selected taints are repeated
as labels of the node, and a pod's extended tolerations become requirements on them. What cannot be expressed exactly
excludes a node and is reported: a node that the pod does not tolerate is never included.
"""

from taintwarden.engine.affinity import Term
from taintwarden.engine.placement.affinity_translation import MAX_TERMS, native_affinity
from taintwarden.engine.placement.encoding import encode_version
from taintwarden.engine.placement.labels import Kept, is_mirror_label, keys_of, mirrored, value_label
from taintwarden.engine.placement.mirrored_labels import (
    Label,
    NodeLabels,
    neutral_labels,
    node_labels,
    version_labels,
    wanted_labels,
)
from taintwarden.engine.placement.requirements import REQUIRED_EFFECTS, Alternatives, preferences, requirements

__all__ = [
    "MAX_TERMS",
    "REQUIRED_EFFECTS",
    "Alternatives",
    "Kept",
    "Label",
    "NodeLabels",
    "Term",
    "encode_version",
    "is_mirror_label",
    "keys_of",
    "mirrored",
    "native_affinity",
    "neutral_labels",
    "node_labels",
    "preferences",
    "requirements",
    "value_label",
    "version_labels",
    "wanted_labels",
]
