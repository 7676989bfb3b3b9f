"""The question that limits are asked, about a pod that a taint evicts now."""

from typing import Any

from taintwarden.engine.evaluate import TaintVerdict, VerdictKind
from taintwarden.engine.limits import EvictionRequest
from taintwarden.engine.limits.zones import ZONE_LABEL
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Taint, WallTime
from taintwarden.engine.policy import Policy

TAINT = Taint("sla", "900")
AT_ONCE = Instant(WallTime(0.0), MonotonicTime(0.0))


def ask(
    pod: Pod, policy: Policy, *, now: Instant = AT_ONCE, taints: tuple[Taint, ...] = (TAINT,), **more: Any
) -> EvictionRequest:
    """``counts_from``, of ``more``: since when the taints evict the pod."""
    since = more.pop("counts_from", 0.0)
    due = tuple(TaintVerdict(taint, policy, VerdictKind.VIOLATED, counts_from=since) for taint in taints)
    zone = more.pop("zone", "z1")
    return EvictionRequest(pod, policy, due, {} if zone == "none" else {ZONE_LABEL: zone}, now, **more)
