"""The order in which due pods are evicted. It is total, so that two runs agree.

Pods with a hard deadline come first. Then deadlines count, by the minute: the taints of two nodes are never written in
the same millisecond, so a finer comparison would make the policy's order useless. Then that order counts, then the UID.
A pod whose eviction has failed counts as due at its retry, and within the minute after all others, so that failing
calls come after those that may succeed.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from taintwarden.engine.model import OrderBy, PodClass, Policy

SAME_URGENCY_SECONDS = 60.0
SAME_REMOVAL_SECONDS = 10.0
"""Nodes that are removed at about the same time: retries on one must not precede first calls on another."""

# TopologySpread is not a rank: it compares pods of one workload revision with each other, see ``machine.queues``.
_RANKS: dict[OrderBy, Callable[[PodClass], float]] = {
    OrderBy.PRIORITY: lambda pod: float(pod.priority),
    OrderBy.SHORTEST_GRACE: lambda pod: float(pod.grace_seconds),
    OrderBy.LONGEST_GRACE: lambda pod: -float(pod.grace_seconds),
}


class OrderKey(NamedTuple):
    """The position of a pod in the order, before its UID decides."""

    urgency: float
    rank: tuple[float, ...]


def place_of(pod: PodClass, policy: Policy, due_at: float, hard_at: float | None, attempts: int = 0) -> OrderKey:
    """The place of a pod of this class that is due at ``due_at`` and whose node is removed at ``hard_at``.

    Before a hard deadline, pods of equal priority are ordered by the longest grace period first, so that as many as
    possible stop gracefully by then. ``attempts`` is the number of failures; for a retry ``due_at`` is its time.
    """
    if hard_at is not None:
        urgency = hard_at // SAME_REMOVAL_SECONDS * SAME_REMOVAL_SECONDS
        return OrderKey(urgency, (float(attempts), float(pod.priority), -float(pod.grace_seconds)))
    rank = (float(attempts > 0), *[rank(pod) for rank in _ranks(policy.eviction.order)])
    return OrderKey(due_at // SAME_URGENCY_SECONDS * SAME_URGENCY_SECONDS, rank)


@lru_cache(maxsize=64)
def _ranks(order: tuple[OrderBy, ...]) -> tuple[Callable[[PodClass], float], ...]:
    """The ranks of a policy's order, the most important first."""
    return tuple(_RANKS[criterion] for criterion in order if criterion in _RANKS)
