"""A limit's answer for a pod that may not be evicted yet, and the names of the limits as users see them."""

import msgspec

from taintwarden.engine.model import MonotonicTime

WINDOW = "window"
GUARD = "guard"
GUARD_RECORD = "guard-record"
ALL_ZONES_FULL = "all-zones-full"
POLICY_RATE = "policy-rate"
OVERALL_RATE = "overall-rate"
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
STALE_VIEW = "stale-view"
"""Not a limit of a policy: it stops all evictions while a stream is cut off from the API server."""

BUDGET_LIMITS = (BUDGET, SEVERAL_BUDGETS, BUDGET_UNREADABLE)


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Which limit refuses, and what has to change before a retry can succeed.

    ``until`` None: something other than time has to change. ``key`` names what shares the refusal (a workload, a node,
    a zone, ...); empty: all pods of the policy do. ``detail`` is a text for users.
    """

    limit: str
    until: MonotonicTime | None = None
    key: str = ""
    detail: str = ""
