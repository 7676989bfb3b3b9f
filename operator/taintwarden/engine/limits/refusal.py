"""A limit's answer to a pod that may not go yet, and the names of the limits as people read them."""

import msgspec

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
"""Not asked of a pod: what holds everybody while a stream is cut off from the API server."""

BUDGET_LIMITS = (BUDGET, SEVERAL_BUDGETS, BUDGET_UNREADABLE)


class Refusal(msgspec.Struct, frozen=True):
    """Which limit, and what has to happen before asking again makes sense.

    ``until`` is a time on the monotonic clock; None: something else has to change. ``key`` names who shares the
    refusal (a workload, a node, a zone, ...); empty: the whole policy does. ``detail`` is for people.
    """

    limit: str
    until: float | None = None
    key: str = ""
    detail: str = ""
