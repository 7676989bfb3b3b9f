"""A limit's answer for a pod that may not be evicted yet, and the names of the limits as users see them."""

from enum import Enum, auto

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
NODE = "node"
WORKLOAD = "workload"
BOUNCE = "bounce"
BUDGET = "budget"
FAILING = "failing"
VIEW = "view"

HOLDS = {
    WINDOW: "it is outside the windows of the policy",
    POLICY_RATE: "the rate of the policy",
    OVERALL_RATE: "the rate over all policies",
    CALLS: "the API server fails or is asked too often, or all slots for calls are used",
    NAMESPACE_RATE: "the rate of their namespace",
    ZONE_RATE: "the rate of their zone",
    ZONE: "nodes of their zone are unhealthy",
    GUARD: "the guard holds them",
    NODE: "the maximum number of pods of their node is terminating",
    WORKLOAD: "their workload cannot lose another Ready pod now",
    BOUNCE: "their workload comes back to the node it is evicted from, which placement prevents",
    BUDGET: "their PodDisruptionBudget allows no disruption now",
    FAILING: "calls for their eviction fail or hang",
    VIEW: "the state of the cluster is not known well enough",
}
"""Name of a limit -> why it delays pods. What a limit tells apart is in the detail of its refusal."""


class Whom(Enum):
    """Who waits because of a refusal."""

    POLICY = auto()
    """All pods of the policy."""
    LANE = auto()
    """The pods of the policy in one namespace."""
    PODS = auto()
    """The pods that share the key: the others of their lane pass them."""


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Which limit refuses, whom, and what has to change before a retry can succeed.

    ``until`` None: something other than time has to change. ``key`` names what the pods share (a workload, a node, a
    zone) if only these wait. ``detail`` is a text for users.
    """

    limit: str
    until: MonotonicTime | None = None
    whom: Whom = Whom.POLICY
    key: str = ""
    detail: str = ""
    is_brief: bool = False
    """It is over in a moment."""
