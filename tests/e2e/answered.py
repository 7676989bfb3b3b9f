"""Evictions as operators log them."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

ANSWER_SECONDS = 30.0


def lateness(logs: Callable[[], Iterable[Mapping[str, Any]]], pods: str, number: int) -> list[float]:
    """How late each eviction of a pod with ``pods`` in its name was, once so many are logged.

    A pod is gone before the operator has read the answer. After ``ANSWER_SECONDS``: those that there are.
    """
    ends_at = time.monotonic() + ANSWER_SECONDS
    while True:
        settled = [line for line in logs() if line.get("event") == "eviction-settled" and pods in line.get("pod", "")]
        found = [line["lateness"] for line in settled if line.get("outcome") == "evicted"]
        if len(found) >= number or time.monotonic() > ends_at:
            return found
        time.sleep(0.1)
