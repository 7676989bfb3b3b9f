"""The mass-eviction guard of one policy. Forbidden here: the other limits, and reading the state of the machine.

========== =======================================================================================================
``wave``   the pods that have to leave, and the number of them that count
``latch``  the state of the guard (tripped or armed), its scope, and the highest counts since it tripped
``ledger`` the pods that were evicted within the window, and those for which a call is reserved
``guard``  the guard, which combines wave, latch and ledger
========== =======================================================================================================
"""

from taintwarden.engine.guard.guard import Guard, GuardTransition
from taintwarden.engine.guard.latch import ALL
from taintwarden.engine.guard.wave import BudgetKey, Due

__all__ = ["ALL", "BudgetKey", "Due", "Guard", "GuardTransition"]
