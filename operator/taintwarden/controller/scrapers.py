"""Authorization of clients that read ``/metrics``, by the API server, whose answers are cached for a short time."""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum

import structlog

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.model import MonotonicTime, later
from taintwarden.kube.calls.access import may_get, review_token
from taintwarden.kube.errors import KubeError
from taintwarden.kube.http.client import Client

METRICS_PATH = "/metrics"
ALLOWED_SECONDS, REFUSED_SECONDS = 60.0, 10.0
"""Seconds for which an answer is cached. A right that is revoked or granted takes effect after this time."""
KNOWN_SECONDS = 600.0
"""Seconds after its last review for which an allowed token is reviewed even if unknown ones have used up the rate."""
MAX_REMEMBERED = 64
"""Maximum number of allowed tokens cached, and of refused ones. Prometheus has one token, and a new one every hour."""
REVIEWS_PER_SECOND, REVIEW_BURST = 5.0, 20
"""Maximum rate and burst of reviews of unknown tokens. Each review costs the API server two requests."""

log = structlog.get_logger()


class Access(Enum):
    """Result of a check of access to the metrics, with the reason that a refused client gets."""

    ALLOWED = "allowed"
    UNKNOWN = "the token is missing or not known"
    FORBIDDEN = "the token lacks the right to get /metrics"
    BUSY = "too many unknown tokens"
    UNDECIDED = "the API server did not review whether the token may get /metrics"


class Scrapers:
    """Clients of ``/metrics``, checked by TokenReview and SubjectAccessReview. If these fail, access is denied.

    Args:
        client: sends the reviews.
        monotonic: reads the monotonic clock.

    """

    def __init__(self, client: Client, monotonic: Callable[[], MonotonicTime]) -> None:
        self._client = client
        self._monotonic = monotonic
        self._allowed: OrderedDict[bytes, tuple[MonotonicTime, Access]] = OrderedDict()
        """Digest of a token -> time and result of its last review."""
        self._refused: OrderedDict[bytes, tuple[MonotonicTime, Access]] = OrderedDict()
        """Digest of a token -> time and result. Kept apart, so that refused tokens never displace allowed ones."""
        full = later(monotonic(), -REVIEW_BURST / REVIEWS_PER_SECOND)
        self._bucket = TokenBucket(REVIEWS_PER_SECOND, REVIEW_BURST, full)

    async def check_access(self, authorization: str) -> Access:
        """Check the access of a client with this ``Authorization`` header."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip() or not token.isascii():  # other bytes may be no text at all
            return Access.UNKNOWN
        digest, now = hashlib.sha256(token.strip().encode()).digest(), self._monotonic()
        known = self._allowed.get(digest) or self._refused.get(digest)
        at, before = known or (MonotonicTime(-math.inf), Access.UNKNOWN)
        was_allowed = before is Access.ALLOWED
        if now < at + (ALLOWED_SECONDS if was_allowed else REFUSED_SECONDS):
            return before
        if not was_allowed or now >= at + KNOWN_SECONDS:
            if self._bucket.available_at(now) > now:
                return Access.BUSY
            self._bucket.take(now)
        try:
            user = await review_token(self._client, token.strip())
            found = Access.UNKNOWN
            if user is not None:
                found = Access.ALLOWED if await may_get(self._client, user, METRICS_PATH) else Access.FORBIDDEN
        except KubeError as error:
            log.warning("metrics-access-unknown", reason=str(error))
            return Access.UNDECIDED
        self._allowed.pop(digest, None)
        self._refused.pop(digest, None)
        remembered = self._allowed if found is Access.ALLOWED else self._refused
        remembered[digest] = (self._monotonic(), found)
        if len(remembered) > MAX_REMEMBERED:
            remembered.popitem(last=False)
        return found
