"""A token bucket on the monotonic clock, so that a stepping wall clock opens no limit."""


class TokenBucket:
    """Admits ``burst`` at once and ``rate`` per second in the long run.

    Args:
        rate: tokens per second, above 0.
        burst: how many tokens it holds at most, at least 1. It starts full.

    """

    def __init__(self, rate: float, burst: int) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = float(burst)
        self._filled_at: float | None = None

    def available_at(self, now: float) -> float:
        """When a token will be there: ``now`` if there is one."""
        self._fill(now)
        return now if self._tokens >= 1 else now + (1 - self._tokens) / self.rate

    def take(self, now: float) -> None:
        """Take one token, which :meth:`available_at` said is there."""
        self._fill(now)
        self._tokens -= 1

    def resize(self, rate: float, burst: int, now: float) -> None:
        """Apply a changed limit at once. What has been used stays used: a change never refills the bucket."""
        self._fill(now)
        used = self.burst - self._tokens
        self.rate, self.burst = rate, burst
        self._tokens = burst - used

    def _fill(self, now: float) -> None:
        if self._filled_at is not None and now > self._filled_at:
            self._tokens = min(float(self.burst), self._tokens + (now - self._filled_at) * self.rate)
        if self._filled_at is None or now > self._filled_at:
            self._filled_at = now
