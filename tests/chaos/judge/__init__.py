"""The judge: what happened, by the API server's audit log and objects; nothing of the product, nothing of the world.

Forbidden here: every import but the standard library, the official `kubernetes` client, and modules of this package.
"""

from chaos.judge.judge import Judge
from chaos.judge.verdict import Verdict

__all__ = ["Judge", "Verdict"]
