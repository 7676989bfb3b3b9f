"""The labels of nodes by which the scheduler avoids nodes that are not tolerated.

The scheduler compares integers of node labels in a pod's node affinity. So the values of selected taints are repeated
as labels of the node. ``wanted`` says which labels a node should have; ``labeller`` writes them, in the operator's
process and beside its machine, which decides by taints alone.
"""

from taintwarden_placement.node_labels.encoding import encode_version
from taintwarden_placement.node_labels.wanted import (
    Label,
    NodeLabels,
    neutral_labels,
    node_labels,
    version_labels,
    wanted_labels,
)

__all__ = [
    "Label",
    "NodeLabels",
    "encode_version",
    "neutral_labels",
    "node_labels",
    "version_labels",
    "wanted_labels",
]
