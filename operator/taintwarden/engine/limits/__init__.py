"""What holds a due pod back. Each limit answers with a typed refusal; the machine acts on it and reports it once."""

from taintwarden.engine.limits.admission import Limiter
from taintwarden.engine.limits.refusal import Refusal

__all__ = ["Limiter", "Refusal"]
