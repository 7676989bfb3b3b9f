"""Pods on their way out of a node: evicted by us, or terminating for any reason."""

from collections import Counter

from taintwarden.engine.limits.refusal import PER_NODE, Refusal
from taintwarden.engine.model import Instant, Pod

OVERDUE_SECONDS = 15.0
"""A pod that outstays its grace by so much is on a node that does not answer, and holds up nobody any more."""


class Departures:
    """Counts them by node. Times are wall clock, since they come from ``deletionTimestamp``."""

    def __init__(self) -> None:
        self._leaving: dict[str, str] = {}
        self._number: Counter[str] = Counter()
        self._terminating: dict[str, dict[str, float]] = {}

    def leave(self, pod: Pod) -> None:
        """An eviction is on its way."""
        if pod.uid not in self._leaving:
            self._leaving[pod.uid] = pod.node
            self._number[pod.node] += 1

    def is_leaving(self, uid: str) -> bool:
        """Whether an eviction is on its way, or may have been carried out."""
        return uid in self._leaving

    def stay(self, uid: str) -> None:
        """It did not happen, or the pod is gone, or now known to be terminating."""
        node = self._leaving.pop(uid, None)
        if node is not None:
            self._number[node] -= 1
            if not self._number[node]:
                del self._number[node]

    def terminating(self, uid: str, node: str, until: float | None) -> None:
        """A pod terminates until then; None: it is gone."""
        if until is not None:
            self._terminating.setdefault(node, {})[uid] = until + OVERDUE_SECONDS
        elif node in self._terminating:
            self._terminating[node].pop(uid, None)
            if not self._terminating[node]:
                del self._terminating[node]

    def uids(self) -> list[tuple[str, str]]:
        """UID and node of all that terminate."""
        return [(uid, node) for node, uids in self._terminating.items() for uid in uids]

    def refuse(self, pod: Pod, most: int, now: Instant) -> Refusal | None:
        """Whether ``most`` other pods of its node are on their way out already."""
        if pod.uid in self._leaving:
            return None
        node = pod.node
        terminating = self._terminating.get(node, {})
        overdue_at = [until for until in terminating.values() if until > now.wall]
        count = self._number[node] + len(overdue_at)
        if count < most:
            return None
        until = now.monotonic + min(overdue_at) - now.wall if overdue_at else None
        return Refusal(PER_NODE, until, key(node), f"{count} pods of node {node} are on their way out")


def key(node: str) -> str:
    """Who shares a refusal."""
    return f"node/{node}"
