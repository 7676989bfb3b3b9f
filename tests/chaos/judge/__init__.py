"""The law of the simulated world, judging what happened by the API server's audit log and objects.

Forbidden here: every import but the standard library, the official `kubernetes` client, `simulated.world.law` with what
it needs, and modules of this package.
"""

from chaos.judge.judge import Judge
from chaos.judge.verdict import Verdict

__all__ = ["Judge", "Verdict"]
