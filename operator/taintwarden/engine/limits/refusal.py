"""A limit's answer for a pod that may not be evicted yet, and the names of the limits as users see them."""

import msgspec

from taintwarden.engine.model import MonotonicTime

WINDOW = "window"
GUARD = "guard"
GUARD_SETTLING = "guard-settling"
GUARD_RECORD = "guard-record"
GUARD_WINDOW = "guard-window"
ALL_ZONES_FULL = "all-zones-full"
POLICY_RATE = "policy-rate"
OVERALL_RATE = "overall-rate"
SHARE = "share"
RETRY_RATE = "retry-rate"
CALLS = "calls"
THROTTLED = "throttled"
PER_NODE = "per-node"
PER_NAMESPACE = "per-namespace"
PER_ZONE = "per-zone"
ZONE_DEGRADED = "zone-degraded"
ZONE_FULL = "zone-full"
ZONE_HALTED = "zone-halted"
MAX_UNAVAILABLE = "max-unavailable"
WORKLOAD_UNKNOWN = "workload-unknown"
BOUNCE = "bounce"
BUDGET = "budget"
SEVERAL_BUDGETS = "several-budgets"
BUDGET_UNREADABLE = "budget-unreadable"
EVALUATION = "evaluation"
NODE_CHECK = "node-check"
STALE_VIEW = "stale-view"

HOLDS = {
    WINDOW: "it is outside the windows of the policy",
    GUARD: "the guard holds them, because too many would be evicted",
    GUARD_SETTLING: "the guard waits until the wave is complete",
    GUARD_RECORD: "the guard waits for its record to be stored",
    GUARD_WINDOW: "as many pods as the guard allows were evicted within its window",
    ALL_ZONES_FULL: "every zone is Full, which looks like a fault of the monitoring",
    POLICY_RATE: "the rate of the policy",
    OVERALL_RATE: "the rate over all policies",
    SHARE: "pods of other namespaces wait, and their namespace has used its half of the rate",
    RETRY_RATE: "the rate of calls that failed before, or whose namespace had failed calls last",
    CALLS: "too many eviction calls are in progress",
    THROTTLED: "the API server requests a pause (429)",
    PER_NODE: "the maximum number of pods of their node is terminating",
    PER_NAMESPACE: "the rate of their namespace",
    PER_ZONE: "the rate of their zone",
    ZONE_DEGRADED: "their zone is Degraded, and slowed down",
    ZONE_FULL: "their zone is Full, and slowed down",
    ZONE_HALTED: "their zone is small and Degraded, and halted",
    MAX_UNAVAILABLE: "their workload cannot lose another Ready pod now",
    WORKLOAD_UNKNOWN: "the number of desired pods of their workload is not known",
    BOUNCE: "their workload comes back to the node it is evicted from, which placement prevents",
    BUDGET: "their PodDisruptionBudget allows no disruption now",
    SEVERAL_BUDGETS: "more than one PodDisruptionBudget selects them",
    BUDGET_UNREADABLE: "a PodDisruptionBudget of their namespace cannot be read",
    EVALUATION: "their namespace has changes that are not evaluated yet",
    NODE_CHECK: "their node is read again before the eviction",
    STALE_VIEW: "the operator receives no changes of some objects from the API server",
}
"""Name of a limit -> why it delays pods. The last three are no limits of a policy: decisions need data."""

BUDGET_LIMITS = (BUDGET, SEVERAL_BUDGETS, BUDGET_UNREADABLE)


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Which limit refuses, and what has to change before a retry can succeed.

    ``until`` None: something other than time has to change. ``key`` names what shares the refusal (a workload, a node,
    a zone, ...); empty: all pods of the lane do. ``detail`` is a text for users.
    """

    limit: str
    until: MonotonicTime | None = None
    key: str = ""
    detail: str = ""
