"""Translation of a pod's extended tolerations and node affinity into native requirements on node labels.

A node that the pod does not tolerate is never included. If a requirement cannot be expressed exactly, some nodes
that the pod tolerates are left out, and a fault reports that. Forbidden here: I/O, a clock, logging.
"""

from taintwarden_placement.affinity.affinity_translation import MAX_TERMS, native_affinity
from taintwarden_placement.affinity.requirements import REQUIRED_EFFECTS, Alternatives, requirements

__all__ = ["MAX_TERMS", "REQUIRED_EFFECTS", "Alternatives", "native_affinity", "requirements"]
