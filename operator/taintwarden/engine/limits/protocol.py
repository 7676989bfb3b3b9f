"""The protocol of every limit. docs/development.md tells how to add one.

=============== =====================================================================================================
``admit``       whether the pod may be evicted now; takes only what has to be stored before a call
``reserve``     the pod is about to be evicted: take what that costs
``settle``      the call of :meth:`~Limit.reserve` ended: return what was not used
``stay``        no call for the pod is in progress, and it is not terminating
``gone``        the pod is gone or terminating
``FreedKeys``   keys of refusals that may no longer hold; limits add them, the machine takes them
=============== =====================================================================================================
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.limits.refusal import Refusal
from taintwarden.engine.model import ROUNDING_SECONDS, Deployment, Instant, MonotonicTime, Pod
from taintwarden.engine.policy import Mode, Policy


class Replacement(msgspec.Struct, frozen=True, gc=False):
    """The Deployment that replaces a pod, when it was asked (None: not yet), and ``until`` when the pod waits."""

    deployment: Deployment
    asked_at: MonotonicTime | None = None
    until: MonotonicTime | None = None


class EvictionRequest(msgspec.Struct, frozen=True, gc=False):
    """Asks the limits to admit the eviction of a pod now.

    ``due``: the verdicts that are due. ``labels``: those of the node. ``deletes``: True if the pod is deleted, so that
    no PodDisruptionBudget applies. ``replacement``: the Deployment that is asked, or was, to replace the pod, so
    that no budget applies, either. ``released``: True if a person reset the guard, which released this pod.
    ``others_could_go``: True if pods of another lane could be evicted instead.
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
        """True if the policy has ``reclaim``: only calls, replacements, budgets, bounces and the overall rate apply."""
        return self.policy.reclaim is not None

    @property
    def is_late(self) -> bool:
        """True if the pod was bound to its node after all of the taints in ``due`` had begun to count."""
        return all(self.pod.bound_at > verdict.counts_from + ROUNDING_SECONDS for verdict in self.due)

    @property
    def lane(self) -> "LaneKey":
        """The lane of the pod, which takes turns with the lanes of other namespaces and policies."""
        return self.policy.name, self.pod.namespace

    @property
    def is_rehearsal(self) -> bool:
        """True if the pod will not be evicted, since the policy does not enforce."""
        return self.policy.mode is not Mode.ENFORCE


LaneKey = tuple[str, str]
"""Key of a lane: policy and namespace."""


class Settlement(Enum):
    """Outcome of an eviction call, as far as limits distinguish it."""

    ACCEPTED = auto()
    OPEN = auto()
    """The call was answered in another way, or not at all, so the pod may leave. Its watch events decide."""
    STAYS = auto()
    """The call is known not to have evicted the pod: a budget refused it, or it was not sent."""

    @property
    def stays(self) -> bool:
        """True if the pod is known to stay."""
        return self is Settlement.STAYS


class Limit:
    """One limit of all policies. Methods that a limit does not define do nothing."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed policies at once."""

    def concerns(self, _: Policy) -> bool:
        """Return True if the limit admits or counts pods of the policy. The answer holds until the policies change."""
        return True

    def admit(self, _: EvictionRequest) -> Refusal | None:
        """Return why the pod may not be evicted now, None if it may. Takes only what has to be stored before a call."""
        return None

    def reserve(self, _: EvictionRequest) -> None:
        """Take what the eviction costs, such as tokens."""

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """Note the end of the eviction call for a pod, even if this limit was not asked to reserve it."""

    def stay(self, uid: str) -> None:
        """Note that no eviction of the pod is in progress any more."""

    def gone(self, pod: Pod, now: Instant) -> None:
        """Note that the pod is gone or terminating."""


class FreedKeys:
    """Keys of refusals that may no longer hold, in the order in which they were added."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}

    def add(self, key: str) -> None:
        """Note that the limit may admit pods that it refused under this key."""
        self.keys[key] = None

    def take(self) -> list[str]:
        """Return the keys that were added since the last call."""
        keys, self.keys = list(self.keys), {}
        return keys


EVERY_POLICY = "policies"
"""Key under which refusals of all policies are freed."""


def policy_key(policy: str) -> str:
    """Return the key under which a refusal of a whole policy is freed."""
    return f"policy/{policy}"


def lane_key(lane: LaneKey) -> str:
    """Return the key under which a refusal of a lane is freed."""
    return f"lane/{lane[0]}/{lane[1]}"
