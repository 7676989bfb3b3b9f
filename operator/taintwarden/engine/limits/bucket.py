"""A token bucket on the monotonic clock, so that a stepping wall clock opens no limit."""

from taintwarden.engine.model import MonotonicTime, later

ROUNDING = 1e-9
"""Of a token: sums of floating point must not make one late that is there."""


class TokenBucket:
    """Admits ``burst`` at once after a pause, and ``rate`` per second in the long run.

    Args:
        rate: tokens per second, above 0.
        burst: how many tokens it holds at most, at least 1.
        empty_at: when it held none. A process that has just begun to act does not know what the one before it spent,
            so it begins with nothing and a restart opens no limit.

    """

    def __init__(self, rate: float, burst: int, empty_at: MonotonicTime) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = 0.0
        self._filled_at = empty_at

    def available_at(self, now: MonotonicTime) -> MonotonicTime:
        """When a token will be there: ``now`` if there is one."""
        self._fill(now)
        return now if self._tokens >= 1 - ROUNDING else later(now, (1 - self._tokens) / self.rate)

    def take(self, now: MonotonicTime) -> None:
        """Take one token, which :meth:`available_at` said is there."""
        self._fill(now)
        self._tokens -= 1

    def give_back(self) -> None:
        """A token that was taken was not used."""
        self._tokens = min(float(self.burst), self._tokens + 1)

    def resize(self, rate: float, burst: int, now: MonotonicTime) -> None:
        """Apply a changed limit at once: a change never fills the bucket, and leaves no debt."""
        self._fill(now)
        self.rate, self.burst = rate, burst
        self._tokens = min(self._tokens, float(burst))

    def is_full(self, now: MonotonicTime) -> bool:
        """Whether it is as if it had never been used."""
        self._fill(now)
        return self._tokens >= self.burst

    def _fill(self, now: MonotonicTime) -> None:
        if now > self._filled_at:
            self._tokens = min(float(self.burst), self._tokens + (now - self._filled_at) * self.rate)
            self._filled_at = now
