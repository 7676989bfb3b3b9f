"""The labels by which the scheduler avoids nodes that are not tolerated.

The scheduler compares integers of node labels in a pod's node affinity. So the values of selected taints are repeated
as labels of the node; what a pod requires of them is not the operator's.
"""

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

__all__ = [
    "Kept",
    "Label",
    "NodeLabels",
    "encode_version",
    "is_mirror_label",
    "keys_of",
    "mirrored",
    "neutral_labels",
    "node_labels",
    "value_label",
    "version_labels",
    "wanted_labels",
]
