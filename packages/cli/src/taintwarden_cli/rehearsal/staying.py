"""Pods that stay on a node, by the reason; and reasons that are not about a policy."""

import msgspec

NO_POLICY, NO_TAINT, STATIC = "no policy for its taints", "no taint", "static"


class StayingGroup(msgspec.Struct):
    """Pods that stay for one reason, on nodes with a taint that their policy names. ``names`` may be the first few."""

    reason: str
    pods: int
    names: list[str]
