"""The limits of a policy that limits nothing, as users write it: each is switched off by its own value."""

from typing import Any

LIMITS_OFF: dict[str, Any] = {
    "evictionsPerSecond": 10_000,
    "perWorkload": {"maxUnavailable": "100%"},
    "guard": {"maxPercent": 100},
    "bounce": {"maxBackoffSeconds": 0},
}
