"""Who may read ``/metrics``: the API server says, and its answer counts for a short time."""

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
"""A revoked right ends after this time, and one that is given begins."""
KNOWN_SECONDS = 600.0
"""Who was allowed within this time is asked about whatever others do."""
MAX_REMEMBERED = 64
"""Of allowed and of refused tokens each: Prometheus has one, and another one every hour."""
REVIEWS_PER_SECOND, REVIEW_BURST = 5.0, 20
"""Unknown tokens of all clients: each costs the API server two requests."""

log = structlog.get_logger()


class Access(Enum):
    """Whether a caller gets the metrics."""

    ALLOWED = "allowed"
    UNKNOWN = "the token is missing or not known"
    FORBIDDEN = "the token lacks the right to get /metrics"
    BUSY = "too many unknown tokens"
    UNDECIDED = "the API server does not say whether the token may get /metrics"


class Scrapers:
    """Decides by TokenReview and SubjectAccessReview. If they fail, no client is admitted.

    Args:
        client: the session to use.
        monotonic: the clock.

    """

    def __init__(self, client: Client, monotonic: Callable[[], MonotonicTime]) -> None:
        self._client = client
        self._monotonic = monotonic
        self._allowed: OrderedDict[bytes, tuple[MonotonicTime, Access]] = OrderedDict()
        """Digest of a token -> since when."""
        self._refused: OrderedDict[bytes, tuple[MonotonicTime, Access]] = OrderedDict()
        """Apart, so that no unknown token takes the place of one that is allowed."""
        full = later(monotonic(), -REVIEW_BURST / REVIEWS_PER_SECOND)
        self._bucket = TokenBucket(REVIEWS_PER_SECOND, REVIEW_BURST, full)

    async def access(self, authorization: str) -> Access:
        """Whether the caller with this ``Authorization`` header gets the metrics."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Access.UNKNOWN
        digest, now = hashlib.sha256(token.strip().encode("utf-8", "replace")).digest(), self._monotonic()
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
