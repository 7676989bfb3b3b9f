"""The order in which the due pods of a lane are evicted. It is total, so that two runs agree.

Pods come first by the number of their failed calls, so that those that may succeed come first. Then deadlines count, by
the minute: the taints of two nodes are never written in the same millisecond, so a finer comparison would make the
policy's order useless. Then that order counts, then the UID.
"""

from functools import lru_cache

import msgspec

from taintwarden.engine.model import OrderBy, PodClass, Policy

SAME_URGENCY_SECONDS = 60.0


class OrderKey(msgspec.Struct, frozen=True, order=True, gc=False):
    """The position of a pod in its lane, before its UID decides."""

    attempts: float
    rank: tuple[float, ...]


def place_of(pod: PodClass, policy: Policy, due_at: float, hard_at: float | None, attempts: int = 0) -> OrderKey:
    """The place of a pod of this class that is due at ``due_at`` and whose node is removed at ``hard_at``.

    ``attempts`` is the number of failed calls.
    """
    minute = (due_at if hard_at is None else hard_at) // SAME_URGENCY_SECONDS
    # TopologySpread is no rank: it compares pods of one workload revision with each other, see ``machine.queues``.
    by_priority = OrderBy.PRIORITY in policy.eviction.order
    return _one(float(attempts), (minute, float(pod.priority)) if by_priority else (minute,))


@lru_cache
def _one(attempts: float, rank: tuple[float, ...]) -> OrderKey:
    """All pods of a wave share it: there may be 150,000."""
    return OrderKey(attempts, rank)
