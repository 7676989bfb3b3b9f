"""Pods that leave a node: evicted by Taintwarden, or terminating for any reason."""

from collections.abc import Iterable

import msgspec

from taintwarden.engine.limits.protocol import EvictionRequest, Freed, Limit
from taintwarden.engine.limits.refusal import NODE, Refusal, Whom
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Policy, WallTime, later
from taintwarden.engine.tally import Tally

LONGEST_SECONDS = 600.0
"""A terminating pod counts so long at most, whatever its grace period: it must not delay others for years."""
OVERDUE_SECONDS = 15.0
"""A pod that exceeds its grace period by this is on a node that does not respond, and no longer counts."""


class Leaving(msgspec.Struct, frozen=True, gc=False):
    """A pod that had to leave its node and terminates there, and when its grace period ends."""

    pod: Pod
    until: WallTime
    policies: tuple[str, ...]

    def is_stuck(self, now: WallTime) -> bool:
        """Whether it should have ended."""
        return now > self.until + OVERDUE_SECONDS


class Departures(Limit):
    """Counts these pods by node.

    Args:
        freed: receives the key of a node from which another pod may be evicted.

    """

    def __init__(self, freed: Freed) -> None:
        self._freed = freed
        self._is_limited = False
        self._leaving: dict[str, str] = {}
        self._number: Tally[str] = Tally()
        self._terminating: dict[str, dict[str, MonotonicTime]] = {}
        """Node -> UID -> until when it counts."""
        self.due: dict[str, Leaving] = {}
        """By UID the terminating pods that had to leave."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Take over changed limits at once."""
        del now
        self._is_limited = any(policy.limits.per_node.max_concurrent is not None for policy in policies)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """``perNode.maxConcurrent``."""
        most = request.policy.limits.per_node.max_concurrent
        return None if request.is_hard or most is None else self.refuse(request.pod, most, request.now)

    def reserve(self, request: EvictionRequest) -> None:
        """Count the pod, also if its policy does not set this limit."""
        self.leave(request.pod)

    def leave(self, pod: Pod) -> None:
        """An eviction of this pod is in progress."""
        if pod.uid not in self._leaving:
            self._leaving[pod.uid] = pod.node
            self._number[pod.node] += 1

    def is_leaving(self, uid: str) -> bool:
        """Whether an eviction is in progress, or may have been carried out."""
        return uid in self._leaving

    def stay(self, uid: str) -> None:
        """The eviction did not happen, or the watch knows better."""
        node = self._leaving.pop(uid, None)
        if node is not None:
            self._number.take(node)
            self._free(node)

    def gone(self, pod: Pod, now: Instant) -> None:
        """A pod is gone or terminating: the watch decides from now on."""
        del now
        self.stay(pod.uid)

    def terminating(self, uid: str, node: str, until: float | None, now: Instant) -> None:
        """A pod terminates ``until`` its ``deletionTimestamp``; None: it is gone."""
        if until is not None:
            # Converted now: a later step of the clock makes no pod overdue.
            counts_until = later(min(now.monotonic_at(until), later(now.monotonic, LONGEST_SECONDS)), OVERDUE_SECONDS)
            known = self._terminating.setdefault(node, {})
            known[uid] = min(counts_until, known.get(uid, counts_until))  # no later event prolongs it
        elif node in self._terminating:
            self._terminating[node].pop(uid, None)
            if not self._terminating[node]:
                del self._terminating[node]
        if until is None:
            self.due.pop(uid, None)
            self._free(node)

    def _free(self, node: str) -> None:
        if self._is_limited:  # else no refusal of a node exists
            self._freed.add(key(node))

    def uids(self) -> list[tuple[str, str]]:
        """UID and node of all terminating pods."""
        return [(uid, node) for node, uids in self._terminating.items() for uid in uids]

    def refuse(self, pod: Pod, most: int, now: Instant) -> Refusal | None:
        """Refuse if ``most`` other pods are already leaving its node."""
        node = pod.node
        counted = [until for until in self._terminating.get(node, {}).values() if until > now.monotonic]
        count = self._number[node] - (pod.uid in self._leaving) + len(counted)
        if count < most:
            return None
        until = min(counted, default=None)
        pods = "1 pod is" if count == 1 else f"{count} pods are"
        return Refusal(
            NODE, until, Whom.PODS, key(node), f"{pods} being evicted from node {node}, or terminating there"
        )


def key(node: str) -> str:
    """The key of a refusal, shared by all pods of the node."""
    return f"node/{node}"
