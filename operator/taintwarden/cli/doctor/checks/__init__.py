"""The checks, each a function from a ``Context`` to findings."""

from taintwarden.cli.doctor.check import MADE
from taintwarden.cli.doctor.checks import evictions, nodes, operation, placement, policies, tolerations

_MODULES = (operation, policies, evictions, tolerations, nodes, placement)
CATALOGUE = tuple(one for module in _MODULES for one in MADE if one.run.__module__ == module.__name__)
"""All checks, in the order in which they are reported."""

__all__ = ["CATALOGUE"]
