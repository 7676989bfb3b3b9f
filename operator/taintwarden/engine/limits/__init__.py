"""What delays an eviction that is due. Each limit answers with a typed refusal; the machine acts on it and reports it.

``protocol`` is what a limit is, ``limiter`` the list of them.
"""

from taintwarden.engine.limits.limiter import Limiter
from taintwarden.engine.limits.protocol import Freed, Request, Reservation, Settlement
from taintwarden.engine.limits.refusal import Refusal

__all__ = ["Freed", "Limiter", "Refusal", "Request", "Reservation", "Settlement"]
