"""Increasing intervals between evictions of a workload whose pods come back to the node that they were evicted from.

A scheduler that does not know why a pod was evicted may place the replacement on the same node, where it is evicted
again. One *round* is all pods of one workload that are evicted from a node before another comes back: ten replicas that
are evicted together are one round, however long it takes. A pod that came after a round began starts the next.

All pods of a namespace on a node that have no controller count as one workload, since their creator is unknown.

Pods and rounds are ordered by when this process saw them, not by ``bound_at``, which is the wall clock of the API
server: the local clock may differ or be stepped, which would bypass the limit. Delays run on the monotonic clock.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator

from taintwarden.engine.limit_settings import BOUNCING_SECONDS, BounceSettings
from taintwarden.engine.limits.protocol import EvictionRequest, Limit
from taintwarden.engine.limits.refusal import BOUNCE, Refusal, RefusalScope
from taintwarden.engine.model import Instant, MonotonicTime, Pod, later
from taintwarden.engine.policy import Policy

MAX_LOOPS = 10_000
"""Maximum combinations of policy, workload and node that are tracked. Beyond it, the oldest rounds are dropped."""
CAME_BACK = "evicted pods came back to their nodes"
"""Start of the cause of a trip if pods came back, and at least as many were evicted as have to leave."""


class _Loop:
    """Rounds of one workload on one node (by name, so that a recreated node is the same) by one policy."""

    __slots__ = ("began_with", "came", "last_at", "policy", "rounds", "workload")

    def __init__(self, policy: str, workload: str) -> None:
        self.policy = policy
        self.workload = workload
        self.rounds = 0
        """Number of rounds, including the current one."""
        self.began_with = 0
        """Sequence number of the round's first eviction. A pod with a greater number came back after it."""
        self.last_at = MonotonicTime(0.0)
        """When the last eviction was requested."""
        self.came: dict[str, int] = {}
        """UID -> sequence number of pods that appeared after the first round began and still exist."""


class Bounces(Limit):
    """Counts rounds, and refuses pods that came back too often. In memory only: a restart loses the counts."""

    def __init__(self) -> None:
        self._settings: dict[str, BounceSettings] = {}
        self._uids: dict[str, str] = {}
        self._loops: OrderedDict[str, _Loop] = OrderedDict()
        """Ordered by the start of the current round, the oldest first."""
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
            del self._loops[key]
        self._settings, self._uids = settings, uids

    def concerns(self, policy: Policy) -> bool:
        """Return True if the policy limits bounces."""
        return policy.name in self._settings

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod that came back to this node, until the delay of its workload's next round is over.

        If the node will be removed, only pods that were bound after its taint began are refused.
        """
        if request.is_hard and not request.is_late:
            return None
        pod, key = request.pod, _key(request.pod, request.policy.name)
        loop = self._loops.get(key)
        if loop is None or loop.came.get(pod.uid, 0) < loop.began_with:
            return None
        until = later(loop.last_at, self._settings[loop.policy].backoff(loop.rounds))
        if request.now.monotonic >= until:
            return None
        what = pod.shared.owner or f"a pod without controller in namespace {pod.shared.namespace}"
        detail = f"{what} was evicted from node {pod.node} {loop.rounds} times in a row, and came back"
        return Refusal(BOUNCE, until, RefusalScope.PODS, key, detail)

    def pod_added(self, pod: Pod) -> None:
        """Give a new pod the next sequence number."""
        for loop in self._loops_of(pod):
            loop.came[pod.uid] = self._next()

    def gone(self, pod: Pod, now: Instant) -> None:
        """Drop a pod that is gone or terminating."""
        del now
        for loop in self._loops_of(pod):
            loop.came.pop(pod.uid, None)

    def reserve(self, request: EvictionRequest) -> None:
        """Count the eviction of a pod. A pod that came back starts the next round."""
        key, now = _key(request.pod, request.policy.name), request.now.monotonic
        loop = self._loops.get(key) or self._add_loop(key, request, now)
        continues = not self._is_over(loop, now)
        loop.last_at = now
        if continues and loop.came.get(request.pod.uid, 0) < loop.began_with:
            return
        loop.rounds = loop.rounds + 1 if continues else 1
        loop.began_with = self._next()
        self._loops.move_to_end(key)

    def bouncing(self, now: MonotonicTime) -> Counter[str]:
        """Return the number of workloads by policy that have bounced, until their rows of evictions end."""
        found = dict.fromkeys(
            (loop.policy, loop.workload)
            for loop in self._loops.values()
            if self._settings[loop.policy].backoff(loop.rounds) and not self._is_over(loop, now)
        )
        return Counter(policy for policy, _ in found)

    def has_returned(self, policy: str, now: MonotonicTime) -> bool:
        """Return True if pods of a workload came back to a node from which the policy evicted others."""
        loops = (loop for loop in self._loops.values() if loop.policy == policy and (loop.rounds > 1 or loop.came))
        return not all(self._is_over(loop, now) for loop in loops)

    def _is_over(self, loop: _Loop, now: MonotonicTime) -> bool:
        settings = self._settings[loop.policy]
        return now > loop.last_at + BOUNCING_SECONDS + settings.backoff(loop.rounds)

    def _loops_of(self, pod: Pod) -> Iterator[_Loop]:
        found = (self._loops.get(_key(pod, policy)) for policy in (self._settings if self._loops else ()))
        return (loop for loop in found if loop is not None)

    def _add_loop(self, key: str, request: EvictionRequest, now: MonotonicTime) -> _Loop:
        while (oldest := next(iter(self._loops), None)) is not None:
            if len(self._loops) < MAX_LOOPS and not self._is_over(self._loops[oldest], now):
                break
            del self._loops[oldest]
        loop = self._loops[key] = _Loop(request.policy.name, _workload(request.pod))
        return loop

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers


def _workload(pod: Pod) -> str:
    """Return the namespace with the UID of the controller, or with the name of the Deployment if there is one.

    The UID of a ReplicaSet is unsuitable, since each rollout of a Deployment creates another one. The namespace alone
    stands for its pods without a controller.
    """
    owner, revision = pod.shared.owner, pod.shared.labels.get("pod-template-hash", "")
    if owner is not None and owner.name.endswith(f"-{revision}"):
        return f"{pod.shared.namespace}/{owner.name.removesuffix(f'-{revision}')}"
    return f"{pod.shared.namespace}/{owner.uid if owner is not None else ''}"


def _key(pod: Pod, policy: str) -> str:
    """Return the key of a refusal, shared by all pods of the workload on the node."""
    return f"bounce/{policy}/{_workload(pod)}/{pod.node}"
