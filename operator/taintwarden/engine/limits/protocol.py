"""The protocol of every limit. To add one: see docs/development.md.

=============== =====================================================================================================
``admit``       whether the pod may be evicted now; changes nothing
``reserve``     the pod is about to be evicted: take what that costs
``settle``      the call of :meth:`~Limit.reserve` ended: return what was not used
``stay``        no call for the pod is in progress, and it is not terminating
``gone``        the pod is gone or terminating
``Freed``       keys of refusals that may no longer hold; limits add them, the machine takes them
=============== =====================================================================================================
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits.refusal import Refusal
from taintwarden.engine.model import ROUNDING_SECONDS, Deployment, Instant, Mode, MonotonicTime, Pod, Policy


class Replacement(msgspec.Struct, frozen=True, gc=False):
    """The Deployment of a pod, when it was asked, and ``until`` when the pod waits; None: it is to be asked."""

    deployment: Deployment
    asked_at: MonotonicTime | None = None
    until: MonotonicTime | None = None


class EvictionRequest(msgspec.Struct, frozen=True, gc=False):
    """The question whether a pod may be evicted now.

    ``due``: the verdicts whose time has come. ``labels``: the node's. ``deletes``: the pod is deleted, so no
    PodDisruptionBudget applies. ``replacement``: a Deployment is asked for one instead, or was, so that none applies,
    either. ``released``: a person reset the guard, and this pod is one of those that were released.
    ``others_could_go``: pods of another lane could be evicted instead.
    """

    pod: Pod
    policy: Policy
    due: tuple[TaintVerdict, ...]
    labels: Mapping[str, str]
    now: Instant
    deletes: bool = False
    replacement: Replacement | None = None
    released: bool = False
    others_could_go: bool = False

    @property
    def is_hard(self) -> bool:
        """Whether the node will be removed (``reclaim``): calls, budgets, bounces and the overall rate apply only."""
        return self.policy.reclaim is not None

    @property
    def is_late(self) -> bool:
        """Whether the pod came to its node when all of these taints already evicted it."""
        return all(self.pod.bound_at > one.counts_from + ROUNDING_SECONDS for one in self.due)

    @property
    def lane(self) -> "LaneKey":
        """The pods that take turns with those of other namespaces and policies."""
        return self.policy.name, self.pod.namespace

    @property
    def is_rehearsal(self) -> bool:
        """Whether the pod will not be evicted, since the policy does not enforce."""
        return self.policy.mode is not Mode.ENFORCE


LaneKey = tuple[str, str]
"""Policy and namespace."""


class Settlement(Enum):
    """How an eviction call ended, as far as it matters to limits."""

    ACCEPTED = auto()
    OPEN = auto()
    """It was answered in any other way, or not at all: the pod may leave because of it. What is seen decides."""
    STAYS = auto()
    """It certainly did not evict the pod: a budget refused it, or it was not sent."""

    @property
    def stays(self) -> bool:
        """Whether the pod certainly stays."""
        return self is Settlement.STAYS


class Limit:
    """One limit of all policies. What it does not define changes nothing."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed policies at once."""

    def concerns(self, _: Policy) -> bool:
        """Whether the limit applies to pods of the policy, or counts them; the answer holds until policies change."""
        return True

    def admit(self, _: EvictionRequest) -> Refusal | None:
        """Why the pod may not be evicted now, None if it may. Nothing is taken."""
        return None

    def reserve(self, _: EvictionRequest) -> None:
        """Take what the eviction costs."""

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """The eviction call for this pod ended. Nothing happens if nothing was reserved for it."""

    def stay(self, uid: str) -> None:
        """No eviction of the pod is in progress any more."""

    def gone(self, pod: Pod, now: Instant) -> None:
        """The pod is gone or terminating."""


class Freed:
    """Keys of refusals that may no longer hold, in the order in which they were added."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}

    def add(self, key: str) -> None:
        """The limit may admit pods that it refused under this key."""
        self.keys[key] = None

    def take(self) -> list[str]:
        """All keys since the last time."""
        keys, self.keys = list(self.keys), {}
        return keys


EVERY_POLICY = "policies"
"""The key under which refusals of all policies are freed."""


def policy_key(policy: str) -> str:
    """The key under which a refusal of a whole policy is freed."""
    return f"policy/{policy}"


def lane_key(lane: LaneKey) -> str:
    """The key under which a refusal of a lane is freed."""
    return f"lane/{lane[0]}/{lane[1]}"
