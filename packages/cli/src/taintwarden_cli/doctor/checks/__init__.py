"""The checks, each a function from a ``Context`` to findings."""

from taintwarden_cli.doctor.check import REGISTERED
from taintwarden_cli.doctor.checks import evictions, nodes, operation, policy_checks, toleration_checks

_MODULES = (operation, policy_checks, evictions, toleration_checks, nodes)
CATALOGUE = tuple(check for module in _MODULES for check in REGISTERED if check.run.__module__ == module.__name__)
"""All checks, in the order in which they are reported."""

__all__ = ["CATALOGUE"]
