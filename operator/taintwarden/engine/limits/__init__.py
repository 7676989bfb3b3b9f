"""The limits on due evictions. Each limit returns a typed refusal; the machine acts on it and reports it.

``protocol`` defines a limit, ``limiter`` is the list of them.
"""

from taintwarden.engine.limits.limiter import Limiter
from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Settlement
from taintwarden.engine.limits.refusal import Refusal

__all__ = ["EvictionRequest", "FreedKeys", "Limiter", "Refusal", "Settlement"]
