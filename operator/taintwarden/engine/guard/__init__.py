"""The mass-eviction guard of one policy: it trips before the first eviction of a wave that is too large.

It counts what *would* be evicted: in any window of time of its length, past evictions (``spent``) and future deadlines
(``forecast``) together. What has to survive a restart is in the ``record``. ``guard`` decides.
"""

from taintwarden.engine.guard.forecast import ROUNDING_SECONDS, Due
from taintwarden.engine.guard.guard import Guard, Turn
from taintwarden.engine.guard.record import GuardRecord

__all__ = ["ROUNDING_SECONDS", "Due", "Guard", "GuardRecord", "Turn"]
