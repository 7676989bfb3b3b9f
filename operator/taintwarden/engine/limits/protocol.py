"""The protocol of every limit. To add one: a module, a line in the list, a field of the API, a sentence.

=============== =====================================================================================================
``admit``       whether the pod may be evicted now; changes nothing
``reserve``     the pod is about to be evicted: take what that costs
``settle``      the call of :meth:`~Limit.reserve` ended: return what was not used
``Freed``       keys of refusals that may no longer hold; limits add them, the machine takes them
=============== =====================================================================================================
"""

from enum import Enum, auto
from typing import Protocol

import msgspec

from taintwarden.engine.limits.refusal import Refusal
from taintwarden.engine.model import Instant, Mode, Pod, Policy, Taint


class Request(msgspec.Struct, frozen=True, gc=False):
    """The question whether a pod may be evicted now.

    ``zone`` is its node's. ``deletes``: the pod is deleted, so no PodDisruptionBudget applies. ``released``: a
    person reset the guard, and this pod is one of those that were released. ``is_latecomer``: it came to its node when
    the taint already evicted it.
    """

    pod: Pod
    policy: Policy
    taint: Taint
    zone: str
    now: Instant
    deletes: bool = False
    released: bool = False
    is_latecomer: bool = False

    @property
    def is_hard(self) -> bool:
        """Whether the node will be removed (``reclaim``): then only the overall rate and budgets apply."""
        return self.policy.reclaim is not None

    @property
    def is_rehearsal(self) -> bool:
        """Whether the pod will not be evicted, since the policy does not enforce."""
        return self.policy.mode is not Mode.ENFORCE


class Settlement(Enum):
    """How an eviction call ended, as far as it matters to limits."""

    EVICTED = auto()
    STAYS = auto()
    """It was certainly not carried out."""
    UNKNOWN = auto()
    """It may have been carried out: the pod counts as terminating until that is known."""


class Limit(Protocol):
    """One limit of all policies."""

    def concerns(self, policy: Policy) -> bool:
        """Whether the limit applies to pods of the policy; the answer holds until policies change."""

    def admit(self, request: Request) -> Refusal | None:
        """Why the pod may not be evicted now, None if it may. Nothing is taken."""

    def reserve(self, request: Request) -> None:
        """Take what the eviction costs."""


class Settling(Limit, Protocol):
    """A limit that gets back what an eviction did not use."""

    def settle(self, uid: str, settlement: Settlement) -> None:
        """The eviction call for this pod ended. Nothing happens if nothing was reserved for it."""


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
