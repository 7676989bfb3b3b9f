"""What holds a due pod back. Each limit answers with a typed outcome; the machine acts on it and reports it once."""

from taintwarden.engine.limits.admission import Limiter, Refusal
from taintwarden.engine.limits.bucket import TokenBucket

__all__ = ["Limiter", "Refusal", "TokenBucket"]
