"""The mass-eviction guard of one policy. Forbidden here: the other limits, and reading the state of the machine.

========== =======================================================================================================
``wave``   what counts of the pods that have to leave
``latch``  whether the guard is tripped, what it holds, and the most that it counted
``ledger`` the pods that were evicted within the window, and those for which a call is reserved
``record`` what is stored of all that
``guard``  the three together
========== =======================================================================================================
"""

from taintwarden.engine.guard.guard import Guard, Pace, Turn
from taintwarden.engine.guard.latch import ALL
from taintwarden.engine.guard.record import Evictions, GuardRecord
from taintwarden.engine.guard.wave import BudgetKey, Due

__all__ = ["ALL", "BudgetKey", "Due", "Evictions", "Guard", "GuardRecord", "Pace", "Turn"]
