"""Refusals of pods that may not be evicted yet, and the names of the limits as users see them."""

import math
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from taintwarden.engine.model import MonotonicTime

WINDOW = "window"
POLICY_RATE = "policy-rate"
OVERALL_RATE = "overall-rate"
CALLS = "calls"
NAMESPACE_RATE = "namespace-rate"
ZONE_RATE = "zone-rate"
ZONE = "zone"
GUARD = "guard"
PLACE = "place"
NODE = "node"
WORKLOAD = "workload"
BOUNCE = "bounce"
BUDGET = "budget"
FAILING = "failing"
VIEW = "view"


class Delay(NamedTuple):
    """Description of a limit that delays pods, for users."""

    why: str
    """Reason for the delay in general. What differs between refusals of the limit is in their ``detail``."""
    may_last_seconds: float = math.inf
    """Seconds until the delay is reported as a problem; infinity if it ends by itself, or is reported otherwise."""
    needs_evictions: bool = False
    """True if the delay is not a problem while the policy does not enforce."""


DELAYS = {
    WINDOW: Delay("it is outside the windows of the policy"),
    POLICY_RATE: Delay("the rate of the policy"),
    OVERALL_RATE: Delay("the rate over all policies"),
    CALLS: Delay(
        "an admission webhook keeps the pod, the API server fails or is asked too often, or all slots are used", 1_800.0
    ),
    NAMESPACE_RATE: Delay("the rate of the namespace"),
    ZONE_RATE: Delay("the rate of the zone"),
    ZONE: Delay("nodes of the zone are unhealthy"),
    GUARD: Delay("the guard holds evictions"),
    PLACE: Delay("the maximum number of nodes is losing pods"),
    NODE: Delay("the maximum number of pods of the node is terminating", 1_800.0, needs_evictions=True),
    WORKLOAD: Delay("the workload cannot lose another Ready pod now"),
    BOUNCE: Delay(
        "the workload comes back to the node it is evicted from, which placement prevents",
        300.0,
        needs_evictions=True,
    ),
    BUDGET: Delay("a PodDisruptionBudget allows no disruption now", 1_800.0, needs_evictions=True),
    FAILING: Delay("eviction calls fail or hang", 60.0),
    VIEW: Delay("the state of the cluster is not known well enough", 180.0),
}
"""Delays by the name of their limit."""


class RefusalScope(Enum):
    """The pods that wait because of a refusal."""

    POLICY = auto()
    """All pods of the policy."""
    LANE = auto()
    """The pods of the policy in one namespace."""
    PODS = auto()
    """The pods that share the key. Other pods of their lane pass them."""


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """The limit that refuses a pod, the pods that wait with it, and when a retry may succeed.

    ``until``: None if something other than time has to change. ``key``: the workload, node or zone that the pods
    share, if only these wait. ``detail``: a text for users.
    """

    limit: str
    until: MonotonicTime | None = None
    whom: RefusalScope = RefusalScope.POLICY
    key: str = ""
    detail: str = ""
    is_brief: bool = False
    """True if the refusal is over within moments, as when a record is being stored."""
