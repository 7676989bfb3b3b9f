"""A workload whose pods come back to the node that they were evicted from is evicted at increasing intervals.

A scheduler that does not know why a pod was evicted may place the replacement on the same node, where it is evicted
again. One *round* is all pods of one workload that one taint evicts from a node before another comes back: ten replicas
that are evicted together are one round, however long it takes. A pod that came after a round began starts the next.

The pods of a namespace on a node that have no controller count as one workload: who creates them again is unknown.

The order is that in which this process saw them, not a comparison of times: ``bound_at`` is the wall clock of the API
server; the local clock may differ or be stepped, and either would bypass the limit. Delays run on the monotonic clock.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable

from taintwarden.engine.limits.protocol import EvictionRequest, Limit
from taintwarden.engine.limits.refusal import BOUNCE, Refusal, Whom
from taintwarden.engine.model import BOUNCING_SECONDS, BounceSettings, Instant, MonotonicTime, Pod, Policy, Taint, later

MAX_LOOPS = 10_000
"""Beyond it, the least recent rounds are dropped."""


class _Loop:
    """The rounds of one workload on one node by one taint (key and effect), under one policy."""

    __slots__ = ("began_at", "began_with", "last_at", "owner", "place", "policy", "rounds")

    def __init__(self, policy: str, place: "_Place") -> None:
        self.policy = policy
        self.place = place
        self.rounds = 0
        """The number of rounds, including the current one."""
        self.began_at = MonotonicTime(0.0)
        """When the round began."""
        self.began_with = 0
        """The number of its first eviction: a pod with a greater number came back after it."""
        self.last_at = MonotonicTime(0.0)
        """When its last eviction was requested."""


class _Place:
    """A workload (by UID) on a node (by name): a node that is created again under its name is the same place."""

    __slots__ = ("came", "key", "loops")

    def __init__(self, key: tuple[str, str]) -> None:
        self.key = key
        self.loops = 0
        self.came: dict[str, int] = {}
        """UID -> number of the pods that came after its first eviction and still exist."""


class Bounces(Limit):
    """Counts rounds, and refuses pods that came back too often. In memory only: a restart loses the counts.

    Args:
        max_loops: the greatest number of (workload, node, taint) remembered.

    """

    def __init__(self, *, max_loops: int = MAX_LOOPS) -> None:
        self._max_loops = max_loops
        self._settings: dict[str, BounceSettings] = {}
        self._uids: dict[str, str] = {}
        self._loops: OrderedDict[str, _Loop] = OrderedDict()
        """Ordered by the start of the current round, the oldest first."""
        self._places: dict[tuple[str, str], _Place] = {}
        self._numbers = 0

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed settings at once. The rounds of removed policies, or of those with another UID, are dropped."""
        del now
        settings, uids = {}, {}
        for policy in policies:
            if policy.limits.bounce.is_limit:
                settings[policy.name] = policy.limits.bounce
                uids[policy.name] = policy.uid
        for key in [key for key, loop in self._loops.items() if uids.get(loop.policy) != self._uids[loop.policy]]:
            self._forget(key)
        self._settings, self._uids = settings, uids

    def concerns(self, policy: Policy) -> bool:
        """Whether the policy limits bounces."""
        return policy.name in self._settings

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """``perWorkload.bounce``: the refusal that ends first, if all taints that evict the pod now refuse.

        Of pods whose node will be removed, only those that came after its taint are refused; of pods whose node is
        cordoned, only those that came after that.
        """
        if (request.is_hard and not request.is_late) or request.was_cordoned_later:
            return None
        refusals = []
        for verdict in request.due:
            refusal = self.refuse(request.pod, request.policy.name, verdict.taint, request.now.monotonic)
            if refusal is None:
                return None
            refusals.append(refusal)
        return min(refusals, key=_ends_at)

    def came(self, pod: Pod) -> None:
        """A pod that was not known before is on its node."""
        place = self._place(pod)
        if place is not None:
            place.came[pod.uid] = self._next()

    def gone(self, pod: Pod, now: Instant) -> None:
        """A pod is gone or terminating."""
        del now
        place = self._place(pod)
        if place is not None:
            place.came.pop(pod.uid, None)

    def leave(self, pod: Pod, policy: str, taint: Taint, now: MonotonicTime) -> int:
        """The eviction of a pod is requested.

        Returns:
            The number of the round that this starts, if the pod came back; 0 if it did not.

        """
        settings = self._settings.get(policy)
        if settings is None:
            return 0
        key = _key(pod, policy, taint)
        loop = self._loops.get(key) or self._remember(key, policy, (_workload(pod), pod.node), now)
        came = loop.place.came.get(pod.uid, 0)
        goes_on = loop.rounds > 0 and not self._is_over(loop, now)
        loop.last_at = now
        if goes_on and came < loop.began_with:
            return 0
        loop.rounds = loop.rounds + 1 if goes_on else 1
        loop.began_at, loop.began_with = now, self._next()
        self._loops.move_to_end(key)
        return loop.rounds if loop.rounds > 1 else 0

    def refuse(self, pod: Pod, policy: str, taint: Taint, now: MonotonicTime) -> Refusal | None:
        """Refuse if its workload was evicted from this node so often that the next round has to wait."""
        settings, place = self._settings.get(policy), self._place(pod)
        if settings is None or place is None or (came := place.came.get(pod.uid)) is None:
            return None
        key = _key(pod, policy, taint)
        loop = self._loops.get(key)
        if loop is None or came < loop.began_with:
            return None
        until = later(loop.began_at, settings.backoff(loop.rounds))
        if now >= until:
            return None
        times = "once" if loop.rounds == 1 else f"{loop.rounds} times in a row"
        what = pod.shared.owner or f"a pod without controller in namespace {pod.shared.namespace}"
        detail = f"{what} was evicted from node {pod.node} by taint {taint} {times}, and came back"
        return Refusal(BOUNCE, until, Whom.PODS, key, detail)

    def bouncing(self, now: MonotonicTime) -> Counter[str]:
        """How many workloads each policy delays, or would delay if they came back now or soon."""
        found = dict.fromkeys(
            (loop.policy, loop.place.key[0])
            for loop in self._loops.values()
            if self._settings[loop.policy].backoff(loop.rounds) and not self._is_over(loop, now)
        )
        return Counter(policy for policy, _ in found)

    def _is_over(self, loop: _Loop, now: MonotonicTime) -> bool:
        settings = self._settings[loop.policy]
        return now > loop.last_at + BOUNCING_SECONDS + settings.backoff(loop.rounds)

    def _place(self, pod: Pod) -> _Place | None:
        return self._places.get((_workload(pod), pod.node)) if self._places else None

    def _remember(self, key: str, policy: str, where: tuple[str, str], now: MonotonicTime) -> _Loop:
        while (oldest := next(iter(self._loops), None)) is not None:
            if len(self._loops) < self._max_loops and not self._is_over(self._loops[oldest], now):
                break
            self._forget(oldest)
        place = self._places.get(where)
        if place is None:
            place = self._places[where] = _Place(where)
        place.loops += 1
        loop = self._loops[key] = _Loop(policy, place)
        return loop

    def _forget(self, key: str) -> None:
        place = self._loops.pop(key).place
        place.loops -= 1
        if not place.loops:
            del self._places[place.key]

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers


def _ends_at(refusal: Refusal) -> MonotonicTime:
    return refusal.until or MonotonicTime(math.inf)


def _workload(pod: Pod) -> str:
    """Namespace and UID of its controller; the namespace alone stands for those of its pods that have none."""
    owner = pod.shared.owner
    return f"{pod.shared.namespace}/{owner.uid if owner is not None else ''}"


def _key(pod: Pod, policy: str, taint: Taint) -> str:
    """The key of a refusal, shared by all pods of the workload on the node."""
    return f"bounce/{policy}/{_workload(pod)}/{pod.node}/{taint.key}:{taint.effect}"
