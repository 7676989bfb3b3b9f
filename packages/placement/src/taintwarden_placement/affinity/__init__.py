"""A pod's extended tolerations and node affinity as native requirements on the labels of nodes.

What cannot be expressed exactly excludes a node and is reported: a node that the pod does not tolerate is never
included. Forbidden here: I/O, a clock, logging.
"""

from taintwarden_placement.affinity.affinity_translation import MAX_TERMS, native_affinity
from taintwarden_placement.affinity.requirements import REQUIRED_EFFECTS, Alternatives, requirements

__all__ = ["MAX_TERMS", "REQUIRED_EFFECTS", "Alternatives", "native_affinity", "requirements"]
