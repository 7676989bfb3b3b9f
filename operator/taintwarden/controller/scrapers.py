"""Who may read ``/metrics``: the API server says, and its answer counts for a short time."""

import hashlib
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
ALLOWED_SECONDS = 60.0
"""A revoked right ends after this time."""
REFUSED_SECONDS = 10.0
"""A right that is given begins after so long at the latest."""
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
        self._allowed: OrderedDict[bytes, MonotonicTime] = OrderedDict()
        """Digest of a token -> when it was allowed."""
        self._refused: OrderedDict[bytes, tuple[MonotonicTime, Access]] = OrderedDict()
        full = later(monotonic(), -REVIEW_BURST / REVIEWS_PER_SECOND)
        self._bucket = TokenBucket(REVIEWS_PER_SECOND, REVIEW_BURST, full)

    async def access(self, authorization: str) -> Access:
        """Whether the caller with this ``Authorization`` header gets the metrics."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Access.UNKNOWN
        digest, now = hashlib.sha256(token.strip().encode("utf-8", "replace")).digest(), self._monotonic()
        allowed_at = self._allowed.get(digest)
        if allowed_at is not None and now < allowed_at + ALLOWED_SECONDS:
            return Access.ALLOWED
        refused_at, refusal = self._refused.get(digest, (None, Access.UNKNOWN))
        if refused_at is not None and now < refused_at + REFUSED_SECONDS:
            return refusal
        if allowed_at is None or now >= allowed_at + KNOWN_SECONDS:
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
        self._remember(digest, found)
        return found

    def _remember(self, digest: bytes, found: Access) -> None:
        now = self._monotonic()
        self._allowed.pop(digest, None)
        self._refused.pop(digest, None)
        if found is Access.ALLOWED:
            self._allowed[digest] = now
        else:
            self._refused[digest] = (now, found)
        for remembered in (self._allowed, self._refused):
            if len(remembered) > MAX_REMEMBERED:
                remembered.popitem(last=False)
