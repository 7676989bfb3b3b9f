"""Node labels by which the scheduler avoids nodes that a pod does not tolerate.

A pod's node affinity can compare integers in node labels. The values of selected taints are therefore repeated as
labels of the node. ``wanted`` computes the labels that a node should have; ``labeller`` writes them in the operator's
process. The operator's machine does not use them: it decides by taints alone.
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
