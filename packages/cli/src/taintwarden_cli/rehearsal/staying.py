"""Pods that stay on tainted nodes, by the reason."""

import msgspec

NO_POLICY, NO_TAINT, STATIC = "no policy for its taints", "no taint", "static"


class StayingGroup(msgspec.Struct):
    """Pods that stay for one reason, on nodes with a taint that their policy names. ``names`` may be the first few."""

    reason: str
    pods: int
    names: list[str]
