"""Which pod of a workload revision should be evicted next, so that the others are spread evenly.

``pods`` counts all running pods by class and node, ``tallies`` those that one topology spread constraint selects by
domain, ``candidates`` chooses.
"""

from taintwarden.engine.spread.candidates import Group
from taintwarden.engine.spread.pods import Spread

__all__ = ["Group", "Spread"]
