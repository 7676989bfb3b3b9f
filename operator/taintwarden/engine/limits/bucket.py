"""A token bucket on the monotonic clock, so that a step of the wall clock adds no tokens."""

from taintwarden.engine.model import MonotonicTime, later

ROUNDING = 1e-9
"""Tolerance in tokens, so that a floating-point error does not delay a token that is available."""


class TokenBucket:
    """Admits ``burst`` at once after a pause, and ``rate`` per second in the long run.

    Args:
        rate: tokens per second, above 0.
        burst: maximum number of tokens in the bucket, at least 1.
        empty_at: when the bucket contained no token. A new leader does not know what the previous leader spent, so it
            starts without tokens, and a restart exceeds no limit.

    """

    def __init__(self, rate: float, burst: int, empty_at: MonotonicTime) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = 0.0
        self._filled_at = empty_at

    def available_at(self, now: MonotonicTime) -> MonotonicTime:
        """Return when a token will be available; ``now`` if there is one."""
        self._fill(now)
        return now if self._tokens >= 1 - ROUNDING else later(now, (1 - self._tokens) / self.rate)

    def take(self, now: MonotonicTime) -> None:
        """Take one token, which has to be available by :meth:`available_at`."""
        self._fill(now)
        self._tokens -= 1

    def resize(self, rate: float, burst: int, now: MonotonicTime) -> None:
        """Apply a changed limit at once: a change adds no tokens, and never makes their number negative."""
        self._fill(now)
        self.rate, self.burst = rate, burst
        self._tokens = min(self._tokens, float(burst))

    def is_full(self, now: MonotonicTime) -> bool:
        """Return True if the bucket contains its full burst, as if it had never been used."""
        self._fill(now)
        return self._tokens >= self.burst

    def _fill(self, now: MonotonicTime) -> None:
        if now > self._filled_at:
            self._tokens = min(float(self.burst), self._tokens + (now - self._filled_at) * self.rate)
            self._filled_at = now
