"""Pods that leave a node: those with eviction calls, and those that terminate.

A terminating pod *leaves by a policy* if the policy gives it a deadline, even if another client deleted it. Only such
pods count against ``perNode.maxConcurrent``, so a tenant who deletes and replaces their pods delays no others.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Limit
from taintwarden.engine.limits.refusal import NODE, Refusal, RefusalScope
from taintwarden.engine.model import Instant, MonotonicTime, Pod, WallTime, later
from taintwarden.engine.policy import Policy
from taintwarden.engine.tally import Tally

LONGEST_SECONDS = 600.0
"""Maximum seconds of a grace period for which a terminating pod counts. A longer one must not delay other pods."""
OVERDUE_SECONDS = 15.0
"""Seconds past its grace period after which a pod is stuck, as on a silent node, and no longer counts."""


class Departure(msgspec.Struct, frozen=True, gc=False):
    """A terminating pod: the end of its grace period, the end of its counting, and the policies that evict it."""

    pod: Pod
    until: WallTime
    counts_until: MonotonicTime
    policies: tuple[str, ...] = ()

    def is_stuck(self, now: WallTime) -> bool:
        """Return True if the pod should have ended."""
        return now > self.until + OVERDUE_SECONDS


class Departures(Limit):
    """Numbers of pods that leave each node.

    Args:
        freed: receives the key of a node from which another pod may be evicted.

    """

    def __init__(self, freed: FreedKeys) -> None:
        self._freed = freed
        self._is_limited = False
        self._leaving: dict[str, str] = {}
        self._number: Tally[str] = Tally()
        self._terminating: dict[str, dict[str, Departure]] = {}
        """Node -> UID -> the terminating pod."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed limits at once."""
        del now
        self._is_limited = any(policy.limits.per_node.max_concurrent is not None for policy in policies)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod as ``perNode.maxConcurrent`` requires."""
        most = request.policy.limits.per_node.max_concurrent
        return None if request.is_hard or most is None else self.refuse(request.pod, most, request.now)

    def reserve(self, request: EvictionRequest) -> None:
        """Count the pod, even if its policy does not set this limit."""
        self.leave(request.pod)

    def leave(self, pod: Pod) -> None:
        """Count a pod whose eviction is in progress."""
        if pod.uid not in self._leaving:
            self._leaving[pod.uid] = pod.node
            self._number[pod.node] += 1

    def stay(self, uid: str) -> None:
        """Stop counting a pod whose eviction did not happen, or whose watch event arrived."""
        node = self._leaving.pop(uid, None)
        if node is not None:
            self._number.take(node)
            self._free(node)

    def gone(self, pod: Pod, now: Instant) -> None:
        """Stop counting the eviction of a pod that is gone or terminating. Watch events decide from now on."""
        del now
        self.stay(pod.uid)

    def begin(self, pod: Pod, until: WallTime, now: Instant, policies: Iterable[str] = ()) -> None:
        """Count a terminating pod. ``until``: its ``deletionTimestamp``. ``policies``: those by which it leaves."""
        # Converted now: a later step of the wall clock does not change how long the pod counts.
        counts_until = later(min(now.monotonic_at(until), later(now.monotonic, LONGEST_SECONDS)), OVERDUE_SECONDS)
        of_node = self._terminating.setdefault(pod.node, {})
        known = of_node.get(pod.uid)
        if known is not None:  # no later event prolongs the time
            counts_until, policies = min(counts_until, known.counts_until), (*known.policies, *policies)
        of_node[pod.uid] = Departure(pod, until, counts_until, tuple(dict.fromkeys(policies)))

    def end(self, uid: str, node: str) -> None:
        """Stop counting a pod that is gone, or that runs on after a restore of etcd."""
        of_node = self._terminating.get(node, {})
        if of_node.pop(uid, None) is not None:
            if not of_node:
                del self._terminating[node]
            self._free(node)

    def of_node(self, node: str) -> list[Departure]:
        """Return the pods that terminate on a node."""
        return [*self._terminating.get(node, {}).values()]

    def leave_by(self, departure: Departure, policies: Iterable[str]) -> None:
        """Add policies that give a terminating pod a deadline."""
        known = dict.fromkeys(departure.policies)
        if more := [name for name in policies if name not in known]:
            departure = replace(departure, policies=(*known, *more))
            self._terminating[departure.pod.node][departure.pod.uid] = departure

    def leaving(self) -> Iterator[Departure]:
        """Iterate over the terminating pods that leave by a policy."""
        return (one for of_node in self._terminating.values() for one in of_node.values() if one.policies)

    def _free(self, node: str) -> None:
        if self._is_limited:  # else no refusal of a node exists
            self._freed.add(key(node))

    def uids(self) -> list[tuple[str, str]]:
        """Return UID and node of all terminating pods."""
        return [(uid, node) for node, of_node in self._terminating.items() for uid in of_node]

    def refuse(self, pod: Pod, most: int, now: Instant) -> Refusal | None:
        """Refuse if ``most`` other pods are already leaving its node."""
        node = pod.node
        leaving = (departure for departure in self.of_node(node) if departure.policies)
        counted = [departure.counts_until for departure in leaving if departure.counts_until > now.monotonic]
        count = self._number[node] - (pod.uid in self._leaving) + len(counted)
        if count < most:
            return None
        until = min(counted, default=None)
        pods = "1 pod is" if count == 1 else f"{count} pods are"
        return Refusal(
            NODE, until, RefusalScope.PODS, key(node), f"{pods} being evicted from node {node}, or terminating there"
        )


def key(node: str) -> str:
    """Return the key of a refusal, shared by all pods of the node."""
    return f"node/{node}"
